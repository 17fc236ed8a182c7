"""Converting a Messages API request for a chat endpoint."""

import pytest

from longhold.core.wire.chat import encode_request
from longhold.errors import RequestRejected


def messages(*given, **kwargs):
    return encode_request({"model": "m", "messages": list(given), **kwargs})["messages"]


def user(*blocks):
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def text(words, **more):
    return {"type": "text", "text": words, **more}


PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="}}
PICTURE_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}}


def test_markers_in_the_system_prompt_become_breakpoints_where_they_are_taken():
    mark = {"type": "ephemeral"}
    system = [text("A"), text("B", cache_control=mark), text("C")]
    given = {"model": "m", "messages": [user(text("hi", cache_control=mark))], "system": system}
    assert encode_request(given, takes_breakpoints=True)["messages"] == [
        {
            "role": "system",
            "content": [
                {
                    "type": "text",
                    "text": "A\n\nB",
                    "prompt_cache_breakpoint": {"mode": "explicit"},
                },
                {"type": "text", "text": "C"},
            ],
        },
        {"role": "user", "content": "hi"},
    ]


def test_system_comes_first_without_markers():
    system = [text("A", cache_control={"type": "ephemeral"}), text("B")]
    assert messages(user(text("hi")), system=system) == [
        {"role": "system", "content": "A\n\nB"},
        {"role": "user", "content": "hi"},
    ]


def test_a_round_with_tools_keeps_calls_and_results_together():
    call = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"b": 1, "a": "ä"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [text("body")]}
    assert messages(assistant(text("Look"), call), user(result, text("next"))) == [
        {
            "role": "assistant",
            "content": "Look",
            "tool_calls": [
                {
                    "id": "t1",
                    "type": "function",
                    "function": {"name": "Read", "arguments": '{"b":1,"a":"ä"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "t1", "content": "body"},
        {"role": "user", "content": "next"},
    ]


def test_a_failed_tool_says_so():
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "gone", "is_error": True}
    assert messages(user(result))[0]["content"] == "Error: gone"


def test_reasoning_is_not_sent_back():
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    assert messages(assistant(thought), assistant(thought, text("so"))) == [
        {"role": "assistant", "content": "so"}
    ]


def test_a_picture_is_a_part():
    assert messages(user(PICTURE, text("what?")))[0]["content"] == [
        PICTURE_PART,
        {"type": "text", "text": "what?"},
    ]


def test_a_picture_in_a_result_follows_in_a_user_message():
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [text("ok"), PICTURE]}
    assert messages(user(result)) == [
        {"role": "tool", "tool_call_id": "t1", "content": "ok\n[image: see below]"},
        {"role": "user", "content": [PICTURE_PART]},
    ]


def test_a_block_without_counterpart_is_written_out():
    block = {"type": "hologram", "shape": "cube", "cache_control": {"type": "ephemeral"}}
    assert messages(user(block))[0]["content"] == '{"type":"hologram","shape":"cube"}'


def test_a_summary_by_the_server_is_read_as_text():
    assert (
        messages(assistant({"type": "compaction", "content": "so far"}))[0]["content"] == "so far"
    )


def test_a_system_message_in_between_stays():
    assert messages({"role": "system", "content": "note"}) == [
        {"role": "system", "content": "note"}
    ]


def test_tools_become_functions():
    tool = {
        "name": "Read",
        "description": "Reads.",
        "input_schema": {"type": "object"},
        "cache_control": {"type": "ephemeral"},
    }
    chat = encode_request({"model": "m", "messages": [], "tools": [tool]})
    function = {"name": "Read", "description": "Reads.", "parameters": {"type": "object"}}
    assert chat["tools"] == [{"type": "function", "function": function}]


def test_a_tool_of_the_server_is_refused():
    tools = [{"type": "web_search_20250305", "name": "web_search"}]
    with pytest.raises(RequestRejected, match="web_search"):
        encode_request({"model": "m", "messages": [], "tools": tools})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"type": "auto"}, {"tool_choice": "auto"}),
        ({"type": "any"}, {"tool_choice": "required"}),
        ({"type": "none"}, {"tool_choice": "none"}),
        (
            {"type": "tool", "name": "Read"},
            {"tool_choice": {"type": "function", "function": {"name": "Read"}}},
        ),
        (
            {"type": "auto", "disable_parallel_tool_use": True},
            {"tool_choice": "auto", "parallel_tool_calls": False},
        ),
    ],
)
def test_the_choice_of_tools_is_translated(given, expected):
    tools = [{"name": "Read", "input_schema": {}}]
    chat = encode_request({"model": "m", "messages": [], "tools": tools, "tool_choice": given})
    assert {key: chat[key] for key in expected} == expected


def test_limits_stops_and_formats_are_translated():
    chat = encode_request(
        {
            "model": "m",
            "messages": [],
            "max_tokens": 9,
            "stop_sequences": ["END"],
            "output_config": {
                "effort": "low",
                "format": {"type": "json_schema", "schema": {"type": "object"}},
            },
        },
        limit_field="max_tokens",
    )
    assert chat == {
        "model": "m",
        "messages": [],
        "max_tokens": 9,
        "stop": ["END"],
        "reasoning_effort": "low",
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": {"type": "object"}, "strict": True},
        },
    }
