"""Pi sessions: lines and trees, compactions, commands, answers that broke off, usage."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.core.log.entries import AnyEntry, Compacted, Failed, Ran, Replied, Said, Switched
from longhold.core.messages import (
    Image,
    Message,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Usage,
)
from longhold.core.messages.rules import violations
from longhold.core.view import View, fold
from longhold.insight.transcripts import pi
from longhold.session.importing.transcript_writer import ImportAccount, TranscriptWriter

RECORDED = sorted(
    (Path(__file__).parents[4] / "shared" / "data" / "transcripts" / "pi").glob("*.jsonl.gz")
)

HEADER = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-02-01T10:00:00Z"}
OLD_HEADER = {"type": "session", "id": "s", "cwd": "/p", "modelId": "claude-sonnet-4-5"}


def lines(*entries: dict[str, object]) -> list[bytes]:
    return [json.dumps(entry).encode() + b"\n" for entry in entries]


def entry(
    id: str, parent: str | None, kind: str = "message", **fields: object
) -> dict[str, object]:
    return {
        "type": kind,
        "id": id,
        "parentId": parent,
        "timestamp": "2026-02-01T10:00:01Z",
        **fields,
    }


def user(text: str) -> dict[str, object]:
    return {"role": "user", "content": text}


def answer(*content: dict[str, object], **fields: object) -> dict[str, object]:
    return {"role": "assistant", "content": list(content), "stopReason": "stop", **fields}


def said(text: str) -> dict[str, object]:
    return {"type": "text", "text": text}


def imported(*entries: dict[str, object]) -> tuple[list[AnyEntry], ImportAccount, View]:
    writer = TranscriptWriter()
    made = list(pi.read(lines(*entries), writer))
    return made, writer.account, fold(made)


def texts(view: View) -> list[str]:
    return [b.text for m in view.messages() for b in m.content if isinstance(b, Text)]


def test_answers_carry_the_thinking_level_that_was_set():
    made, _, _ = imported(
        HEADER,
        entry("1", None, message=user("a")),
        entry("2", "1", message=answer(said("b"))),
        entry("3", "2", "thinking_level_change", thinkingLevel="low"),
        entry("4", "3", "thinking_level_change", thinkingLevel="high"),
        entry("5", "4", message=user("c")),
        entry("6", "5", message=answer(said("d"))),
    )
    assert [one.thinking for one in made if isinstance(one, Replied)] == ["", "high"]


def test_an_old_session_is_a_line_of_records():
    call = {"type": "toolCall", "id": "t1", "name": "read", "arguments": {"path": "a"}}
    thought = {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"}
    sealed = {"type": "thinking", "thinking": "", "thinkingSignature": "x", "redacted": True}
    picture = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    result = {"role": "toolResult", "toolCallId": "t1", "toolName": "read", "isError": True}
    made, account, view = imported(
        OLD_HEADER,
        {"type": "message", "message": user("look")},
        {"type": "thinking_level_change", "thinkingLevel": "high"},
        {"type": "message", "message": answer(thought, sealed, call, model="claude-opus-4-5")},
        {"type": "message", "message": result | {"content": [said("no"), picture], "details": {}}},
    )
    assert isinstance(made[0], Switched) and made[0].model == "claude-sonnet-4-5"
    assert view.model == "claude-opus-4-5"
    assert account.skipped == {}
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    assert view.messages() == [
        Message("user", (Text(text="look"),)),
        Message(
            "assistant",
            (
                Thinking(thinking="hm", signature="sig"),
                RedactedThinking(data="x"),
                ToolUse(id="t1", name="read", input={"path": "a"}),
            ),
        ),
        Message(
            "user",
            (
                ToolResult(
                    tool_use_id="t1", content=(Text(text="no"), Image(source=source)), is_error=True
                ),
            ),
        ),
    ]


def test_only_the_active_branch_of_a_tree_is_read():
    _, account, view = imported(
        HEADER,
        entry("a", None, message=user("start")),
        entry("b", "a", message=answer(said("left"))),
        entry("c", "b", message=user("more left")),
        entry("d", "a", message=answer(said("right"))),
        entry("e", "d", "label", targetId="a", label="here"),
    )
    assert texts(view) == ["start", "right"]
    assert account.skipped == {"session": 1, "entry of another branch": 2, "label": 1}
    assert account.records == 6


def test_a_parent_that_is_missing_is_told():
    _, account, view = imported(HEADER, entry("b", "gone", message=user("here")))
    assert texts(view) == ["here"]
    assert account.repaired == {"missing parent": 1}


def test_entries_in_a_circle_end():
    _, account, view = imported(
        HEADER, entry("a", "b", message=user("1")), entry("b", "a", message=user("2"))
    )
    assert texts(view) == ["1", "2"]
    assert account.repaired == {"missing parent": 1}


def test_a_compaction_covers_what_lies_before_the_first_kept_entry():
    made, _, view = imported(
        HEADER,
        entry("a", None, message=user("old")),
        entry("b", "a", message=answer(said("old answer"))),
        entry("c", "b", message=user("kept")),
        entry("d", "c", message=answer(said("kept answer"))),
        entry("e", "d", "compaction", summary="S", firstKeptEntryId="c", tokensBefore=900),
        entry("f", "e", message=user("new")),
    )
    assert texts(view) == ["S", "kept", "kept answer", "new"]
    (compacted,) = [e for e in made if isinstance(e, Compacted)]
    assert (compacted.first, compacted.last, compacted.kept) == (1, 2, (3, 4))
    assert (compacted.before_tokens, compacted.by) == (900, "import")


def test_a_second_compaction_covers_the_first_summary():
    _, _, view = imported(
        HEADER,
        entry("a", None, message=user("1")),
        entry("b", "a", message=answer(said("2"))),
        entry("c", "b", "compaction", summary="S1", firstKeptEntryId="b", tokensBefore=1),
        entry("d", "c", message=user("3")),
        entry("e", "d", message=answer(said("4"))),
        entry("f", "e", "compaction", summary="S2", firstKeptEntryId="e", tokensBefore=1),
    )
    assert texts(view) == ["S2", "4"]


def test_a_compaction_whose_first_kept_entry_is_unknown_keeps_none():
    _, _, view = imported(
        HEADER,
        entry("a", None, message=user("old")),
        entry("b", "a", "compaction", summary="S", firstKeptEntryId="zz", tokensBefore=1),
        entry("c", "b", message=user("new")),
    )
    assert texts(view) == ["S", "new"]


def test_an_old_compaction_names_its_first_kept_entry_by_place():
    _, _, view = imported(
        OLD_HEADER,
        {"type": "message", "message": user("old")},
        {"type": "message", "message": answer(said("kept"))},
        {"type": "compaction", "summary": "S", "firstKeptEntryIndex": 2, "tokensBefore": 1},
    )
    assert texts(view) == ["S", "kept"]


def test_a_summary_of_nothing_is_still_told():
    _, account, view = imported(
        HEADER,
        entry("a", None, "compaction", summary="S", firstKeptEntryId="a", tokensBefore=1),
        entry("b", "a", message=user("new")),
    )
    assert texts(view) == ["S", "new"]
    assert account.repaired == {"summary of nothing": 1}


def test_summaries_custom_messages_and_commands_are_told_but_not_asked():
    command = {"role": "bashExecution", "command": "ls", "output": "a.py", "exitCode": 2}
    made, account, view = imported(
        HEADER,
        entry("a", None, "branch_summary", summary="tried X", fromId="z"),
        entry("b", "a", "custom_message", content="note", display=True),
        entry("c", "b", message=command),
        entry("d", "c", message=command | {"excludeFromContext": True}),
        entry("e", "d", "session_info", name="Login"),
        entry("f", "e", "custom", data={}),
    )
    assert texts(view) == [
        "tried X",
        "note",
        "The user ran this command: ls\nIt printed:\na.py\nIt ended with exit code 2.",
    ]
    assert [e.hidden for e in made if isinstance(e, Said)] == [True, False, True]
    assert view.title == "Login"
    assert account.skipped == {"session": 1, "command that the model did not see": 1, "custom": 1}


def test_an_answer_that_broke_off_is_kept_as_a_failure():
    partial = answer(said("I was about"), stopReason="aborted", errorMessage="Request was aborted")
    made, _, view = imported(OLD_HEADER, {"type": "message", "message": partial})
    assert view.messages() == []
    failed = made[-1]
    assert isinstance(failed, Failed)
    assert (failed.error, failed.detail) == ("Request was aborted", partial)


def test_usage_is_mapped_by_name():
    usage = {"input": 3, "output": 5, "cacheRead": 100, "cacheWrite": 20, "cost": {}}
    made, _, _ = imported(
        OLD_HEADER,
        {"type": "message", "message": answer(said("a"), usage=usage)},
        {"type": "message", "message": answer(said("b"), usage=dict.fromkeys(usage, 0))},
    )
    replies = [e for e in made if isinstance(e, Replied)]
    assert [reply.usage for reply in replies] == [
        Usage(input_tokens=3, output_tokens=5, cache_read_tokens=100, cache_write_tokens=20),
        None,
    ]
    assert replies[0].usage is not None and replies[0].usage.prompt_tokens == 123


def test_a_text_result_stays_text_and_blocks_stay_blocks():
    calls = [{"type": "toolCall", "id": i, "name": "f", "arguments": {}} for i in ("t1", "t2")]
    result = {"role": "toolResult", "content": [said("x")]}
    _, _, view = imported(
        OLD_HEADER,
        {"type": "message", "message": answer(*calls)},
        {"type": "message", "message": result | {"toolCallId": "t1", "isText": True}},
        {"type": "message", "message": result | {"toolCallId": "t2"}},
    )
    assert [b.content for b in view.messages()[2].content if isinstance(b, ToolResult)] == [
        "x",
        (Text(text="x"),),
    ]


def test_broken_lines_are_counted_with_their_numbers():
    writer = TranscriptWriter()
    good = lines(HEADER, entry("a", None, message=user("hi")))
    made = list(pi.read([*good, b'{"torn\n', b'{"type":"message"}\n'], writer))
    assert [number for number, _ in writer.account.malformed] == [3, 4]
    assert texts(fold(made)) == ["hi"]


def test_a_result_nobody_asked_for_stays_in_the_log():
    orphan = {"role": "toolResult", "toolCallId": "zz", "content": [said("x")]}
    made, account, view = imported(OLD_HEADER, {"type": "message", "message": orphan})
    assert any(isinstance(e, Ran) for e in made)
    assert view.messages() == []
    assert account.repaired == {"orphaned result": 1}


def test_only_pi_sessions_are_claimed():
    assert pi.sniff(lines(OLD_HEADER)[0])
    assert pi.sniff(lines(HEADER)[0])
    assert not pi.sniff(b'{"longhold":1,"session":"s"}\n')
    assert not pi.sniff(b'{"type":"session_meta","payload":{"id":"s"}}\n')
    assert not pi.sniff(b'{"type":"user","uuid":"u","sessionId":"s","message":{}}\n')
    assert not pi.sniff(b"[")


def test_the_model_and_the_title_are_written():
    _, _, view = imported(
        HEADER,
        entry("a", None, "model_change", provider="anthropic", modelId="claude-opus-4-5"),
        entry("b", "a", "session_info", name="Login"),
        entry("c", "b", message=user("hi")),
    )
    written = list(pi.write(view))
    again = fold(pi.read(written, TranscriptWriter()))
    assert (again.model, again.title, texts(again)) == ("claude-opus-4-5", "Login", ["hi"])
    assert [json.loads(line).get("parentId") for line in written[1:]] == [
        None,
        "00000001",
        "00000002",
    ]


@pytest.mark.skipif(not RECORDED, reason="no recorded sessions here")
@pytest.mark.parametrize("session", RECORDED, ids=lambda path: path.name)
def test_recorded_sessions_hold_and_come_back(session: Path):
    with gzip.open(session) as file:
        writer = TranscriptWriter()
        view = fold(pi.read(file, writer))
    assert not writer.account.malformed
    assert violations(view.messages()) == []
    assert fold(pi.read(list(pi.write(view)), TranscriptWriter())).messages() == view.messages()


ids = st.sampled_from(["a", "b", "c", "d", None, 3])
contents = st.none() | st.text(max_size=3) | st.lists(
    st.sampled_from(
        [
            said("x"),
            {"type": "toolCall", "id": "t1", "name": "f", "arguments": {}},
            {"type": "toolCall", "id": "t1", "name": "f"},
            {"type": "thinking", "thinking": "hm"},
            {"type": []},
            7,
        ]
    ),
    max_size=3,
)  # fmt: skip
messages = st.builds(
    lambda role, content, reason: {
        "role": role,
        "content": content,
        "stopReason": reason,
        "toolCallId": "t1",
    },
    st.sampled_from(["user", "assistant", "toolResult", "bashExecution", "custom", None]),
    contents,
    st.sampled_from(["stop", "aborted"]),
)
entries = st.builds(
    lambda id, parent, kind, message, kept: {
        "type": kind,
        "id": id,
        "parentId": parent,
        "message": message,
        "summary": "S",
        "firstKeptEntryId": kept,
        "content": "c",
    },
    ids,
    ids,
    st.sampled_from(["message", "message", "compaction", "branch_summary", "custom_message", 1]),
    messages,
    ids,
)


@pytest.mark.parametrize("header", [HEADER, OLD_HEADER], ids=["tree", "line"])
@given(made=st.lists(entries, max_size=12))
def test_any_session_folds_to_what_the_api_accepts(header: dict[str, object], made: list[dict]):
    view = fold(pi.read(lines(header, *made), TranscriptWriter()))
    assert violations(view.messages()) == []
    assert fold(pi.read(list(pi.write(view)), TranscriptWriter())).messages() == view.messages()
