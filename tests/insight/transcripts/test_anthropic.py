"""Anthropic message lists: requests, bare lists, broken lists, and export."""

import json

import pytest

from longhold.core.log.entries import AnyEntry, Framed, Replied, Said, Section, Switched
from longhold.core.messages import Message, Opaque, Text, ToolResult, ToolUse, Usage
from longhold.core.messages.rules import violations
from longhold.core.view import View, fold
from longhold.core.view.items import NO_RESULT, OPENING
from longhold.session.importing.api_messages import ANTHROPIC as anthropic
from longhold.session.importing.transcript_writer import ImportAccount, TranscriptWriter

HELLO = {"role": "user", "content": "hi"}


def use(id: str, **fields: object) -> dict[str, object]:
    return {"type": "tool_use", "id": id, "name": "f", "input": {}, **fields}


def result(id: str, content: object = "ok") -> dict[str, object]:
    return {"type": "tool_result", "tool_use_id": id, "content": content}


def imported(document: object) -> tuple[list[AnyEntry], ImportAccount, View]:
    writer = TranscriptWriter()
    entries = list(anthropic.read([json.dumps(document).encode()], writer))
    return entries, writer.account, fold(entries)


def roles(view: View) -> list[str]:
    return [message.role for message in view.messages()]


def test_a_request_brings_its_frame():
    tool = {"name": "f", "input_schema": {"type": "object"}}
    system = [{"type": "text", "text": "A", "cache_control": {"type": "ephemeral"}}, "B"]
    entries, _, view = imported(
        {
            "model": "claude-sonnet-5-5",
            "max_tokens": 8000,
            "system": system,
            "tools": [tool],
            "thinking": {"type": "adaptive"},
            "stream": True,
            "messages": [HELLO],
        }
    )
    assert [type(entry) for entry in entries] == [Framed, Switched, Said]
    frame = view.frame
    assert frame is not None
    assert frame.sections == (
        Section(name="system", text="A"),
        Section(name="system", text="B"),
    )
    assert (frame.tools, frame.max_output_tokens) == ((tool,), 8000)
    assert frame.options == {"thinking": {"type": "adaptive"}}
    assert view.model == "claude-sonnet-5-5"


def test_a_request_that_is_written_is_the_one_that_was_read():
    request = {
        "model": "claude-sonnet-5-5",
        "max_tokens": 8000,
        "system": "Be brief.",
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "betas": ["b-1"],
        "thinking": {"type": "adaptive"},
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    }
    _, _, view = imported(request)
    assert json.loads(b"".join(anthropic.write(view))) == request


def test_an_empty_view_is_written_as_no_messages():
    assert json.loads(b"".join(anthropic.write(View()))) == {"messages": []}


@pytest.mark.parametrize("indent", [None, 2], ids=["one line", "indented"])
def test_a_document_may_lie_on_one_line_or_many(indent: int | None):
    text = json.dumps([HELLO, {"role": "assistant", "content": "yo"}], indent=indent)
    view = fold(anthropic.read(text.encode().splitlines(keepends=True), TranscriptWriter()))
    assert roles(view) == ["user", "assistant"]


def test_a_document_cut_short_is_one_malformed_record():
    writer = TranscriptWriter()
    text = json.dumps([HELLO] * 3, indent=2).encode()[:-20]
    assert list(anthropic.read(text.splitlines(keepends=True), writer)) == []
    assert [number for number, _ in writer.account.malformed] == [1]


def test_members_that_are_no_messages_are_counted_by_place():
    _, account, view = imported([HELLO, 5, "x", {"role": None}])
    assert [number for number, _ in account.malformed] == [2, 3, 4]
    assert len(view.messages()) == 1


def test_unknown_blocks_and_fields_survive():
    strange = {"type": "server_thing", "deep": {"a": [1]}}
    marked = {"type": "text", "text": "hi", "citations": [], "cache_control": {"type": "x"}}
    _, _, view = imported([{"role": "user", "content": [strange, marked]}])
    assert view.messages()[0].content == (
        Opaque(raw=strange),
        Text(text="hi", extra={"citations": []}),
    )
    written = json.loads(b"".join(anthropic.write(view)))
    del marked["cache_control"]
    assert written["messages"][0]["content"] == [strange, marked]


