"""Codex rollouts: items, usage in any order, compactions, rollbacks, old and new shapes."""

import json

from hypothesis import given
from hypothesis import strategies as st

from longhold.core.log.entries import (
    AnyEntry,
    Compacted,
    Framed,
    Ran,
    Replied,
    Said,
    Snipped,
    Titled,
)
from longhold.core.messages import (
    Image,
    Message,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Usage,
)
from longhold.core.messages.rules import violations
from longhold.core.view import View, fold
from longhold.core.view.items import NO_RESULT
from longhold.core.wire.messages import INVALID_INPUT
from longhold.insight.transcripts import codex
from longhold.session.importing.transcript_writer import ImportAccount, TranscriptWriter

Json = dict[str, object]


def record(kind: str, **payload: object) -> bytes:
    return json.dumps(
        {"timestamp": "2026-03-01T10:00:00.000Z", "type": kind, "payload": payload}
    ).encode()


def item(kind: str, **fields: object) -> bytes:
    return record("response_item", type=kind, **fields)


def event(kind: str, **fields: object) -> bytes:
    return record("event_msg", type=kind, **fields)


def user(text: str) -> bytes:
    return item("message", role="user", content=[{"type": "input_text", "text": text}])


def answer(text: str) -> bytes:
    return item("message", role="assistant", content=[{"type": "output_text", "text": text}])


def call(id: str, name: str = "shell", **arguments: object) -> bytes:
    return item("function_call", name=name, arguments=json.dumps(arguments), call_id=id)


def output(id: str, text: object) -> bytes:
    return item("function_call_output", call_id=id, output=text)


def tokens(whole: int, cached: int, out: int, total: int) -> bytes:
    last = {
        "input_tokens": whole,
        "cached_input_tokens": cached,
        "output_tokens": out,
        "reasoning_output_tokens": 7,
        "total_tokens": whole + out,
    }
    info = {"total_token_usage": {"total_tokens": total}, "last_token_usage": last}
    return event("token_count", info=info, rate_limits=None)


def imported(*lines: bytes) -> tuple[list[AnyEntry], ImportAccount, View]:
    writer = TranscriptWriter()
    entries = list(codex.read(lines, writer))
    return entries, writer.account, fold(entries)


def test_a_turn_becomes_an_answer_in_one_piece_with_its_result():
    entries, account, view = imported(
        record("session_meta", id="s", cwd="/p", base_instructions={"text": "Be brief."}),
        record("turn_context", model="gpt-5-codex", cwd="/p"),
        user("list the files"),
        event("user_message", message="list the files"),
        item("reasoning", summary=[{"type": "summary_text", "text": "ls"}], content=None,
             encrypted_content="gAAA"),
        answer("I look."),
        call("c1", command=["ls"]),
        output("c1", "a.py"),
        answer("One file."),
    )  # fmt: skip
    assert view.frame is not None and view.frame.sections[0].text == "Be brief."
    assert view.model == "gpt-5-codex"
    assert account.skipped == {"event user_message": 1}
    assert view.messages() == [
        Message("user", (Text(text="list the files"),)),
        Message(
            "assistant",
            (
                Thinking(thinking="ls", signature="gAAA"),
                Text(text="I look."),
                ToolUse(id="c1", name="shell", input={"command": ["ls"]}),
            ),
        ),
        Message("user", (ToolResult(tool_use_id="c1", content="a.py"),)),
        Message("assistant", (Text(text="One file."),)),
    ]
    assert sum(isinstance(entry, Replied) for entry in entries) == 2


def usages(*lines: bytes) -> list[Usage | None]:
    entries, _, _ = imported(*lines)
    return [entry.usage for entry in entries if isinstance(entry, Replied)]


FIRST = Usage(
    input_tokens=60, output_tokens=9, cache_read_tokens=40, extra={"reasoning_output_tokens": 7}
)
SECOND = Usage(
    input_tokens=50, output_tokens=5, cache_read_tokens=90, extra={"reasoning_output_tokens": 7}
)


