"""Past the threshold, history becomes a summary, and undo restores it."""

import asyncio
from dataclasses import replace

import pytest

from compacting import BINDS, FREE, SUMMARY, answer
from longhold.core.log.entries import (
    Cleared,
    Compacted,
    Directed,
    Failed,
    Framed,
    Pinned,
    Redone,
    Restored,
    Section,
    Undone,
)
from longhold.core.messages import Text, is_thought, text_of
from longhold.core.messages.rules import violations
from longhold.core.settings import CompactSettings
from longhold.core.stages.compact.compact import NothingToCompact
from longhold.core.stages.compact.owner import Before, Blocked, CompactRequest
from longhold.core.turn.undo import redo, undo
from longhold.core.view.items import Round
from longhold.errors import ContextOverflow, PromptTooLong, RequestRejected


def is_sound(one):
    """The session goes on under the line, and no rule of the API is broken."""
    return one.used < one.line and violations(one.view.messages()) == []


async def test_nothing_happens_below_the_line(talk):
    one = talk()
    one.fill(tokens=10_000)
    await one.prepare()
    assert one.compacted == []
    assert one.model.requests == []


async def test_past_the_line_a_model_writes_the_summary_on_a_fork(talk):
    one = talk(SUMMARY).fill()
    before = one.used
    await one.prepare()
    (entry,) = one.compacted
    assert (entry.by, entry.trigger, entry.kind) == ("model", "auto", "full")
    assert entry.before_tokens == before
    assert abs(one.used - entry.after_tokens) <= 1
    assert entry.usage == one.calls[0].usage
    assert is_sound(one)
    text = str(one.view.messages()[0])
    assert "A KeyError in auth.py" in text
    assert "what now?" in text
    assert one.told == [entry.why]


async def test_the_summary_holds_every_word_of_the_users(talk):
    one = talk(SUMMARY).fill()
    asked = [text_of(i.content) for i in one.view.items if not isinstance(i, Round)]
    await one.prepare()
    text = text_of(one.compacted[0].summary)
    assert all(words in text for words in asked[:-1])


async def test_without_a_model_the_digest_stands_for_history(talk):
    one = talk(asks=False).fill()
    await one.prepare()
    assert one.compacted[0].by == "digest"
    assert is_sound(one)


async def test_models_can_be_left_out_by_a_setting(talk):
    one = talk(SUMMARY)
    one.engine.settings = replace(one.settings, compact=CompactSettings(model=False))
    await one.fill().prepare()
    assert (one.compacted[0].by, one.model.requests) == ("digest", [])


@pytest.mark.parametrize("window", [8_000, 32_000, 200_000, 1_000_000])
async def test_the_same_ladder_in_every_window(talk, window):
    one = talk(SUMMARY, window=window)
    words = window // 14
    number = 0
    while one.used < one.line:
        number += 1
        one.turn(f"step {number}: keep flag --strict-{number}", words=words)
    one.engine.say("what now?")
    await one.prepare()
    assert one.compacted[0].by == "model"
    assert f"--strict-{number}" in text_of(one.compacted[0].summary)
    assert is_sound(one)


async def test_a_compaction_switched_off_or_waiting_for_the_provider_does_nothing(talk):
    for settings in ({"on": False}, {"reactive_only": True}):
        one = talk(SUMMARY, **settings).fill()
        await one.prepare()
        assert one.compacted == []


async def test_undo_gives_back_the_very_bytes_and_redo_takes_them_away(talk):
    one = talk(SUMMARY).fill()

    async def renew():
        return Framed(sections=(Section(name="system", text="You are bold."),))

    async def greet():
        return (Text(text="a hook says hello"),)

    one.hooks.renew, one.hooks.greet = renew, greet
    before = one.sent()
    await one.prepare()
    after = one.sent()
    assert after[0][0].text == "You are bold."
    assert "a hook says hello" in str(after[3])
    assert undo(one.engine) == f"#{one.compacted[0].n} was undone: {one.compacted[0].why}"
    assert one.sent() == before
    redo(one.engine)
    assert one.sent() == after
    assert [type(e) for e in one.view.history[-2:]] == [Undone, Redone]


