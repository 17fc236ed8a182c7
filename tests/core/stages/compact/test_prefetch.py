"""A summary prepared in the background: taken at the line, thrown away when the past moved."""

import asyncio
from dataclasses import replace

import pytest

from casting import until
from compacting import BINDS, SUMMARY
from longhold.core.log.entries import Cleared, Compacted, Failed
from longhold.core.messages import text_of
from longhold.core.messages.rules import violations
from longhold.core.settings import CompactSettings
from longhold.core.stages.compact.owner import Before
from longhold.core.stages.compact.ready import PREFETCH


async def begun(one, thought=False, is_asked=lambda: False):
    """Bring a session to the lower line, and let the background work until it ends or hangs."""
    number = 0
    while one.used < 0.95 * one.line:
        number += 1
        one.turn(f"step {number} of the login fix", words=150, thought=thought)
    one.engine.say("a question")
    await one.prepare()
    one.answered("a first answer")
    one.engine.observe_usage()  # without a cached prompt nothing is prepared
    one.engine.say("another question")
    await one.prepare()
    job = one.stage.load()._prefetch._job
    await until(lambda: is_asked() or one.model.stalled.is_set() or not job.is_busy)
    one.answered("an answer")


async def test_at_the_line_nobody_waits(talk):
    one = talk(SUMMARY, ahead=True)
    await begun(one)
    assert len(one.model.requests) == 1
    one.fill(waiting="and now?")
    await one.prepare()
    (entry,) = one.compacted
    assert len(one.model.requests) == 1
    assert "prepared in the background" in entry.why
    assert entry.usage == one.calls[0].usage
    assert entry.kept is not None
    assert "an answer" in str(one.view.messages())
    assert "kept word for word" in text_of(entry.summary)
    assert one.used < one.line
    assert violations(one.view.messages()) == []


async def test_one_that_the_past_moved_under_is_thrown_away(talk):
    one = talk(SUMMARY, SUMMARY, ahead=True)
    await begun(one)
    use = one.view.items[1].tool_uses()[0]
    one.engine.record(Cleared(ids=(use.id,), texts=("gone",)))
    one.fill()
    await one.prepare()
    assert "(fork)" in one.compacted[0].why
    (failed,) = [e for e in one.view.history if getattr(e, "what", "") == "compact: ahead"]
    tokens = one.calls[0].usage.total_tokens
    assert failed.error == f"thrown away ({tokens:,} tokens): what it covers was changed since"


async def test_a_result_that_goes_to_disk_later_moves_nothing(talk):
    one = talk(SUMMARY, ahead=True)
    await begun(one)
    one.turn("a long one", words=3_000, tool="Bash")
    assert any(type(e).__name__ == "Spilled" for e in one.view.history)
    one.fill()
    await one.prepare()
    assert "prepared in the background" in one.compacted[0].why


async def test_one_that_fails_is_followed_by_the_ladder(talk):
    one = talk("error: 529", SUMMARY, ahead=True)
    await begun(one)
    one.fill()
    await one.prepare()
    assert one.failed == ["compact: ahead"]
    assert "(fork)" in one.compacted[0].why


@pytest.mark.parametrize("error", [RuntimeError("odd"), OSError("disk"), KeyError("x"), None])
async def test_whatever_goes_wrong_in_the_background_stays_there(talk, error):
    one = talk(SUMMARY, SUMMARY, ahead=True)

    async def broken(request):
        one.ask = one.forks.ask
        if error is None:
            raise asyncio.CancelledError
        raise error

    one.ask = broken
    await begun(one)
    one.fill()
    await one.prepare()
    assert one.failed == ["compact: ahead"]
    assert "(fork)" in one.compacted[0].why


async def test_one_that_hangs_is_given_up_after_its_time(talk):
    one = talk(SUMMARY, ahead=True, rung_seconds=0.2)
    asked, hanging = asyncio.Event(), asyncio.Event()

    async def hang(request):
        one.ask = one.forks.ask
        asked.set()
        await hanging.wait()

    one.ask = hang
    await begun(one, is_asked=asked.is_set)
    one.fill()
    await one.prepare()
    assert [e.error for e in one.of(Failed)] == ["it took too long"]
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_cancelling_whoever_waits_for_it_cancels_it(talk):
    one = talk(SUMMARY, ahead=True)
    asked, hanging = asyncio.Event(), asyncio.Event()

    async def hang(request):
        one.ask = one.forks.ask
        asked.set()
        await hanging.wait()

    one.ask = hang
    await begun(one, is_asked=asked.is_set)
    one.fill()
    before = len(one.view.history)
    waiting = asyncio.create_task(one.prepare())
    await until(
        lambda: not one.stage.load()._prefetch.state(one.engine)
    )  # it was taken, and is waited for
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.sleep(0)
    assert len(one.view.history) == before


async def test_thinking_at_work_is_waited_for(talk):
    one = talk(SUMMARY, ahead=True, model=BINDS, auto_line="60%")
    await begun(one, thought=True)
    one.fill(waiting="")
    one.engine.say("look again")
    one.turn_open(thought=True)
    await one.prepare()
    assert one.compacted == []
    one.answered("seen")
    one.engine.say("and now?")
    await one.prepare()
    assert "prepared in the background" in one.compacted[0].why


async def test_hooks_are_asked_before_it_is_begun(talk):
    one = talk(SUMMARY, ahead=True)
    asked = []

    async def before(trigger, focus):
        asked.append(trigger)
        return Before(focus=("Mention the weather.",))

    one.hooks.before = before
    await begun(one)
    one.fill()
    await one.prepare()
    assert asked == ["auto"]
    assert "Mention the weather." in str(one.model.requests[0].kwargs["messages"][-1])
    assert len(one.of(Compacted)) == 1


async def test_closing_stops_it(talk):
    one = talk("text: half\nerror: stalled", ahead=True)
    await begun(one)
    others = asyncio.all_tasks() - {asyncio.current_task()}
    assert others
    one.session.close()
    await asyncio.wait(others, timeout=2)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_one_that_was_paid_and_never_used_is_told_at_the_end(talk):
    one = talk(SUMMARY, ahead=True)
    await begun(one)
    await until(lambda: one.calls)
    one.session.close()
    (failed,) = [entry for entry in one.of(Failed) if entry.what == PREFETCH]
    paid = f"{one.calls[0].usage.total_tokens:,} tokens"
    assert failed.error == f"thrown away ({paid}): the session ended before it was needed"
    assert f"a summary prepared ahead was {failed.error}" in one.told


@pytest.mark.parametrize("setting", [{"ahead": False}, {"model": False}])
async def test_it_can_be_switched_off(talk, setting):
    one = talk()
    one.engine.settings = replace(one.settings, compact=CompactSettings(**setting))
    await begun(one)
    assert one.model.requests == []