def test_usage_counted_after_the_items_goes_to_them():
    first, second = tokens(100, 40, 9, 109), tokens(140, 90, 5, 254)
    assert usages(
        user("go"), call("c1"), first, output("c1", "x"), answer("done"), second
    ) == [FIRST, SECOND]  # fmt: skip


def test_usage_counted_before_the_items_goes_to_them():
    first, second = tokens(100, 40, 9, 109), tokens(140, 90, 5, 254)
    assert usages(
        user("go"), first, call("c1"), output("c1", "x"), second, answer("done")
    ) == [FIRST, SECOND]  # fmt: skip


def test_usage_counted_after_the_results_goes_to_the_answer():
    first, second = tokens(100, 40, 9, 109), tokens(140, 90, 5, 254)
    assert usages(
        user("go"), call("c1"), output("c1", "x"), first, answer("done"), second
    ) == [FIRST, SECOND]  # fmt: skip


def test_a_repeated_count_says_nothing_new():
    first = tokens(100, 40, 9, 109)
    _, account, _ = imported(user("go"), answer("done"), first, first)
    assert account.skipped == {"event token_count": 1}


def test_every_kind_of_call_becomes_a_tool_use():
    action = {"type": "exec", "command": ["ls"]}
    _, account, view = imported(
        user("go"),
        item("custom_tool_call", call_id="c1", name="apply_patch", input="*** Begin", status="x"),
        item("local_shell_call", call_id="c2", status="completed", action=action),
        item("tool_search_call", call_id="c3", execution="client", arguments={"query": "q"}),
        item("function_call", call_id="c4", name="spawn", namespace="team", arguments="{}"),
        item("custom_tool_call_output", call_id="c1", output="ok"),
        output("c2", [{"type": "input_text", "text": "a.py"}]),
        item("tool_search_output", call_id="c3", status="completed", tools=[{"name": "t"}]),
        output("c4", {"content": "no", "success": False}),
    )
    assert not account.repaired
    assert view.messages()[1].content == (
        ToolUse(id="c1", name="apply_patch", input={"input": "*** Begin"}),
        ToolUse(id="c2", name="local_shell", input=action),
        ToolUse(id="c3", name="tool_search", input={"query": "q"}),
        ToolUse(id="c4", name="spawn", input={}, extra={"namespace": "team"}),
    )
    assert view.messages()[2].content == (
        ToolResult(tool_use_id="c1", content="ok"),
        ToolResult(tool_use_id="c2", content=(Text(text="a.py"),)),
        ToolResult(tool_use_id="c3", content='[{"name":"t"}]'),
        ToolResult(tool_use_id="c4", content="no", is_error=True),
    )


def test_pictures_come_from_their_urls():
    parts = [
        {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "high"},
        {"type": "input_image", "image_url": "https://example.com/a.png"},
    ]
    _, _, view = imported(item("message", role="user", content=parts))
    data = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    assert view.messages()[0].content == (
        Image(source=data, extra={"detail": "high"}),
        Image(source={"type": "url", "url": "https://example.com/a.png"}),
    )


def test_items_without_a_shape_are_kept_whole_on_their_side():
    search = {"type": "web_search_call", "status": "completed", "action": {"type": "search"}}
    sealed = {"type": "compaction", "encrypted_content": "gAAA"}
    _, account, view = imported(
        record("response_item", **sealed),
        record("response_item", **search),
        answer("Found."),
        item("ghost_snapshot", ghost_commit={"id": "x"}),
    )
    assert account.skipped == {"ghost_snapshot": 1}
    assert view.messages() == [
        Message("user", (Opaque(raw=sealed),)),
        Message("assistant", (Opaque(raw=search), Text(text="Found."))),
    ]