def test_neighbours_of_one_role_are_one_answer():
    entries, account, view = imported(
        [
            HELLO,
            {"role": "assistant", "content": [use("t1")]},
            {"role": "assistant", "content": [use("t2")]},
            {"role": "user", "content": [result("t2"), result("t1")]},
        ]
    )
    assert not account.repaired
    assert view.messages()[2].content == (
        ToolResult(tool_use_id="t1", content="ok"),
        ToolResult(tool_use_id="t2", content="ok"),
    )
    assert len({entry.response_id for entry in entries if isinstance(entry, Replied)}) == 1


def test_a_missing_result_is_filled_in_and_told_late():
    _, account, view = imported(
        [
            HELLO,
            {"role": "assistant", "content": [use("t1")]},
            {"role": "user", "content": "and?"},
            {"role": "assistant", "content": "wait"},
            {"role": "user", "content": [result("t1", "slow")]},
        ]
    )
    assert account.repaired == {"missing result": 1, "late result": 1}
    assert view.messages()[2].content[0] == ToolResult(
        tool_use_id="t1", content=NO_RESULT, is_error=True
    )
    assert Text(text="slow") in view.messages()[4].content


def test_a_repeated_id_gets_a_new_one_with_its_result():
    rounds = [
        {"role": "assistant", "content": [use("call_0")]},
        {"role": "user", "content": [result("call_0", "first")]},
        {"role": "assistant", "content": [use("call_0")]},
        {"role": "user", "content": [result("call_0", "second")]},
    ]
    _, account, view = imported([HELLO, *rounds])
    assert account.repaired == {"repeated tool use id": 1}
    assert view.messages()[3:] == [
        Message("assistant", (ToolUse(id="call_0-2", name="f", input={}),)),
        Message("user", (ToolResult(tool_use_id="call_0-2", content="second"),)),
    ]


def test_an_assistant_first_gets_an_opening():
    _, _, view = imported([{"role": "assistant", "content": "yo"}])
    assert view.messages()[0] == Message("user", (Text(text=OPENING),))


@pytest.mark.parametrize("content", ["", " \n", [], None, [{"type": "text", "text": ""}]])
def test_an_empty_message_is_counted(content: object):
    entries, account, _ = imported([{"role": "user", "content": content}])
    assert entries == []
    assert account.repaired == {"empty message": 1}


def test_other_roles_are_told_on_the_users_side():
    entries, account, _ = imported(
        [HELLO, {"role": "system", "content": "mind"}, {"role": "robot", "content": "beep"}]
    )
    assert [entry.hidden for entry in entries if isinstance(entry, Said)] == [False, True, True]
    assert not account.repaired


def test_a_stored_answer_brings_its_usage():
    usage = {"input_tokens": 5, "cache_read_input_tokens": 90, "output_tokens": 7}
    entries, account, _ = imported(
        [
            HELLO,
            {
                "role": "assistant",
                "id": "msg_1",
                "model": "m",
                "stop_reason": "end_turn",
                "content": "yo",
                "usage": usage,
            },
            {"role": "assistant", "content": "more", "usage": {"input_tokens": []}},
            {"role": "assistant", "content": "more", "usage": {"input_tokens": "x"}},
        ]
    )
    reply = entries[1]
    assert isinstance(reply, Replied)
    assert (reply.origin, reply.model, reply.stop_reason) == ("msg_1", "m", "end_turn")
    assert reply.usage == Usage(input_tokens=5, cache_read_tokens=90, output_tokens=7)
    assert account.repaired == {"usage that cannot be read": 1}


def test_a_block_whose_type_is_no_name_survives():
    _, _, view = imported([{"role": "user", "content": [{"type": ["x"]}]}])
    assert view.messages() == [Message("user", (Opaque(raw={"type": ["x"]}),))]
    assert violations(view.messages()) == []
