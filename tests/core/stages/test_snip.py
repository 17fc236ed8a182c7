"""Messages marked as dropped leave the view in whole rounds, and can be restored."""

from weakref import WeakKeyDictionary

import pytest

from longhold.core.log import Header, Log
from longhold.core.log.entries import Compacted, Dropped, Pinned, Replied, Snipped, Switched, Undone
from longhold.core.messages import Text, Thinking, ToolUse, Usage
from longhold.core.messages.rules import violations
from longhold.core.settings import Settings
from longhold.core.stages.snip import Snip, drop, keep, plan_snip
from longhold.core.turn.engine import Engine
from longhold.errors import NotInHistory

BINDS, FREE = "claude-sonnet-5-5", "claude-opus-4-6"


SNIPS = WeakKeyDictionary()
"""The stage of each engine."""


@pytest.fixture
def make(tmp_path):
    """Make engines that snip, and close them."""
    engines = []

    def made(model=FREE, log=None):
        log = log or Log.create(tmp_path / f"{len(engines)}.jsonl", Header(session="s"))
        engine = Engine(log, Settings())
        SNIPS[engine] = Snip()
        engines.append(engine)
        if not engine.model:
            engine.record(Switched(model=model))
        return engine

    yield made
    for engine in engines:
        engine.close()


def turn(engine, text, *ids, size=10, thought=False):
    """Let the user say something and the model call tools about it; give the numbers."""
    numbers = [engine.say(text).n]
    for id in ids:
        blocks = (Thinking(thinking="hm", signature="c2ln"),) if thought else ()
        use = ToolUse(id=id, name="Read", input={"file_path": id})
        entry = Replied(response_id=id, content=(*blocks, use), model=engine.model)
        numbers += [engine.record(entry).n, engine.take_result(id, f"result {id} " * size).n]
    return numbers


def answer(engine, prompt=0):
    """Let the model answer, and report a size if it is given one."""
    usage = Usage(input_tokens=prompt, output_tokens=1) if prompt else None
    entry = Replied(
        response_id=f"e{len(engine.view.history)}",
        content=(Text(text="done"),),
        model=engine.model,
        stop_reason="end_turn",
        usage=usage,
    )
    return engine.record(entry).n


async def prepare(engine):
    return await engine.prepare((SNIPS[engine],), max_output_tokens=100)


def sent(engine):
    return str(engine.view.messages())


async def test_a_marked_message_leaves_with_the_next_request(make):
    engine = make()
    said, _, result = turn(engine, "first", "a")
    answer(engine)
    turn(engine, "second")
    drop(engine, [said, result], why="read by mistake")
    assert "first" in sent(engine)
    request = await prepare(engine)
    assert "first" not in str(request.kwargs) and "result a" not in str(request.kwargs)
    assert violations(engine.view.messages()) == []
    [snipped] = [e for e in engine.view.history if isinstance(e, Snipped)]
    assert (snipped.targets, snipped.why) == ((said, result), "read by mistake")


async def test_the_newest_turn_stays_until_there_is_a_newer_one(make):
    engine = make()
    numbers = turn(engine, "first", "a")
    drop(engine, numbers)
    await prepare(engine)
    assert "first" in sent(engine)
    answer(engine)
    turn(engine, "second")
    await prepare(engine)
    assert "first" not in sent(engine) and "second" in sent(engine)


async def test_a_second_run_adds_nothing(make):
    engine = make()
    drop(engine, turn(engine, "first")[:1])
    turn(engine, "second")
    await prepare(engine)
    await prepare(engine)
    assert sum(isinstance(e, Snipped) for e in engine.view.history) == 1


async def test_tokens_freed_count_at_once(make):
    engine = make()
    numbers = turn(engine, "first", "a", size=2_000)
    answer(engine, prompt=4_000)
    turn(engine, "second")
    before = engine.fullness().used_tokens
    assert before > 4_000
    drop(engine, numbers)
    await prepare(engine)
    assert engine.fullness().used_tokens < before - 3_000


async def test_undo_brings_the_exact_messages_back_and_they_stay(make):
    engine = make()
    numbers = turn(engine, "first", "a")
    answer(engine)
    turn(engine, "second")
    before = sent(engine)
    drop(engine, numbers)
    await prepare(engine)
    snipped = next(e for e in engine.view.history if isinstance(e, Snipped))
    engine.record(Undone(target=snipped.n))
    assert sent(engine) == before
    await prepare(engine)
    assert sent(engine) == before
    drop(engine, numbers[:1], by="tool")
    await prepare(engine)
    assert sent(engine) == before
    drop(engine, numbers)
    await prepare(engine)
    assert "first" not in sent(engine)


async def test_marks_and_snips_survive_a_restart(make):
    engine = make()
    first = turn(engine, "first")
    second = turn(engine, "second")
    drop(engine, first)
    await prepare(engine)
    drop(engine, second)
    engine.log.close()
    again = make(log=Log.open(engine.log.path))
    assert sent(again) == sent(engine) and "first" not in sent(again)
    await prepare(again)
    assert "second" in sent(again)
    turn(again, "third")
    await prepare(again)
    assert "second" not in sent(again)
    assert sum(isinstance(e, Snipped) for e in again.view.history) == 2


async def test_a_mark_can_be_taken_back_before_it_is_acted_on(make):
    engine = make()
    numbers = turn(engine, "first")
    drop(engine, numbers)
    keep(engine, numbers)
    turn(engine, "second")
    await prepare(engine)
    assert "first" in sent(engine)


async def test_bound_thinking_at_work_is_waited_for_and_then_dropped(make):
    engine = make(BINDS)
    numbers = turn(engine, "first", "a", thought=True)
    answer(engine)
    turn(engine, "second", "b", thought=True)
    drop(engine, numbers)
    await prepare(engine)
    assert "first" in sent(engine)
    answer(engine)
    turn(engine, "third")
    await prepare(engine)
    assert "first" not in sent(engine) and "Thinking" not in sent(engine)
    assert next(e for e in engine.view.history if isinstance(e, Snipped)).drops_thinking


def test_what_may_not_be_dropped_says_why(make):
    engine = make()
    said, _, result = turn(engine, "first", "a")
    with pytest.raises(NotInHistory, match="#99 is not in the view"):
        drop(engine, [99])
    engine.record(Pinned(targets=(said,)))
    with pytest.raises(NotInHistory, match="is pinned"):
        drop(engine, [said])
    summary = engine.record(Compacted(first=said + 1, last=result, summary=(Text(text="s"),))).n
    with pytest.raises(NotInHistory, match="undo the compaction instead"):
        drop(engine, [summary])
    assert not [e for e in engine.view.history if isinstance(e, Dropped)]


def test_a_pin_set_after_the_mark_holds(make):
    engine = make()
    said, *_ = turn(engine, "first")
    mark = drop(engine, [said])
    engine.record(Pinned(targets=(said,)))
    turn(engine, "second")
    assert plan_snip(engine.view, {said: mark}) is None
