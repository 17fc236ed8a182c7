"""The path of a turn: recording, preparing, finishing and repairing."""

import asyncio
import hashlib
from pathlib import Path

import pytest
from msgspec import structs

from longhold.core.log import Header, Log, load
from longhold.core.log.entries import (
    Asked,
    Began,
    Failed,
    Framed,
    Ran,
    Replied,
    Said,
    Section,
    Switched,
)
from longhold.core.messages import Image, Text, ToolResult, ToolUse, Usage
from longhold.core.models.protocol import Reply
from longhold.core.policy.threshold import Fullness
from longhold.core.settings import LogSettings, Settings
from longhold.core.turn.engine import Engine
from longhold.core.turn.repair import INTERRUPTED, NOT_RUN
from longhold.errors import Aborted, ContextOverflow, PrefixMoved, StoreError

MODEL = "claude-opus-4-6"


@pytest.fixture
def engine(tmp_path):
    """An engine with a frame and a model."""
    made = Engine(Log.create(tmp_path / "s.jsonl", Header(session="s")), Settings())
    made.record(Switched(model=MODEL))
    made.record(
        Framed(sections=(Section(name="a", text="be brief"),), tools=({"name": "b"}, {"name": "a"}))
    )
    yield made
    made.close()


def reply(*blocks, id="r1", prompt=1_000):
    return Reply(
        response_id=id,
        model=MODEL,
        content=blocks,
        stop_reason="end_turn",
        usage=Usage(input_tokens=prompt, output_tokens=7),
    )


async def test_a_request_has_the_frame_the_messages_and_its_markers(engine):
    engine.say("hi")
    request = await engine.prepare(max_output_tokens=100)
    kwargs = request.kwargs
    assert (kwargs["model"], kwargs["max_tokens"]) == (MODEL, 100)
    assert [tool["name"] for tool in kwargs["tools"]] == ["a", "b"]
    assert kwargs["system"] == [
        {"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}
    ]
    assert kwargs["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}
    assert isinstance(engine.view.history[-1], Asked)


async def test_the_next_request_extends_the_last(engine):
    engine.say("one")
    first = (await engine.prepare(max_output_tokens=9)).kwargs["messages"]
    engine.record_reply(reply(Text(text="two")))
    engine.say("three")
    second = (await engine.prepare(max_output_tokens=9)).kwargs["messages"]
    plain = [{"role": "user", "content": [{"type": "text", "text": "one"}]}]
    assert second[:1] == plain
    assert first[0]["content"][0]["text"] == "one"
    assert len(second) == 3


async def test_a_stage_that_fails_says_so_and_the_next_one_runs(engine):
    ran = []

    async def breaks(engine):
        raise TypeError("an int is no path")

    async def runs(engine):
        ran.append(engine)

    engine.say("hi")
    request = await engine.prepare((breaks, runs), max_output_tokens=9)
    [failed] = [entry for entry in engine.view.history if isinstance(entry, Failed)]
    assert failed.what.endswith("breaks") and failed.error == "TypeError: an int is no path"
    assert ran == [engine] and request.kwargs["messages"]


@pytest.mark.parametrize(
    "error", [ContextOverflow("full"), StoreError("no disk"), PrefixMoved("moved"), Aborted("stop")]
)
async def test_what_no_later_stage_can_mend_is_raised(engine, error):
    async def raises(engine):
        raise error

    engine.say("hi")
    with pytest.raises(type(error)):
        await engine.prepare((raises,), max_output_tokens=9)


async def test_a_cancelled_stage_is_cancelled(engine):
    async def waits(engine):
        raise asyncio.CancelledError

    engine.say("hi")
    with pytest.raises(asyncio.CancelledError):
        await engine.prepare((waits,), max_output_tokens=9)


async def test_everything_is_weighed_when_it_is_written(engine, tmp_path):
    engine.say("some words")
    engine.record_reply(reply(ToolUse(id="t", name="a", input={})))
    engine.take_result("t", "a result")
    entries = load(tmp_path / "s.jsonl").entries
    weighed = [e.measure for e in entries if isinstance(e, Said | Replied | Ran)]
    assert all(sum(vars_of(measure)) for measure in weighed)


def vars_of(measure):
    return [getattr(measure, name) for name in measure.__struct_fields__]


async def test_an_answer_says_how_full_the_context_is(engine):
    engine.say("hi")
    engine.record_reply(reply(Text(text="yes")))
    assert engine.fullness().used_tokens == 1_007


def test_a_margin_counts_only_where_the_window_could_be_full(engine):
    full = engine.fullness()
    most = full.window.blocking_tokens
    near = Fullness(used_tokens=most - 9, margin=lambda: 9, window=full.window)
    assert near.is_blocked
    assert not structs.replace(near, margin=lambda: 8).is_blocked
    far = Fullness(used_tokens=most // 3, margin=pytest.fail, window=full.window)
    assert not far.is_blocked


async def test_what_a_dead_process_left_open_is_answered_and_not_run(engine, tmp_path):
    engine.say("go")
    engine.record_reply(
        reply(ToolUse(id="x", name="a", input={}), ToolUse(id="y", name="a", input={}))
    )
    engine.record(Began(tool_use_id="x", tool="a"))
    engine.close()
    again = Engine(Log.open(tmp_path / "s.jsonl"), Settings())
    assert again.repair() == ["x", "y"]
    results = [entry for entry in again.view.history if isinstance(entry, Ran)]
    assert [result.content for result in results] == [INTERRUPTED, NOT_RUN]
    assert again.repair() == []
    again.close()


def test_the_body_of_a_huge_result_lies_in_a_file(tmp_path):
    settings = Settings(log=LogSettings(body_limit_bytes=1_024))
    one = Engine(Log.create(tmp_path / "s.jsonl", Header(session="s")), settings)
    one.say("go")
    one.record_reply(reply(ToolUse(id="../x", name="a", input={})))
    text = "zeile ü\n" * 5_000
    one.take_result("../x", text)
    ran = one.view.history[-1]
    assert isinstance(ran, Ran)
    assert len(ran.content) < 1_200
    body = Path(ran.file).read_bytes()
    assert body.decode() == text
    assert hashlib.sha256(body).hexdigest() == ran.sha256
    assert Path(ran.file).parent == tmp_path / "s" / "tool-results"
    one.close()


def test_a_huge_result_of_blocks_is_bounded_too(tmp_path):
    settings = Settings(log=LogSettings(body_limit_bytes=1_024))
    one = Engine(Log.create(tmp_path / "s.jsonl", Header(session="s")), settings)
    one.say("go")
    one.record_reply(reply(ToolUse(id="t", name="a", input={})))
    picture = Image(source={"type": "base64", "media_type": "image/png", "data": "AA=="})
    one.take_result("t", (Text(text="z" * 9_000), picture))
    ran = one.view.history[-1]
    assert len(ran.content[0].text) < 1_200
    assert ran.content[1] == picture
    one.close()


def test_the_same_answer_is_settled_once(engine):
    engine.say("hi")
    engine.record_reply(reply(Text(text="yes")))
    engine.record_reply(reply(Text(text="yes")))
    assert len(engine.view.messages()[-1].content) == 1


def test_no_block_can_make_a_line_of_the_log_unreadable(engine, tmp_path):
    odd = ToolResult(tool_use_id="x", content="y")
    picture = Image(source={"type": "base64", "media_type": "image/png", "data": "AA=="})
    engine.say((odd, Text(text="hi")))
    engine.record_reply(reply(picture, odd, Text(text="yes")))
    loaded = load(tmp_path / "s.jsonl")
    assert loaded.damage == []
    assert loaded.entries == engine.view.history