def test_what_the_client_says_for_the_user_is_hidden():
    entries, _, _ = imported(
        item("message", role="developer", content=[{"type": "input_text", "text": "rules"}]),
        user("<environment_context>\n</environment_context>"),
        user("hello"),
    )
    assert [entry.hidden for entry in entries if isinstance(entry, Said)] == [True, True, False]


def test_a_compaction_shows_what_replaced_the_history():
    kept = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}
    summary = kept | {"content": [{"type": "input_text", "text": "Summary: did it."}]}
    entries, _, view = imported(
        user("go"),
        answer("did it"),
        record("compacted", message="", replacement_history=[kept, summary]),
        user("next"),
    )
    assert view.messages() == [
        Message("user", (Text(text="go"), Text(text="Summary: did it."), Text(text="next")))
    ]
    (compacted,) = [entry for entry in entries if isinstance(entry, Compacted)]
    assert (compacted.first, compacted.last, compacted.by) == (1, 2, "import")


def test_what_the_model_says_in_a_replacement_is_told_again():
    user_item = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "S"}],
    }
    call_item = {"type": "function_call", "name": "ls", "arguments": "{}", "call_id": "c9"}
    result_item = {"type": "function_call_output", "call_id": "c9", "output": "x"}
    _, _, view = imported(
        user("go"),
        answer("old"),
        record("compacted", message="", replacement_history=[user_item, call_item, result_item]),
        answer("new"),
    )
    assert view.messages() == [
        Message("user", (Text(text="S"),)),
        Message("assistant", (ToolUse(id="c9", name="ls", input={}),)),
        Message("user", (ToolResult(tool_use_id="c9", content="x"),)),
        Message("assistant", (Text(text="new"),)),
    ]


def test_a_rollback_takes_turns_out_of_the_view():
    entries, _, view = imported(
        user("one"),
        answer("1"),
        user("two"),
        call("c1"),
        event("thread_rolled_back", num_turns=1),
        user("three"),
    )
    assert view.messages() == [
        Message("user", (Text(text="one"),)),
        Message("assistant", (Text(text="1"),)),
        Message("user", (Text(text="three"),)),
    ]
    assert any(isinstance(entry, Snipped) for entry in entries)
    assert [entry.content for entry in entries if isinstance(entry, Ran)] == [NO_RESULT]


def test_a_rollback_past_a_compaction_is_counted():
    _, account, view = imported(
        user("one"),
        answer("1"),
        record("compacted", message="S"),
        user("two"),
        event("thread_rolled_back", num_turns=2),
    )
    assert account.repaired == {"rollback past the beginning": 1}
    assert view.messages() == [Message("user", (Text(text="S"),))]


def test_a_title_is_kept():
    entries, _, view = imported(event("thread_name_updated", thread_id="s", thread_name="Login"))
    assert [type(entry) for entry in entries] == [Titled]
    assert view.title == "Login"


def test_the_first_versions_wrote_bare_items():
    lines = (
        b'{"id":"s","timestamp":"2025-06-01T00:00:00Z","instructions":"Be brief."}',
        b'{"record_type":"state"}',
        b'{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}',
        b'{"type":"message","role":"assistant","content":[{"type":"output_text","text":"yo"}]}',
    )
    entries, account, view = imported(*lines)
    assert codex.sniff(b"\n".join(lines))
    assert isinstance(entries[0], Framed)
    assert account.skipped == {"state": 1}
    assert [message.role for message in view.messages()] == ["user", "assistant"]


def test_broken_lines_are_counted_with_their_numbers():
    _, account, view = imported(user("hi"), b'{"torn', b"", b"[1]", b"{}", answer("yo"))
    assert [number for number, _ in account.malformed] == [2, 4, 5]
    assert len(view.messages()) == 2


def test_broken_arguments_are_kept_as_they_are():
    bad = item("function_call", name="f", arguments="{oops", call_id="c1")
    _, _, view = imported(user("go"), bad, output("c1", "?"))
    assert view.messages()[1].content == (
        ToolUse(id="c1", name="f", input={INVALID_INPUT: "{oops"}),
    )