async def test_a_frame_that_is_the_same_is_not_declared_anew(talk):
    one = talk(SUMMARY).fill()

    async def renew():
        return one.engine.frame

    one.hooks.renew = renew
    frames = len(one.of(Framed))
    await one.prepare()
    assert len(one.of(Framed)) == frames


async def test_what_was_taken_back_is_left_alone_until_it_must_be(talk):
    one = talk(SUMMARY, SUMMARY, auto_line="50%").fill()
    await one.prepare()
    undo(one.engine)
    await one.prepare()
    assert len(one.compacted) == 1
    one.engine.say("word " * 10_000)
    assert one.engine.fullness().is_blocked
    await one.prepare()
    assert len(one.compacted) == 2
    assert is_sound(one)


async def test_an_undone_collapse_is_no_veto_against_compacting(talk):
    one = talk(SUMMARY).fill()
    spilled = one.engine.record(
        Cleared(ids=(one.view.items[1].tool_uses()[0].id,), texts=("gone",))
    )
    undo(one.engine, spilled.n)
    await one.prepare()
    assert len(one.compacted) == 1


async def test_cancelling_leaves_the_session_as_it_was(talk):
    one = talk("text: half\nerror: stalled").fill()
    before, length = one.sent(), len(one.view.history)
    doing = asyncio.create_task(one.prepare())
    await one.model.stalled.wait()
    doing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await doing
    assert one.sent() == before
    assert [type(e).__name__ for e in one.view.history[length:]] == ["Forked"]


async def test_a_pinned_message_stays_word_for_word(talk):
    one = talk(SUMMARY).fill()
    pinned = one.view.items[3]
    one.engine.record(Pinned(targets=(pinned.id,)))
    await one.prepare()
    assert pinned in one.view.items
    assert is_sound(one)


async def test_a_manual_compaction_dwells_on_what_is_asked_for(talk):
    one = talk(SUMMARY).fill(tokens=8_000, waiting="")
    entry = await one.session.compact("the cookie handling")
    assert "the cookie handling" in str(one.model.requests[0].kwargs["messages"][-1])
    assert entry.trigger == "manual"
    assert "Go on with the work" not in text_of(entry.summary)


async def test_a_session_that_has_just_begun_is_not_compacted(talk):
    one = talk()
    one.engine.say("hello")
    with pytest.raises(NothingToCompact):
        await one.session.compact()
    one.answered()
    with pytest.raises(RequestRejected, match="not be shorter"):
        await one.session.compact()
    assert one.compacted == []


@pytest.mark.parametrize("model", [FREE, BINDS])
async def test_compacting_up_to_a_message_keeps_what_follows(talk, model):
    one = talk(SUMMARY, model=model)
    for number in range(6):
        one.turn(f"step {number}", thought=True)
    pivot = one.view.items[5]
    kept = one.view.items[6:]
    entry = await one.stage.compact(
        one.engine, CompactRequest(trigger="manual", kind="up_to", pivot=pivot.id)
    )
    assert (entry.kind, entry.kept) == ("up_to", (kept[0].id, kept[-1].id))
    assert [item.id for item in one.view.items[1:]] == [item.id for item in kept]
    thoughts = [b for m in one.view.messages() for b in m.content if is_thought(b)]
    assert bool(thoughts) == (model == FREE)
    assert "the earlier part of this conversation" in str(one.model.requests[0].kwargs["messages"])
    assert violations(one.view.messages()) == []


