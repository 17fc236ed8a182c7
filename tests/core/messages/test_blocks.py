"""Blocks and usage: converted from JSON and back without loss."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.core.messages import (
    INVALID_INPUT,
    Document,
    Image,
    Message,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Usage,
    block_from_wire,
    block_to_wire,
    content_from_wire,
    is_blank,
    is_thought,
    message_to_wire,
    result_content_from_wire,
    text_of,
    usage_from_wire,
    usage_to_wire,
)
from properties.strategies import any_json, any_text

WIRES = [
    ({"type": "text", "text": "hi"}, Text(text="hi")),
    (
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        Thinking(thinking="hm", signature="s"),
    ),
    ({"type": "redacted_thinking", "data": "b64"}, RedactedThinking(data="b64")),
    ({"type": "image", "source": {"type": "url"}}, Image(source={"type": "url"})),
    ({"type": "document", "source": {"a": [1]}}, Document(source={"a": [1]})),
    (
        {"type": "tool_use", "id": "a", "name": "b", "input": {"c": None}},
        ToolUse(id="a", name="b", input={"c": None}),
    ),
    (
        {"type": "tool_result", "tool_use_id": "a", "content": "x"},
        ToolResult(tool_use_id="a", content="x"),
    ),
    ({"type": "tomorrow", "deep": [1]}, Opaque(raw={"type": "tomorrow", "deep": [1]})),
]


@pytest.mark.parametrize(("wire", "block"), WIRES)
def test_a_block_has_one_shape_here_and_one_there(wire, block):
    assert block_from_wire(wire) == block
    assert block_to_wire(block) == wire


@pytest.mark.parametrize("wire", [wire for wire, _ in WIRES])
def test_unknown_fields_survive(wire):
    more = wire | {"citations": [{"n": 1}], "later": None}
    assert block_to_wire(block_from_wire(more)) == more


@pytest.mark.parametrize(
    "raw",
    [
        {"type": "text"},
        {"type": "text", "text": 5},
        {"type": "tool_use", "id": 1, "name": "b", "input": {}},
        {"type": "tool_result", "content": "x"},
        {"type": "tool_result", "tool_use_id": "a", "is_error": "yes"},
        {"type": "image", "source": "file.png"},
        {"type": "thinking", "thinking": None},
        {"type": ["text"]},
        {"type": None},
        {},
    ],
)
def test_what_cannot_be_typed_survives_as_it_is(raw):
    assert block_from_wire(raw) == Opaque(raw=raw)


@pytest.mark.parametrize(
    ("fields", "kept"),
    [({"input": "c"}, {INVALID_INPUT: "c"}), ({"input": [1]}, {INVALID_INPUT: [1]}), ({}, {})],
)
def test_a_tool_use_whose_input_is_no_object_gets_one(fields, kept):
    raw = {"type": "tool_use", "id": "a", "name": "b"} | fields
    assert block_from_wire(raw) == ToolUse(id="a", name="b", input=kept)


def test_values_that_are_no_blocks_survive_too():
    assert block_from_wire("hi") == Text(text="hi")
    assert block_from_wire(5) == Opaque(raw={"type": "unknown", "value": 5})


@given(any_json)
def test_any_json_becomes_a_block_that_goes_back(raw):
    block = block_from_wire(raw)
    if isinstance(raw, dict):
        assert block_to_wire(block) == {k: v for k, v in raw.items() if k != "cache_control"}
    assert block_from_wire(block_to_wire(block)) == block


@given(st.sampled_from([wire for wire, _ in WIRES]), any_text, any_json)
def test_any_field_of_any_value_survives(wire, name, value):
    more = wire | {name: value}
    back = block_to_wire(block_from_wire(more))
    absent = {key for key, item in more.items() if item is None} | {"is_error", "cache_control"}
    assert {k: v for k, v in back.items() if k not in absent} == {
        k: v for k, v in more.items() if k not in absent
    }


@pytest.mark.parametrize("wire", [wire for wire, _ in WIRES])
def test_cache_markers_do_not_enter(wire):
    block = block_from_wire(wire | {"cache_control": {"type": "ephemeral"}})
    assert "cache_control" not in block_to_wire(block)


def test_content_is_a_string_a_list_or_nothing():
    assert content_from_wire(None) == ()
    assert content_from_wire("hi") == (Text(text="hi"),)
    assert content_from_wire([{"type": "text", "text": "a"}, "b"]) == (
        Text(text="a"),
        Text(text="b"),
    )
    assert content_from_wire({"type": "text", "text": "a"}) == (Text(text="a"),)


def test_a_results_content_is_a_string_or_blocks_that_may_stand_there():
    assert result_content_from_wire(None) == ""
    assert result_content_from_wire("x") == "x"
    assert result_content_from_wire({"a": 1}) == '{"a":1}'
    assert result_content_from_wire([{"type": "thinking", "thinking": "hm"}]) == (
        Opaque(raw={"type": "thinking", "thinking": "hm"}),
    )


def test_an_error_is_marked_on_the_wire_only_when_it_is_one():
    assert "is_error" not in block_to_wire(ToolResult(tool_use_id="a"))
    assert block_to_wire(ToolResult(tool_use_id="a", is_error=True))["is_error"] is True


def test_a_message_is_written_with_its_keys_in_a_fixed_order():
    message = Message("user", (ToolResult(tool_use_id="a", content=(Text(text="x"),)),))
    assert msgspec.json.encode(message_to_wire(message)) == (
        b'{"role":"user","content":[{"type":"tool_result","tool_use_id":"a",'
        b'"content":[{"type":"text","text":"x"}]}]}'
    )


def test_usage_adds_up():
    usage = Usage(input_tokens=1, cache_read_tokens=20, cache_write_tokens=300, output_tokens=4_000)
    assert (usage.prompt_tokens, usage.total_tokens) == (321, 4_321)


def test_usage_goes_out_as_it_came_in():
    wire = {
        "input_tokens": 1,
        "cache_creation_input_tokens": 9,
        "cache_read_input_tokens": 3,
        "output_tokens": 2,
        "cache_creation": {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 5},
        "server_tool_use": {"web_search_requests": 0},
    }
    assert usage_to_wire(usage_from_wire(wire)) == wire


def test_counts_that_are_missing_or_null_are_zero():
    assert usage_from_wire({}) == Usage()
    assert usage_from_wire({"input_tokens": None, "cache_creation": None}) == Usage()


def test_what_a_person_could_read_is_the_text():
    assert text_of("x") == "x"
    assert text_of((Text(text="a"), Image(source={}), Text(text="b"))) == "a\nb"


@pytest.mark.parametrize(
    ("text", "blank"), [("", True), (" \n\t", True), ("\u00a0", True), ("x", False)]
)
def test_a_blank_block_is_a_text_of_nothing(text, blank):
    assert is_blank(Text(text=text)) is blank
    assert not is_blank(Thinking(thinking=text))


def test_thoughts_are_told_from_answers():
    assert is_thought(Thinking(thinking="")) and is_thought(RedactedThinking(data=""))
    assert not is_thought(Text(text="I think"))


def test_blocks_are_frozen():
    with pytest.raises(AttributeError):
        Text(text="a").text = "b"
