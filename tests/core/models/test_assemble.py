"""How events of the Messages API become blocks and a reply."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.core.messages import INVALID_INPUT, Opaque, Text, Thinking, ToolUse, Usage
from longhold.core.models.assemble import Assembly
from longhold.core.models.protocol import BlockFinished, Finished, Pulse, Started, TextDelta
from longhold.core.wire.messages import parse_input
from longhold.errors import StreamBroken

START = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [],
        "model": "claude-x",
        "stop_reason": None,
        "usage": {"input_tokens": 7, "cache_read_input_tokens": 90, "output_tokens": 1},
    },
}
STOP = {"type": "message_stop"}


def end(reason="end_turn", **beside):
    return {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": {"output_tokens": 12},
        **beside,
    }


def opened(index, **block):
    return {"type": "content_block_start", "index": index, "content_block": block}


def grew(index, **delta):
    return {"type": "content_block_delta", "index": index, "delta": delta}


def closed(index):
    return {"type": "content_block_stop", "index": index}


TEXT = (opened(0, type="text", text=""), grew(0, type="text_delta", text="Hi"), closed(0))


def feed(*events):
    assembly = Assembly()
    return [out for event in events for out in assembly.feed(event)]


def reply_of(*events):
    last = feed(*events)[-1]
    assert isinstance(last, Finished)
    return last.reply


def test_text_comes_as_deltas_then_a_block_then_a_reply():
    events = [event for event in feed(START, *TEXT, end(), STOP) if not isinstance(event, Pulse)]
    kinds = [type(event) for event in events]
    assert kinds == [Started, TextDelta, BlockFinished, Finished]
    assert events[-1].reply.content == (Text(text="Hi"),)


def test_usage_of_the_end_is_laid_over_usage_of_the_start():
    usage = reply_of(START, *TEXT, end(), STOP).usage
    assert usage == Usage(input_tokens=7, cache_read_tokens=90, output_tokens=12)


def test_a_null_in_the_last_usage_does_not_erase_a_count():
    last = {**end(), "usage": {"output_tokens": 3, "cache_read_input_tokens": None}}
    assert reply_of(START, *TEXT, last, STOP).usage.cache_read_tokens == 90


def test_tool_input_is_joined_and_parsed():
    block = (
        opened(0, type="tool_use", id="t1", name="Read", input={}),
        grew(0, type="input_json_delta", partial_json='{"pa'),
        grew(0, type="input_json_delta", partial_json='th": "a"}'),
        closed(0),
    )
    reply = reply_of(START, *block, end("tool_use"), STOP)
    assert reply.content == (ToolUse(id="t1", name="Read", input={"path": "a"}),)
    assert reply.stop_reason == "tool_use"


def test_tool_input_that_is_cut_short_is_kept_as_it_came():
    block = (
        opened(0, type="tool_use", id="t1", name="Read", input={}),
        grew(0, type="input_json_delta", partial_json='{"path": "a'),
        closed(0),
    )
    reply = reply_of(START, *block, end("max_tokens"), STOP)
    assert reply.content[0].input == {INVALID_INPUT: '{"path": "a'}


def test_a_tool_without_input_has_an_empty_one():
    block = (
        opened(0, type="tool_use", id="t1", name="Now", input={}),
        grew(0, type="input_json_delta", partial_json=""),
        closed(0),
    )
    assert reply_of(START, *block, end("tool_use"), STOP).content[0].input == {}


def test_thinking_keeps_its_signature():
    block = (
        opened(0, type="thinking", thinking="", signature=""),
        grew(0, type="thinking_delta", thinking="hm"),
        grew(0, type="signature_delta", signature="c2ln"),
        closed(0),
    )
    content = reply_of(START, *block, end(), STOP).content
    assert content == (Thinking(thinking="hm", signature="c2ln"),)


def test_citations_are_gathered():
    block = (
        opened(0, type="text", text="", citations=None),
        grew(0, type="citations_delta", citation={"cited_text": "a"}),
        grew(0, type="citations_delta", citation={"cited_text": "b"}),
        closed(0),
    )
    content = reply_of(START, *block, end(), STOP).content
    assert content[0].extra == {"citations": [{"cited_text": "a"}, {"cited_text": "b"}]}


def test_a_compaction_block_survives():
    block = (
        opened(0, type="compaction", content=None, signature="s"),
        grew(0, type="compaction_delta", content="summary", encrypted_content=None),
        closed(0),
    )
    reply = reply_of(START, *block, end("compaction"), STOP)
    whole = {
        "type": "compaction",
        "content": "summary",
        "signature": "s",
        "encrypted_content": None,
    }
    assert reply.content == (Opaque(raw=whole),)


def test_unknown_blocks_deltas_and_fields_survive():
    block = (
        opened(0, type="hologram", shape="", depth=1),
        grew(0, type="hologram_delta", shape="cu", depth=2),
        grew(0, type="hologram_delta", shape="be"),
        closed(0),
    )
    reply = reply_of(START, *block, end(novelty=[1]), STOP)
    assert reply.content == (Opaque(raw={"type": "hologram", "shape": "cube", "depth": 2}),)
    assert reply.extra == {"novelty": [1]}


def test_what_the_server_cleared_is_passed_on():
    edits = {"applied_edits": [{"type": "clear_tool_uses_20250919", "cleared_tool_uses": 3}]}
    assert reply_of(START, *TEXT, end(context_management=edits), STOP).context_management == edits


def test_diagnostics_of_the_start_are_passed_on():
    why = {"cache_miss_reason": {"type": "tools_changed"}}
    start = {**START, "message": {**START["message"], "diagnostics": why}}
    assert reply_of(start, *TEXT, end(), STOP).diagnostics == why


def test_an_answer_without_blocks_is_an_answer():
    assert reply_of(START, end("max_tokens"), STOP).content == ()


@pytest.mark.parametrize("repeated", range(6))
def test_an_event_that_is_repeated_changes_nothing(repeated):
    events = [START, opened(0, type="text", text=""), closed(0), end(), STOP, STOP]
    events.insert(repeated, events[min(repeated, 5)])
    reply = next(out.reply for out in feed(*events) if isinstance(out, Finished))
    assert reply.content == (Text(text=""),)


@pytest.mark.parametrize(
    "events",
    [
        (START, {**START, "message": {**START["message"], "id": "msg_2"}}),
        (START, grew(0, type="text_delta", text="x")),
        (START, closed(0)),
        (START, *TEXT, opened(0, type="text", text="")),
        (START, *TEXT, grew(0, type="text_delta", text="x")),
        (START, TEXT[0], end(), STOP),
        (START, *TEXT, STOP),
        (STOP,),
        (end(),),
    ],
)
def test_a_contradiction_breaks_the_stream(events):
    with pytest.raises(StreamBroken):
        feed(*events)


def test_the_end_may_lack_its_last_event():
    assembly = Assembly()
    for event in (START, *TEXT, end()):
        assembly.feed(event)
    (finished,) = assembly.end()
    assert finished.reply.content == (Text(text="Hi"),)


@given(st.text(), st.data())
def test_text_does_not_depend_on_where_it_was_cut(text, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    deltas = [grew(0, type="text_delta", text=piece) for piece in pieces]
    content = reply_of(START, TEXT[0], *deltas, closed(0), end(), STOP).content
    assert content == (Text(text=text),)


WORD = st.integers(-(2**63), 2**63 - 1) | st.text(max_size=8)


@given(st.dictionaries(st.text(max_size=8), WORD | st.lists(WORD, max_size=3), max_size=4))
def test_a_tool_input_survives_its_encoding(value):
    assert parse_input(msgspec.json.encode(value).decode()) == value


@pytest.mark.parametrize("text", ["[1]", '"a"', "{", "null", "1"])
def test_an_input_that_is_no_object_is_kept_apart(text):
    assert parse_input(text) == {INVALID_INPUT: text}