async def test_compacting_from_a_message_keeps_what_was_before(talk):
    one = talk(SUMMARY, model=BINDS)
    for number in range(6):
        one.turn(f"step {number}", thought=True)
    pivot = one.view.items[9]
    before = one.view.messages()
    entry = await one.stage.compact(
        one.engine, CompactRequest(trigger="manual", kind="from", pivot=pivot.id)
    )
    kept = one.view.items[:9]
    assert entry.kept == (kept[0].id, kept[-1].id)
    assert one.view.messages()[: len(kept) - 1] == before[: len(kept) - 1]
    assert 'begins with "step 3"' in str(one.model.requests[0].kwargs["messages"][-1])
    assert one.view.items[-1].id == entry.n


async def test_a_pivot_that_is_not_there_is_refused(talk):
    one = talk().fill(tokens=5_000)
    with pytest.raises(RequestRejected, match="explain"):
        await one.stage.compact(one.engine, CompactRequest(kind="from", pivot=9_999))


async def test_what_was_just_compacted_is_not_called_a_beginning(talk):
    one = talk(SUMMARY).fill(waiting="")
    await one.session.compact()
    with pytest.raises(NothingToCompact, match="already compacted"):
        await one.session.compact()


async def test_a_hooks_no_is_told_once_in_a_turn(talk):
    one = talk().fill()

    async def blocks(trigger, focus):
        return Before(blocked="not now")

    one.hooks.before = blocks
    await one.prepare()
    one.turn_open(id="a")
    await one.stage(one.engine)
    assert one.told == ["not compacted: not now"]
    one.answered()
    one.engine.say("and now?")
    await one.stage(one.engine)
    assert one.told == ["not compacted: not now"] * 2


async def test_hooks_add_instructions_or_say_no(talk):
    one = talk(SUMMARY).fill()

    async def adds(trigger, focus):
        return Before(focus=("Mention the weather.",))

    async def blocks(trigger, focus):
        return Before(blocked="not now")

    one.hooks.before = blocks
    await one.prepare()
    assert (one.compacted, one.told) == ([], ["not compacted: not now"])
    with pytest.raises(Blocked):
        await one.session.compact()
    assert not await one.stage.recover(one.engine, PromptTooLong("too long"))
    one.hooks.before = adds
    await one.prepare()
    assert "Mention the weather." in str(one.model.requests[0].kwargs["messages"][-1])


async def test_what_is_restored_goes_with_its_compaction(talk):
    one = talk(SUMMARY).fill()

    async def restore(segment):
        return (Text(text="auth.py as it is now"),)

    one.hooks.restore = restore
    await one.prepare()
    assert one.of(Restored)[0].compaction == one.compacted[0].n
    assert "auth.py as it is now" in str(one.view.messages())
    undo(one.engine)
    assert "auth.py as it is now" not in str(one.view.messages())


async def test_what_is_restored_gives_way_when_there_is_no_room(talk):
    one = talk(SUMMARY).fill()

    async def restore(segment):
        return (Text(text="word " * 20_000),)

    one.hooks.restore = restore
    await one.prepare()
    assert one.of(Restored) == []
    assert is_sound(one)


async def test_a_restoration_that_fails_does_not_cost_the_summary(talk):
    one = talk(SUMMARY).fill()

    async def restore(segment):
        raise OSError("the disk is gone")

    async def renew():
        raise OSError("the instructions are gone")

    one.hooks.restore, one.hooks.renew = restore, renew
    await one.prepare()
    assert one.compacted[0].by == "model"
    assert one.failed == ["compact: restore", "compact: frame"]


async def test_a_floor_above_the_line_is_itemised_and_costs_nothing(talk):
    one = talk(SUMMARY).fill(tokens=9_000, waiting="")
    one.engine.say("word " * 22_000)
    before = one.sent()
    with pytest.raises(
        ContextOverflow, match=r"message #\d+, not answered yet .*shorten the message"
    ):
        await one.prepare()
    assert one.model.requests == []
    assert one.sent() == before


async def test_a_floor_just_below_the_line_costs_nothing_either(talk):
    one = talk(SUMMARY).fill(tokens=9_000, waiting="")
    before = one.used
    one.engine.say("word " * 1_000)
    more = (one.line - 60) / (one.used - before)
    one.engine.say("word " * int(1_000 * (more - 1)))
    with pytest.raises(ContextOverflow):
        await one.prepare()
    assert one.model.requests == []


