"""What a new process can read of the previous process's cache."""

import pytest

from longhold.core.log import Header, Log
from longhold.core.log.entries import Cleared, Failed, Framed, Section, Switched, Undone
from longhold.core.messages import Text, ToolUse, Usage
from longhold.core.models.protocol import Reply
from longhold.core.settings import Settings
from longhold.core.turn.engine import Engine
from longhold.core.view.entry_list import BLOCK, RECENT

MODEL = "claude-opus-4-6"
CALLS = 30
"""More than a provider looks back over."""


@pytest.fixture
def path(tmp_path):
    """A log whose last answer called many tools, all of which have run."""
    engine = Engine(Log.create(tmp_path / "s.jsonl", Header(session="s")), Settings())
    engine.record(Switched(model=MODEL))
    engine.record(Framed(sections=(Section(name="a", text="be brief"),)))
    yield tmp_path / "s.jsonl", engine
    engine.close()


def answer(id, *blocks):
    usage = Usage(input_tokens=5_000)
    return Reply(response_id=id, model=MODEL, content=blocks, stop_reason="end_turn", usage=usage)


async def round_of(engine, id, uses):
    """Ask, and let as many tools be called and answered."""
    await engine.prepare(max_output_tokens=9)
    calls = [ToolUse(id=f"{id}-{i}", name="Read", input={}) for i in range(uses)]
    engine.record_reply(answer(id, Text(text="go"), *calls))
    for use in calls:
        engine.take_result(use.id, "a result")


def reopened(path, engine):
    engine.close()
    return Engine(Log.open(path), Settings())


async def marked(engine):
    """Prepare a call; say which messages it marks."""
    request = await engine.prepare(max_output_tokens=9)
    return [
        i
        for i, message in enumerate(request.kwargs["messages"])
        if any("cache_control" in block for block in message["content"])
    ]


async def test_a_call_that_was_never_answered_left_nothing(path):
    log, engine = path
    engine.say("start")
    await round_of(engine, "r1", CALLS)
    await engine.prepare(max_output_tokens=9)
    again = reopened(log, engine)
    assert await marked(again) == [0, 2]
    again.close()


async def test_what_was_cleared_between_two_processes_has_moved(path):
    log, engine = path
    engine.say("start")
    for number in range(4):
        await round_of(engine, f"r{number}", 8)
    await round_of(engine, "last", 1)
    engine.record(Cleared(ids=("r1-0",), texts=("(gone)",)))
    again = reopened(log, engine)
    assert again.prefix().cached_to is None
    assert await marked(again) == [3, 10]
    again.close()


async def test_what_was_taken_back_after_the_last_answer_has_moved(path):
    log, engine = path
    engine.say("start")
    await round_of(engine, "r0", 8)
    cleared = engine.record(Cleared(ids=("r0-0",), texts=("(gone)",)))
    await round_of(engine, "r1", 8)
    engine.record(Undone(target=cleared.n))
    again = reopened(log, engine)
    assert again.prefix().cached_to is None
    again.close()


async def test_a_session_that_only_grew_is_read_to_where_it_was_marked(path):
    log, engine = path
    engine.say("start")
    await round_of(engine, "r0", 2)
    await round_of(engine, "r1", 2)
    again = reopened(log, engine)
    assert again.prefix().cached_to == (2, 1)
    again.close()


async def test_an_answer_far_back_in_the_log_is_found(path):
    log, engine = path
    engine.say("start")
    await round_of(engine, "r1", CALLS)
    for number in range(RECENT + BLOCK):
        engine.record(Failed(what="test", error=str(number)))
    again = reopened(log, engine)
    again.say("go on")
    assert await marked(again) == [0, len(again.view.messages()) - 1]
    again.close()
