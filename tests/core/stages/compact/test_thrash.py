"""A window that keeps filling up: the cause is named and cleared."""

import pytest
from msgspec import structs

from compacting import SUMMARY
from longhold.core.log.entries import Cleared, Compacted, Failed
from longhold.core.messages import Text, text_of
from longhold.core.messages.rules import violations
from longhold.core.stages.compact.owner import CompactRequest
from longhold.core.stages.compact.thrash import CALM, WHAT, count_streaks, is_thrashing
from longhold.core.turn.undo import undo
from longhold.errors import ContextOverflow


async def refilled(one, times):
    """Compact, and fill the window again within an answer, several times."""
    for _ in range(times):
        one.turn("read it all", words=21_000, id=f"big{len(one.view.history)}")
        one.engine.say("go on")
        await one.prepare()
        one.answered(input_tokens=one.used)


async def test_what_refills_the_window_is_named_and_cleared(talk):
    one = talk(*[SUMMARY] * 9)
    one.engine.limits_chars = {"Read": None}
    await refilled(one, 4)
    (thrash,) = [e for e in one.of(Failed) if e.what == "thrash"]
    assert "the result of Read /src/big" in thrash.error
    assert thrash.error in one.told
    (cleared,) = one.of(Cleared)
    assert "ask for less of it at a time" in cleared.texts[0]
    assert len(one.compacted) == 3
    assert one.used < one.line
    assert violations(one.view.messages()) == []


async def test_files_that_are_restored_each_time_are_restored_no_more(talk):
    one = talk(*[SUMMARY] * 9)

    async def restore(segment):
        return (Text(text="word " * 5_000),)

    one.hooks.restore = restore
    one.fill()
    for _ in range(5):
        await one.prepare()
        one.answered(input_tokens=one.used)
        for _ in range(5):
            one.turn("a little more", words=3_000)
        one.engine.say("go on")
    assert any(e.what == "thrash" and "restored after each" in e.error for e in one.of(Failed))
    assert "word word" not in text_of(one.view.items[1].content)


async def quick(one, times):
    """Compact and fill up again with small things, several times."""
    for _ in range(times):
        one.fill(waiting="go on")
        await one.prepare()
        one.answered(input_tokens=one.used)


async def test_the_entry_says_what_was_done(talk):
    one = talk(*[SUMMARY] * 9)
    one.engine.limits_chars = {"Read": None}
    await refilled(one, 4)
    (thrash,) = [e for e in one.of(Failed) if e.what == WHAT]
    assert thrash.error.endswith("was cleared")


async def test_many_small_things_are_told_from_the_log_without_a_call(talk):
    one = talk(*[SUMMARY] * 3)
    await quick(one, 4)
    assert [entry.by for entry in one.compacted] == ["model"] * 3 + ["digest"]
    assert "from the log, at no cost" in one.of(Failed)[-1].error


async def test_after_a_second_streak_no_model_is_asked_by_itself(talk):
    one = talk(*[SUMMARY] * 40)
    await quick(one, 7)
    assert one.failed.count(WHAT) == 2
    assert "no model writes summaries" in [e for e in one.of(Failed) if e.what == WHAT][-1].error
    asked = len(one.model.requests)
    await quick(one, 2)
    assert len(one.model.requests) == asked
    one.turn("more", words=3_000)
    await one.session.compact()
    assert len(one.model.requests) == asked + 1


async def test_if_nothing_helps_the_work_stops_with_the_reason(talk):
    one = talk(*[SUMMARY] * 40)
    with pytest.raises(
        ContextOverflow, match=r"does not help\. By kind: .*the result of Read /src/"
    ):
        await quick(one, 20)
    assert one.failed.count(WHAT) == 3


async def test_a_compaction_that_was_taken_back_does_not_count(talk):
    one = talk(*[SUMMARY] * 9)
    for _ in range(5):
        one.fill(waiting="go on")
        await one.session._layers.compact.compact(one.engine, CompactRequest())
        one.answered(input_tokens=one.used)
        undo(one.engine)
    assert not is_thrashing(one.view.history, one.view.in_force.dead, one.engine.fullness())


async def test_instructions_that_leave_no_room_are_named(talk):
    one = talk(*[SUMMARY] * 9)
    one.engine.record(structs.replace(one.engine.frame, n=0, instructions="rule " * 9_000))
    await quick(one, 4)
    (thrash,) = [e for e in one.of(Failed) if e.what == WHAT]
    assert "by instructions in every request (" in thrash.error


async def test_a_window_that_fills_slowly_is_no_thrashing(talk):
    one = talk(*[SUMMARY] * 9)
    for _ in range(5):
        one.fill()
        await one.prepare()
        for _ in range(5):
            one.answered(input_tokens=one.used)
            one.engine.say("next")
    assert len(one.compacted) == 5
    assert "thrash" not in one.failed


def made(before, after):
    return Compacted(
        first=1,
        last=2,
        summary=(Text(text="so it was"),),
        before_tokens=before,
        after_tokens=after,
    )


@pytest.mark.parametrize(("after", "is_seen"), [(16_000, True), (8_000, False)])
async def test_compactions_that_make_next_to_no_room_are_seen_however_many_answers_lie_between(
    talk, after, is_seen
):
    one = talk().fill(waiting="")
    for _ in range(4):
        one.engine.record(made(one.line, after))
        for _ in range(9):
            one.answered(input_tokens=one.line)
    assert is_thrashing(one.view.history, one.view.in_force.dead, one.engine.fullness()) is is_seen


def test_streaks_that_were_stopped_long_ago_are_forgotten():
    stopped = [Failed(what=WHAT, error="again and again")] * 2
    assert count_streaks(stopped) == 2
    assert count_streaks([*stopped, *[made(100, 50)] * CALM]) == 2
    assert count_streaks([*stopped, *[made(100, 50)] * (CALM + 1)]) == 0
