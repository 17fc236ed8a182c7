"""However a model fails, the session stays below the threshold: each fallback, and at random."""

import asyncio
import os
import resource

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos_model import ChaosModel
from compacting import SECTIONS, SUMMARY, Talk, answer
from longhold.core.log.entries import Compacted, Failed
from longhold.core.log.entry_lines import describe_entry
from longhold.core.messages import text_of
from longhold.core.messages.rules import violations
from longhold.core.models.retry import Retries
from longhold.core.models.scripted import ScriptedModel
from longhold.core.stages.compact import compact
from longhold.core.stages.compact.draft import NotShorter
from longhold.core.stages.compact.owner import Before
from longhold.core.stages.compact.summary import OUTPUT_TOKENS
from longhold.core.turn.undo import undo

CUT_OFF = answer(stop="max_tokens")
CALL = 'tool: Read {"path": "a.py"}'
EMPTY = "stop: end_turn"
GARBAGE = "text: I am sorry, Dave."
ERRORS = ["error: broken", "error: 400", "error: refused", "error: too-long"]
NOBODY = ["error: 401", "error: 529", "error: 429", "error: 500"]
SPOILT = [CUT_OFF, CALL, EMPTY, GARBAGE, "text: x\nstop: refusal", *ERRORS]


def is_sound(one):
    """The session goes on under the line, and no rule of the API is broken."""
    return one.used < one.line and violations(one.view.messages()) == []


@pytest.mark.parametrize("spoilt", SPOILT)
async def test_a_fork_that_fails_is_followed_by_a_direct_call(talk, spoilt):
    one = talk(spoilt, SUMMARY).fill()
    await one.prepare()
    assert one.compacted[0].why.startswith("compacted")
    assert "(direct)" in one.compacted[0].why
    assert one.failed == ["compact: fork"]
    assert is_sound(one)


async def test_where_nobody_answers_little_time_is_spent_on_asking(talk):
    one = talk(*["error: 529"] * 12).fill()
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    one.forks.retries, one.forks.sleep = Retries(), sleep
    await one.prepare()
    assert one.compacted[0].by == "digest"
    assert len(one.model.requests) == 2
    assert sum(waits) <= 3


async def test_a_hiccup_is_tried_once_more(talk):
    one = talk("error: 529", SUMMARY).fill()
    one.forks.retries = Retries(base_seconds=0.0)
    await one.prepare()
    assert one.compacted[0].by == "model"


async def test_a_direct_call_is_short_and_asks_little(talk):
    one = talk(GARBAGE, SUMMARY).fill()
    await one.prepare()
    sent = one.model.requests[1].kwargs
    assert "tools" not in sent
    assert sent["system"][0]["text"].startswith("You write summaries")
    assert sent["thinking"] == {"type": "disabled"}
    assert sent["max_tokens"] == 4_000
    assert {b["type"] for m in sent["messages"] for b in m["content"]} == {"text"}


async def test_what_is_too_long_loses_its_oldest_rounds_three_times(talk):
    one = talk(*["error: too-long 30000 20000"] * 2, *["error: too-long"] * 3, *[SUMMARY] * 9)
    one.fill()
    await one.prepare()
    sizes = [len(r.kwargs["messages"]) for r in one.model.requests[1:5]]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 4
    assert one.compacted[0].by == "digest"
    assert one.failed == ["compact: fork", "compact: direct"]


@pytest.mark.parametrize("error", NOBODY)
async def test_when_nobody_answers_no_other_rung_waits(talk, error):
    one = talk(error).fill()
    await one.prepare()
    assert (one.compacted[0].by, len(one.model.requests)) == ("digest", 1)
    assert is_sound(one)


async def test_a_hanging_model_is_given_up(talk):
    one = talk(*["text: half\nerror: stalled"] * 3).fill()
    object.__setattr__(one.settings.compact, "rung_seconds", 0.05)
    await asyncio.wait_for(one.prepare(), 5)
    assert one.compacted[0].by == "digest"
    assert one.failed == ["compact: fork", "compact: direct"]
    assert is_sound(one)


async def test_three_failures_stop_models_and_a_wish_brings_them_back(talk):
    one = talk(*["error: 529"] * 3, SUMMARY, SUMMARY)
    for _ in range(4):
        await one.fill().prepare()
        one.answered()
        assert is_sound(one)
    assert [c.by for c in one.compacted] == ["digest"] * 4
    assert len(one.model.requests) == 3
    one.fill(tokens=8_000, waiting="")
    assert (await one.session.compact()).by == "model"
    await one.fill().prepare()
    assert one.compacted[-1].by == "model"


