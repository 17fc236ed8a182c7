"""When an entry may change messages that were already sent."""

import pytest

from longhold.core.log import Header, Log
from longhold.core.log.entries import Snipped, Switched
from longhold.core.messages import Text, Thinking, ToolUse, Usage
from longhold.core.models.protocol import Reply
from longhold.core.settings import Settings, WindowSettings
from longhold.core.stages.space import drops_thinking, may_move
from longhold.core.turn.engine import Engine

BINDS, FREE = "claude-sonnet-5-5", "claude-opus-4-6"
THOUGHT = Thinking(thinking="hm", signature="c2ln")


@pytest.fixture
def made(tmp_path):
    """Make engines with a model, and close them."""
    engines = []

    def make(model, settings=None):
        log = Log.create(tmp_path / f"{len(engines)}.jsonl", Header(session="s"))
        engines.append(Engine(log, settings or Settings()))
        engines[-1].record(Switched(model=model))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()


def call(engine, id, *blocks, prompt=100):
    """Let the model call a tool and give it a result."""
    engine.record_reply(
        Reply(
            response_id=f"r{id}",
            model=engine.model,
            content=(*blocks, ToolUse(id=id, name="Read", input={})),
            stop_reason="tool_use",
            usage=Usage(input_tokens=prompt, output_tokens=1),
        )
    )
    engine.take_result(id, "a result")


def answer(engine, text="done"):
    reply = Reply(
        response_id=f"end{len(engine.view.history)}",
        model=engine.model,
        content=(THOUGHT, Text(text=text)),
        stop_reason="end_turn",
        usage=Usage(input_tokens=100, output_tokens=1),
    )
    engine.record_reply(reply)


def test_between_turns_the_prefix_may_move(made):
    engine = made(BINDS)
    assert may_move(engine)
    engine.say("go")
    assert may_move(engine)
    call(engine, "a", THOUGHT)
    answer(engine)
    assert may_move(engine)
    engine.say("more")
    assert may_move(engine)


def test_thinking_that_is_at_work_makes_it_wait(made):
    engine = made(BINDS)
    engine.say("go")
    call(engine, "a", THOUGHT)
    assert not may_move(engine)
    engine.say("by the way", hidden=True)
    call(engine, "b")
    assert not may_move(engine)


def test_without_bound_thinking_nothing_waits(made):
    free, thoughtless = made(FREE), made(BINDS)
    for engine in (free, thoughtless):
        engine.say("go")
    call(free, "a", THOUGHT)
    call(thoughtless, "a")
    assert may_move(free) and may_move(thoughtless)
    engine = made(BINDS)
    engine.say("one")
    engine.say("two")
    call(engine, "a", THOUGHT)
    engine.record(Snipped(targets=(2,), drops_thinking=True))
    assert may_move(engine)


def test_a_full_window_does_not_wait(made):
    engine = made(BINDS, Settings(window=WindowSettings(limit_tokens=10_000)))
    engine.say("go")
    call(engine, "a", THOUGHT, prompt=9_990)
    assert may_move(engine)


@pytest.mark.parametrize(("model", "drops"), [(BINDS, True), (FREE, False)])
def test_only_bound_thinking_is_dropped(made, model, drops):
    assert drops_thinking(made(model)) is drops