async def test_an_overflow_is_answered_by_a_shorter_question(talk):
    one = talk(SUMMARY, reactive_only=True).fill()
    error = PromptTooLong("too long", needed_tokens=30_000, allowed_tokens=20_000)
    assert await one.stage.recover(one.engine, error)
    assert one.compacted[0].trigger == "reactive"
    assert one.compacted[0].by == "model"
    sent = str(one.model.requests[0].kwargs["messages"])
    assert "step 1 of the login fix" not in sent.partition("The work pauses here")[0]
    assert one.used < one.line * 20_000 / 30_000


async def test_a_summary_is_told_shorter_when_a_long_message_needs_the_room(talk):
    one = talk(SUMMARY)
    for number in range(12):
        one.turn(f"step {number}: " + f"remember word{number} " * 90, words=900)
    one.engine.say("go on")
    await one.session.compact()
    while one.used < one.line:
        one.engine.say("word " * 400)
    await one.prepare()
    assert [c.trigger for c in one.compacted] == ["manual", "auto"]
    assert one.compacted[1].by == "digest"
    assert is_sound(one)


async def test_states_that_rest_on_a_message_are_recorded(talk):
    one = talk().fill()
    first, second = (i.id for i in one.view.items[:4] if not isinstance(i, Round))
    states = f"<states>\n#{first} cancelled, see #{second}\n#{second} done, see #99999\n</states>"
    one.model = type(one.model)(answer(SUMMARY[6:].replace("\n  ", "\n") + states), name=FREE)
    await one.prepare()
    assert [(d.message, d.state, d.rests_on) for d in one.of(Directed)] == [
        (first, "cancelled", second)
    ]


async def test_a_second_compaction_covers_the_first_summary(talk):
    one = talk(*[SUMMARY] * 5)
    asked = []
    for n in range(5):
        one.fill(waiting=f"question {n}: use port 80{n}")
        asked.append(f"question {n}: use port 80{n}")
        await one.prepare()
        one.answered()
        assert is_sound(one)
    assert len(one.compacted) == 5
    text = str(one.view.messages())
    assert all(words in text for words in asked)


async def test_nothing_that_a_fork_does_runs_the_stages(talk):
    one = talk(SUMMARY).fill()
    runs = []

    async def counting(engine):
        runs.append(engine)

    stages = (*one.session._layers.stages, counting)
    await one.engine.prepare(stages, max_output_tokens=100)
    assert (len(runs), len(one.model.requests)) == (1, 1)


async def test_a_failing_log_leaves_the_session_as_it_was(talk):
    one = talk(SUMMARY, SUMMARY).fill()
    before = one.sent()
    free = one.fill_disk()
    with pytest.raises(OSError, match="free some space"):
        await one.prepare()
    assert one.sent() == before
    free()
    await one.prepare()
    assert is_sound(one)
    assert isinstance(one.compacted[-1], Compacted)
    assert not [e for e in one.of(Failed) if "Traceback" in e.error]


async def test_after_a_pause_a_digest_is_sent_instead_of_everything_again(talk):
    one = talk(SUMMARY, window=0, auto_line="cost")
    one.fill(tokens=one.engine.fullness().window.cold_tokens + 1_000)
    await one.prepare()
    assert one.compacted == [], "below the threshold, while the cache is alive"
    one.answered(input_tokens=one.used)
    one.engine.say("back again")
    now = one.engine.monitor.clock()
    one.engine.monitor.clock = lambda: now + 301
    before = one.used
    await one.prepare()
    (entry,) = one.compacted
    assert (entry.by, entry.rule, one.model.requests) == ("digest", "compact-digest", [])
    assert entry.after_tokens < before / 2
    assert is_sound(one)
    undo(one.engine, entry.n)
    await one.prepare()
    assert len(one.compacted) == 1, "what was undone is not done again"
