"""How a chat endpoint's chunks become blocks and a reply."""

import pytest

from longhold.core.messages import Text, Thinking, ToolUse, Usage
from longhold.core.models.assemble import ChatAssembly
from longhold.core.models.protocol import BlockFinished, Finished, Started, TextDelta, ThinkingDelta
from longhold.core.wire.chat import decode_usage
from longhold.errors import StreamBroken


def chunk(reason=None, **delta):
    choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
    return {"id": "c1", "model": "gpt", "choices": choices}


def call(index=0, **part):
    function = {key: part.pop(key) for key in ("name", "arguments") if key in part}
    return {"index": index, **part, "function": function}


def events_of(*chunks):
    assembly = ChatAssembly()
    events = [event for item in chunks for event in assembly.feed(item)]
    return [*events, *assembly.end()]


def reply_of(*chunks):
    last = events_of(*chunks)[-1]
    assert isinstance(last, Finished)
    return last.reply


def test_text_comes_as_deltas_then_a_block_then_a_reply():
    events = events_of(chunk(role="assistant", content=""), chunk(content="Hi"), chunk("stop"))
    kinds = [type(event).__name__ for event in events if type(event).__name__ != "Pulse"]
    assert kinds == ["Started", "TextDelta", "BlockFinished", "Finished"]
    assert events[-1].reply.content == (Text(text="Hi"),)
    assert events[-1].reply.stop_reason == "end_turn"


def test_a_tool_call_is_joined_over_chunks():
    reply = reply_of(
        chunk(content="Look"),
        chunk(tool_calls=[call(id="t1", name="Read", arguments="")]),
        chunk(tool_calls=[call(arguments='{"p":')]),
        chunk(tool_calls=[call(arguments="1}")]),
        chunk("tool_calls"),
    )
    assert reply.content == (Text(text="Look"), ToolUse(id="t1", name="Read", input={"p": 1}))
    assert reply.stop_reason == "tool_use"


def test_calls_that_interleave_do_not_mix():
    reply = reply_of(
        chunk(tool_calls=[call(0, id="a", name="A", arguments='{"x"')]),
        chunk(tool_calls=[call(1, id="b", name="B", arguments='{"y"')]),
        chunk(tool_calls=[call(0, arguments=":1}"), call(1, arguments=":2}")]),
        chunk("tool_calls"),
    )
    assert [block.input for block in reply.content] == [{"x": 1}, {"y": 2}]


def test_calls_that_share_a_number_are_told_by_id():
    reply = reply_of(
        chunk(tool_calls=[call(0, id="a", name="A", arguments="{}")]),
        chunk(tool_calls=[call(0, id="b", name="B", arguments="{}")]),
        chunk("stop"),
    )
    assert [block.id for block in reply.content] == ["a", "b"]
    assert reply.stop_reason == "tool_use"


def test_a_call_without_an_id_gets_one_of_its_own():
    reply = reply_of(chunk(tool_calls=[call(0, name="A"), call(1, name="B")]), chunk("tool_calls"))
    assert [block.id for block in reply.content] == ["call_c1_0", "call_c1_1"]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_a_thinking_block(field):
    events = events_of(chunk(**{field: "hm"}), chunk(content="so"), chunk("stop"))
    assert [type(event) for event in events if not isinstance(event, Started)][:3] == [
        ThinkingDelta,
        BlockFinished,
        TextDelta,
    ]
    assert events[-1].reply.content == (Thinking(thinking="hm"), Text(text="so"))


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("length", "max_tokens"), ("content_filter", "refusal"), ("novel", "novel")],
)
def test_reasons_to_stop_are_translated(theirs, ours):
    assert reply_of(chunk(content="x"), chunk(theirs)).stop_reason == ours


def test_a_refusal_is_text_and_a_reason():
    reply = reply_of(chunk(refusal="No."), chunk("stop"))
    assert (reply.content, reply.stop_reason) == ((Text(text="No."),), "refusal")


def test_cached_tokens_are_taken_out_of_the_prompt():
    raw = {
        "prompt_tokens": 100,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
    }
    usage = decode_usage(raw)
    assert (usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens) == (10, 60, 30)
    assert usage.prompt_tokens == 100


def test_usage_comes_after_the_reason():
    last = {"id": "c1", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    usage = reply_of(chunk(content="x"), chunk("stop"), last).usage
    assert usage == Usage(input_tokens=3, output_tokens=2)


@pytest.mark.parametrize("chunks", [(), (chunk(content="half"),)])
def test_an_end_without_a_reason_breaks_the_stream(chunks):
    with pytest.raises(StreamBroken):
        events_of(*chunks)