async def test_a_hook_that_hangs_or_fails_takes_its_time_and_no_more(talk, monkeypatch):
    one = talk(SUMMARY).fill()
    said, is_told = [], asyncio.Event()

    async def slow(trigger, focus):
        await is_told.wait()
        return Before()

    def tell(line):
        said.append(line)
        is_told.set()

    one.hooks.before, one.hooks.progress = slow, tell
    monkeypatch.setattr(compact, "PROGRESS_SECONDS", 0.02)
    await one.prepare()
    assert one.compacted[0].by == "model"
    assert said[0] == "compacting, 0 s"


async def test_stopping_the_fork_stops_the_compaction(talk):
    one = talk("text: half\nerror: stalled", SUMMARY).fill()
    before = one.sent()
    doing = asyncio.create_task(one.prepare())
    await one.model.stalled.wait()
    one.forks.abort.set()
    with pytest.raises(Exception, match="stopped"):
        await doing
    assert one.sent() == before
    assert (one.compacted, len(one.model.requests)) == ([], 1)


ANY = st.sampled_from([SUMMARY, *SPOILT, *NOBODY, "error: too-long 30000 20000"])


@given(st.lists(ANY, min_size=0, max_size=8), st.integers(1, 3))
@settings(max_examples=30)
def test_whatever_the_model_does_at_any_step(tmp_path_factory, scripts, times):
    async def play():
        one = Talk(tmp_path_factory.mktemp("any"), *scripts)
        try:
            for _ in range(times):
                one.fill()
                before, history = one.sent(), list(one.view.history)
                await one.prepare()
                assert is_sound(one)
                assert one.view.history[: len(history)] == history
                entry = one.compacted[-1]
                assert "what now?" in str(one.view.messages()[-1])
                undo(one.engine, entry.n)
                assert one.sent() == before
                one.session.redo(entry.n)
                one.answered()
        finally:
            one.session.close()

    asyncio.run(play())


@given(st.integers(0, 10_000))
@settings(max_examples=30)
def test_whatever_goes_wrong_on_the_way(tmp_path_factory, seed):
    async def play():
        one = Talk(tmp_path_factory.mktemp("chaos"))
        inner = ScriptedModel("\n---\n".join([SUMMARY] * 20), name=one.model.name)
        one.model = ChaosModel(inner, seed=seed, rate=0.7)
        object.__setattr__(one.settings.compact, "rung_seconds", 0.05)
        try:
            for _ in range(3):
                one.fill()
                before = one.sent()
                await one.prepare()
                assert is_sound(one)
                undo(one.engine)
                assert one.sent() == before
                one.session.redo()
                one.answered()
            assert len(one.of(Compacted)) == 3
            assert all(isinstance(entry.error, str) for entry in one.of(Failed))
        finally:
            one.session.close()

    asyncio.run(play())


async def test_a_summary_that_is_one_is_taken_as_it_is(talk):
    one = talk(SUMMARY).fill()
    await one.prepare()
    text = text_of(one.compacted[0].summary)
    assert "a draft" not in text
    assert "## 8. Current work\nauth.py was changed and tested." in text
    assert SECTIONS not in text


async def test_a_summary_on_a_fork_may_be_longer_than_the_conversations_answers(talk):
    one = talk(SUMMARY, window=200_000)
    one.fill(tokens=20_000, waiting="")
    assert (await one.session.compact()).why.startswith("compacted")
    assert one.engine.output_limit() < OUTPUT_TOKENS
    assert one.model.requests[-1].kwargs["max_tokens"] == OUTPUT_TOKENS


async def test_a_person_who_asks_for_what_cannot_be_shorter_pays_nothing(talk):
    one = talk(SUMMARY)
    one.engine.say(" ".join(f"Build part {n} as drawn on page {n * 7}." for n in range(400)))
    one.answered("Yes.")
    one.engine.say("and quickly")
    one.answered("Of course.")
    with pytest.raises(NotShorter, match="nothing was changed"):
        await one.session.compact()
    assert one.model.requests == []


async def test_the_focus_of_a_compaction_is_in_its_entry_and_explained(talk):
    one = talk(SUMMARY).fill(tokens=8_000, waiting="")
    entry = await one.session.compact("the cookie")
    assert entry.focus == "the cookie"
    assert "with the focus 'the cookie'" in describe_entry(entry)


async def test_without_a_free_descriptor_history_is_digested(talk):
    one = talk(SUMMARY, *["error: 529"] * 9).fill()
    await one.prepare()  # all modules are loaded
    one.answered("an answer")
    one.fill()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.open(os.devnull, os.O_RDONLY)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, limits[1]))
    try:
        await one.prepare()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert [entry.by for entry in one.compacted] == ["model", "digest"]
    assert is_sound(one)
