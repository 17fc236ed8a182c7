"""OpenAI message lists: system messages, calls, results, and what the format cannot hold."""

import json

from longhold.core.log.entries import AnyEntry, Framed, Said, Section, Switched
from longhold.core.messages import (
    Document,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from longhold.core.view import View, fold
from longhold.core.wire.chat import NO_PICTURE
from longhold.core.wire.messages import INVALID_INPUT
from longhold.session.importing.api_messages import ANTHROPIC as anthropic
from longhold.session.importing.api_messages import OPENAI as openai
from longhold.session.importing.transcript_writer import ImportAccount, TranscriptWriter

HELLO = {"role": "user", "content": "hi"}
PNG = {"type": "base64", "media_type": "image/png", "data": "aGk="}
PDF = {"type": "base64", "media_type": "application/pdf", "data": "aGk="}


def call(id: str, arguments: str = "{}", **fields: object) -> dict[str, object]:
    return {
        "id": id,
        "type": "function",
        "function": {"name": "f", "arguments": arguments},
        **fields,
    }


def imported(document: object) -> tuple[list[AnyEntry], ImportAccount, View]:
    writer = TranscriptWriter()
    entries = list(openai.read([json.dumps(document).encode()], writer))
    return entries, writer.account, fold(entries)


def exported(messages: object) -> tuple[dict[str, object], dict[str, int]]:
    """Write a list in the shape of the Messages API as a chat completion request."""
    view = fold(anthropic.read([json.dumps(messages).encode()], TranscriptWriter()))
    return json.loads(b"".join(openai.write(view))), openai.losses(view)


def test_leading_system_messages_and_tools_are_the_frame():
    function = {"name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True}
    entries, _, view = imported(
        {
            "model": "gpt-5.5",
            "max_completion_tokens": 900,
            "temperature": 0,
            "tools": [{"type": "function", "function": function}, {"type": "web_search"}],
            "messages": [
                {"role": "system", "content": "A"},
                {"role": "developer", "content": [{"type": "text", "text": "B"}]},
                HELLO,
                {"role": "system", "content": "C"},
            ],
        }
    )
    assert [type(entry) for entry in entries] == [Framed, Switched, Said, Said]
    frame = view.frame
    assert frame is not None
    assert frame.sections == (
        Section(name="system", text="A"),
        Section(name="developer", text="B"),
    )
    assert frame.tools == (
        {"name": "f", "description": "d", "input_schema": {"type": "object"}, "strict": True},
        {"type": "web_search"},
    )
    assert (frame.max_output_tokens, frame.options) == (900, {"temperature": 0})
    assert isinstance(entries[3], Said) and entries[3].hidden


def test_a_request_that_is_written_is_the_one_that_was_read():
    request = {
        "model": "gpt-5.5",
        "max_completion_tokens": 900,
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}],
        "seed": 3,
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [
                {"type": "text", "text": "see"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": "low"}},
                {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
                {"type": "file", "file": {"file_data": "data:application/pdf;base64,aGk="}},
                {"type": "file", "file": {"file_id": "f1"}},
                {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
            ]},
            {"role": "assistant", "content": None, "tool_calls": [call("c1", '{"a":1}'), call("c2")]},
            {"role": "tool", "tool_call_id": "c1", "content": "one"},
            {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "two"}]},
            {"role": "assistant", "content": "done"},
        ],
    }  # fmt: skip
    _, account, view = imported(request)
    assert json.loads(b"".join(openai.write(view))) == request
    assert not account.repaired and not account.malformed


def test_calls_and_results_become_rounds():
    _, _, view = imported(
        [
            HELLO,
            {"role": "assistant", "content": "I look.", "tool_calls": [call("c1", '{"a": 1}')]},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "one"}]},
        ]
    )
    assert view.messages()[1:] == [
        Message("assistant", (Text(text="I look."), ToolUse(id="c1", name="f", input={"a": 1}))),
        Message("user", (ToolResult(tool_use_id="c1", content=(Text(text="one"),)),)),
    ]


def test_pictures_and_files_come_from_their_urls():
    by_id = {"type": "file", "file": {"file_id": "f1"}}
    parts = [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": "low"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,aGk="}},
        by_id,
    ]
    _, _, view = imported([{"role": "user", "content": parts}])
    assert view.messages()[0].content == (
        Image(source=PNG, extra={"detail": "low"}),
        Document(source=PDF),
        Opaque(raw=by_id),
    )


def test_a_custom_call_and_one_that_is_no_call_survive():
    odd = {"type": "odd", "id": "x"}
    custom = {"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "***"}}
    _, _, view = imported([HELLO, {"role": "assistant", "tool_calls": [custom, odd]}])
    assert view.messages()[1].content == (
        ToolUse(id="c1", name="patch", input={"input": "***"}),
        Opaque(raw=odd),
    )


def test_broken_arguments_are_kept_as_they_are():
    _, _, view = imported([HELLO, {"role": "assistant", "tool_calls": [call("c1", "{oops")]}])
    assert view.messages()[1].content == (
        ToolUse(id="c1", name="f", input={INVALID_INPUT: "{oops"}),
    )


def test_refusals_and_reasoning_are_read():
    message = {"role": "assistant", "content": None, "refusal": "No.", "reasoning_content": "hm"}
    _, _, view = imported([HELLO, message])
    assert view.messages()[1].content == (
        Thinking(thinking="hm"),
        Opaque(raw={"type": "refusal", "refusal": "No."}),
    )


def test_what_cannot_be_held_is_counted():
    use = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
    request, lost = exported(
        [
            {"role": "user", "content": [{"type": "document", "source": {"type": "text"}}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                use,
                {"type": "text", "text": "after"},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "is_error": True,
                 "content": [{"type": "image", "source": PNG}]},
            ]},
        ]
    )  # fmt: skip
    note = {"type": "text", "text": NO_PICTURE}
    assert request["messages"] == [
        {"role": "user", "content": [note]},
        {"role": "assistant", "content": "after", "tool_calls": [call("t1")]},
        {"role": "tool", "tool_call_id": "t1", "content": [note]},
    ]
    assert lost == {
        "picture or file that is not base64": 1,
        "thinking": 1,
        "text between tool calls": 1,
        "error flag of a result": 1,
        "picture or file in a result": 1,
    }


def test_fields_nobody_knows_survive():
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "hi", "lang": "en"}]},
        {"role": "assistant", "content": None, "tool_calls": [call("c1", index=0)]},
        {"role": "tool", "tool_call_id": "c1", "content": "ok", "cost": 3},
    ]
    _, _, view = imported(messages)
    assert json.loads(b"".join(openai.write(view)))["messages"] == messages


def test_messages_that_are_none_are_counted():
    _, account, view = imported([{"content": "x"}, {"role": "robot", "content": "beep"}])
    assert account.malformed == [(1, "a message without a role")]
    assert len(view.messages()) == 1