def test_unknown_records_are_counted_by_kind():
    _, account, _ = imported(record("world_state", x=1), record("world_state", x=2))
    assert account.skipped == {"world_state": 2}


def test_redacted_thinking_and_error_marks_come_back():
    _, _, view = imported(
        user("go"),
        item("reasoning", summary=[], encrypted_content="x", redacted=True),
        call("c1"),
        item("function_call_output", call_id="c1", output="no", is_error=True, note=3),
    )
    again = fold(codex.read(list(codex.write(view)), TranscriptWriter()))
    assert again.messages() == view.messages()
    assert view.messages()[1].content[0] == RedactedThinking(data="x")
    assert view.messages()[2].content[0] == ToolResult(
        tool_use_id="c1", content="no", is_error=True, extra={"note": 3}
    )


def test_the_frame_the_model_and_the_title_are_written():
    _, _, view = imported(
        record("session_meta", id="s", base_instructions={"text": "Be brief."}),
        record("turn_context", model="gpt-5-codex"),
        event("thread_name_updated", thread_name="Login"),
        user("hi"),
    )
    again = fold(
        codex.read(list(codex.write(view, session="s", directory="/p")), TranscriptWriter())
    )
    assert (again.model, again.title) == ("gpt-5-codex", "Login")
    assert again.frame is not None and again.frame.sections[0].text == "Be brief."


def test_other_formats_are_not_claimed():
    assert not codex.sniff(b'{"longhold":1,"session":"s"}\n')
    assert not codex.sniff(b'{"type":"user","uuid":"u","sessionId":"s","message":{}}\n')
    assert not codex.sniff(b'{"type":"session","id":"s","cwd":"/"}\n')
    assert not codex.sniff(b'[{"role":"user","content":"hi"}]')
    assert codex.sniff(record("session_meta", id="s") + b"\n")


texts = st.sampled_from(["", "hi", "<environment_context>", "S"])
ids = st.sampled_from(["c1", "c2", ""])
anything = st.none() | st.integers() | texts | st.lists(texts, max_size=2)
items = st.one_of(
    st.builds(
        lambda role, content: {"type": "message", "role": role, "content": content},
        st.sampled_from(["user", "assistant", "developer", None]),
        texts.map(lambda text: [{"type": "input_text", "text": text}]) | anything,
    ),
    st.builds(lambda s, e: {"type": "reasoning", "summary": s, "encrypted_content": e}, anything, anything),
    st.builds(lambda id, a: {"type": "function_call", "name": "f", "arguments": a, "call_id": id}, ids, texts),
    st.builds(lambda id, o: {"type": "function_call_output", "call_id": id, "output": o}, ids, anything),
    st.builds(lambda kind: {"type": kind}, st.sampled_from(["web_search_call", "compaction", [], None])),
)  # fmt: skip
histories = st.none() | st.lists(items, max_size=4) | anything
lines = st.one_of(
    items.map(lambda item: record("response_item", **item)),
    st.builds(lambda h, m: record("compacted", message=m, replacement_history=h), histories, texts),
    st.integers(0, 3).map(lambda turns: event("thread_rolled_back", num_turns=turns)),
    st.integers(0, 3).map(lambda total: tokens(total, 0, 1, total)),
    st.builds(lambda kind, field: record(kind, model=field, info=field),
              st.sampled_from(["turn_context", "event_msg", "session_meta", "odd"]), anything),
    st.sampled_from([b"{", b"[]", b"null", b'{"type":[]}', b'{"type":"compacted","payload":3}']),
)  # fmt: skip


@given(st.lists(lines, max_size=14))
def test_any_rollout_folds_to_what_the_api_accepts(records: list[bytes]):
    view = fold(codex.read(records, TranscriptWriter()))
    assert violations(view.messages()) == []
    assert (
        fold(codex.read(list(codex.write(view)), TranscriptWriter())).messages() == view.messages()
    )
