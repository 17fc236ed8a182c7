"""Claude Code transcripts: each kind of record, imported and exported."""

import itertools
import json

import pytest

from generated_sessions import generate
from longhold.core.log.entries import (
    Cleared,
    Compacted,
    Failed,
    Ran,
    Replied,
    Said,
    Snipped,
    Undone,
)
from longhold.core.messages import Document, Image, Opaque, Text, Usage, text_of
from longhold.core.messages.rules import violations
from longhold.core.view import fold
from longhold.insight.transcripts import claude_code
from longhold.insight.transcripts.claude_code.read import CLEARED
from longhold.insight.transcripts.formats import open_transcript
from longhold.session.importing.transcript_writer import TranscriptWriter

PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}


class Session:
    """A transcript in the making: records hang on one another unless told otherwise."""

    def __init__(self):
        self.records = []
        self.uuids = (f"u{i}" for i in itertools.count(1))

    def add(self, kind, fields, **more):
        parent = self.records[-1]["uuid"] if self.records else None
        uuid = next(self.uuids)
        record = {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s"}
        self.records.append(record | {"timestamp": "2026-01-05T10:00:00Z"} | fields | more)
        return self.records[-1]["uuid"]

    def user(self, content, **more):
        return self.add("user", {"message": {"role": "user", "content": content}}, **more)

    def answer(self, content, id="m1", **more):
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        message = {"id": id, "role": "assistant", "model": "claude-opus-4-5", "content": blocks}
        return self.add("assistant", {"message": message | more.pop("message", {})}, **more)

    def call(self, id, response="m1", **more):
        use = {"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": "a.py"}}
        return self.answer([use], response, **more)

    def result(self, id, content="ok", **more):
        return self.user([{"type": "tool_result", "tool_use_id": id, "content": content}], **more)

    def boundary(self, **metadata):
        subtype = {"subtype": "compact_boundary", "compactMetadata": metadata}
        return self.add("system", subtype, parentUuid=None)

    def summary(self, content="a summary"):
        return self.user(content, isCompactSummary=True, isVisibleInTranscriptOnly=True)

    def queue(self, operation, content=None, **more):
        record = {"type": "queue-operation", "operation": operation, "uuid": self.last}
        self.records.append(record | ({"content": content} if content else {}) | more)

    @property
    def last(self):
        return self.records[-1]["uuid"] if self.records else None

    def attach(self, prompt, **more):
        attachment = {"type": "queued_command", "prompt": prompt} | more
        self.add("attachment", {"attachment": attachment, "parentUuid": None})

    def lines(self):
        return [json.dumps(record).encode() + b"\n" for record in self.records]

    def read(self):
        self.writer = TranscriptWriter()
        return list(claude_code.read(self.lines(), self.writer))

    def view(self):
        return fold(self.read())

    def told(self):
        """What a person could read of the view, message by message."""
        return [text_of(message.content) for message in self.view().messages()]


@pytest.fixture
def session():
    return Session()


def test_a_prompt_a_call_and_an_answer(session):
    session.user("hi")
    session.call("a", message={"stop_reason": "tool_use"})
    session.result("a", "body")
    session.answer("done", "m2")
    said, called, ran, answered = session.read()
    assert [type(entry) for entry in (said, called, ran, answered)] == [Said, Replied, Ran, Replied]
    assert (said.origin, said.at, said.hidden) == ("u1", 1767607200.0, False)
    assert (called.response_id, called.model, called.stop_reason) == (
        "m1",
        "claude-opus-4-5",
        "tool_use",
    )
    assert (ran.tool_use_id, ran.content) == ("a", "body")


def test_answers_carry_the_thinking_level_of_the_prompt(session):
    session.answer("before anything is recorded", "m1")
    for number, level in enumerate(
        (
            {"level": "high", "disabled": False},
            {"maxThinkingTokens": 31999},
            {"maxThinkingTokens": 8000},
            {"level": "high", "disabled": True},
            {"maxThinkingTokens": 0},
        ),
        start=2,
    ):
        session.user("go on", thinkingMetadata=level)
        session.answer("done", f"m{number}")
    answers = [entry for entry in session.read() if isinstance(entry, Replied)]
    assert [one.thinking for one in answers] == ["", "high", "high", "8000 tokens", "off", "off"]


def test_records_of_one_response_are_one_answer(session):
    session.user("hi")
    session.call("a")
    session.result("a")
    session.call("b")
    session.result("b")
    assert [len(message.content) for message in session.view().messages()] == [1, 2, 2]


def test_usage_comes_with_all_its_counts(session):
    usage = {
        "input_tokens": 1,
        "output_tokens": 2,
        "cache_read_input_tokens": 3,
        "cache_creation_input_tokens": 9,
        "cache_creation": {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 5},
        "service_tier": "standard",
    }
    session.answer("hi", message={"usage": usage})
    [entry] = session.read()
    assert entry.usage == Usage(
        input_tokens=1,
        output_tokens=2,
        cache_read_tokens=3,
        cache_write_tokens=9,
        cache_write_5m_tokens=4,
        cache_write_1h_tokens=5,
        extra={"service_tier": "standard"},
    )


@pytest.mark.parametrize(
    "usage", [{"input_tokens": "many"}, {"input_tokens": [1]}, {"cache_creation": 5}]
)
def test_usage_that_cannot_be_read_is_counted(session, usage):
    session.answer("hi", message={"usage": usage})
    [entry] = session.read()
    assert entry.usage is None
    assert session.writer.account.repaired == {"usage that cannot be read": 1}


def test_images_and_unknown_blocks_survive(session):
    strange = {"type": "tomorrow", "deep": [1, None]}
    session.user([PICTURE, strange, {"type": "document", "source": {"type": "text"}}])
    session.answer([strange, {"type": "text", "text": "x", "citations": [1]}])
    said, replied = session.read()
    assert [type(block) for block in said.content] == [Image, Opaque, Document]
    assert replied.content == (Opaque(raw=strange), Text(text="x", extra={"citations": [1]}))


def test_cache_markers_are_left_behind(session):
    session.user([{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}])
    [said] = session.read()
    assert said.content == (Text(text="x"),)


def test_a_compaction_is_a_boundary_and_its_summary(session):
    session.user("one")
    session.answer("two")
    session.boundary(trigger="manual", preTokens=167_189)
    session.summary()
    session.user("three")
    *_, compacted, _ = session.read()
    assert isinstance(compacted, Compacted)
    assert (compacted.first, compacted.last, compacted.kind) == (1, 2, "full")
    assert (compacted.trigger, compacted.by, compacted.before_tokens) == (
        "manual",
        "import",
        167_189,
    )
    assert session.told() == ["a summary\nthree"]


def test_a_picture_in_a_summary_is_kept(session):
    session.user("one")
    session.boundary()
    session.summary([{"type": "text", "text": "a summary"}, PICTURE])
    [message] = session.view().messages()
    assert [type(block) for block in message.content] == [Text, Image]


@pytest.mark.parametrize("metadata", [{"preTokens": [1]}, {"preTokens": "lots"}, {"trigger": 3}])
def test_odd_numbers_at_a_boundary_do_not_stop_the_import(session, metadata):
    session.user("one")
    session.boundary(**metadata)
    session.summary()
    assert session.told() == ["a summary"]


def test_a_kept_segment_stays_behind_the_summary(session):
    session.user("one")
    session.answer("two")
    head = session.user("three")
    tail = session.answer("four", "m2")
    session.boundary(preservedSegment={"headUuid": head, "anchorUuid": "x", "tailUuid": tail})
    session.summary()
    session.user("five")
    assert session.told() == ["a summary\nthree", "four", "five"]


def test_a_compaction_from_a_point_keeps_what_came_before(session):
    head = session.user("one")
    tail = session.answer("two")
    session.user("three")
    session.answer("four", "m2")
    session.boundary(preservedSegment={"headUuid": head, "anchorUuid": "x", "tailUuid": tail})
    session.summary()
    assert session.told() == ["one", "two", "a summary"]


def test_a_boundary_without_a_summary_is_counted(session):
    session.user("one")
    session.boundary()
    assert session.told() == ["one"]
    assert session.writer.account.repaired == {"boundaries without a summary": 1}


def test_a_second_compaction_covers_the_first_summary(session):
    session.user("one")
    session.boundary()
    session.summary("first summary")
    session.user("two")
    session.boundary()
    session.summary("second summary")
    assert session.told() == ["second summary"]


def test_a_microcompaction_clears_the_results_it_names(session):
    session.user("hi")
    session.call("a")
    session.result("a", "long")
    session.call("b")
    session.result("b", "short")
    session.add(
        "system",
        {
            "subtype": "microcompact_boundary",
            "microcompactMetadata": {"compactedToolIds": ["a", "x"]},
        },
    )
    *_, cleared = session.read()
    assert isinstance(cleared, Cleared) and cleared.ids == ("a",)
    results = session.view().messages()[-1].content
    assert [result.content for result in results] == [
        CLEARED,
        "short",
    ]


def test_going_back_to_an_earlier_prompt_leaves_the_first_try_out(session):
    session.user("one")
    place = session.answer("two")
    session.user("three")
    session.answer("four", "m2")
    session.user("instead", parentUuid=place)
    assert session.told() == ["one", "two", "instead"]
    snipped = next(entry for entry in session.read() if isinstance(entry, Snipped))
    assert snipped.targets == (3, 4)


def test_going_back_to_the_first_prompt_leaves_the_first_try_out(session):
    session.user("one")
    session.answer("two")
    session.user("instead", parentUuid=None)
    session.answer("three", "m2")
    assert session.told() == ["instead", "three"]
    assert session.writer.account.repaired == {"returns to an earlier prompt": 1}


def test_records_without_parents_follow_one_another(session):
    session.user("one")
    session.answer("two", parentUuid=None)
    session.user("three", parentUuid=None)
    session.answer("four", "m2", parentUuid=None)
    assert session.told() == ["one", "two", "three", "four"]


def test_a_call_that_was_still_open_leaves_with_the_first_try(session):
    session.user("one")
    session.call("a")
    session.result("a")
    session.call("b")
    session.user("instead", parentUuid=None)
    assert session.told() == ["instead"]


def test_going_back_before_a_compaction_takes_it_back(session):
    session.user("one")
    place = session.answer("two")
    session.user("three")
    session.answer("four", "m2")
    session.boundary()
    session.summary()
    session.answer("five", "m3")
    session.user("instead", parentUuid=place)
    assert session.told() == ["one", "two", "instead"]
    assert [entry.target for entry in session.read() if isinstance(entry, Undone)] == [5]


def test_going_back_before_two_compactions_takes_both_back(session):
    place = session.user("one")
    session.answer("two")
    session.boundary()
    session.summary("first summary")
    session.answer("three", "m2")
    session.boundary()
    session.summary("second summary")
    session.user("other", parentUuid=place)
    session.user("instead", parentUuid=place)
    assert session.told() == ["one\ninstead"]


def test_a_compaction_after_going_back_covers_what_is_there(session):
    session.user("one")
    place = session.answer("two")
    session.user("three")
    session.boundary()
    session.summary("first summary")
    session.user("instead", parentUuid=place)
    session.answer("four", "m2")
    session.boundary()
    session.summary("second summary")
    assert session.told() == ["second summary"]


def test_a_dangling_parent_is_mended_and_counted(session):
    session.user("one")
    session.user("two", parentUuid="nowhere")
    assert session.told() == ["one\ntwo"]
    assert session.writer.account.repaired == {"dangling parents": 1}


def test_a_repeated_record_is_taken_once(session):
    session.user("one")
    session.records.append(session.records[-1])
    assert session.told() == ["one"]
    assert session.writer.account.repaired == {"repeated records": 1}


def test_a_result_nobody_asked_for_is_counted(session):
    session.user("one")
    session.result("nobody")
    assert session.told() == ["one"]
    assert session.writer.account.repaired == {"results without a tool use": 1}


def test_what_a_sub_agent_said_in_the_main_file_is_counted(session):
    session.user("one")
    session.user("for the agent", isSidechain=True)
    assert session.told() == ["one"]
    assert session.writer.account.skipped == {"sidechain": 1}


def test_a_sub_agents_own_file_is_a_session(session):
    session.user("for the agent", isSidechain=True)
    session.answer("done", isSidechain=True)
    assert session.told() == ["for the agent", "done"]


def test_a_sub_agent_at_the_start_does_not_hide_the_conversation(session):
    session.user("for the agent", isSidechain=True)
    session.answer("its answer", "s1", isSidechain=True)
    session.user("one", parentUuid=None)
    session.answer("more of its answer", "s2", isSidechain=True)
    session.answer("two")
    assert session.told() == ["one", "two"]
    assert session.writer.account.repaired == {"side chains before the conversation": 1}
    assert session.writer.account.skipped == {"sidechain": 1}


def test_a_sub_agent_at_the_start_leaves_with_its_open_call_and_its_compaction(session):
    session.user("for the agent", isSidechain=True)
    session.boundary()
    session.summary()
    session.records[-1]["isSidechain"] = True
    session.call("a", "s1", isSidechain=True)
    session.user("one", parentUuid=None)
    session.answer("two")
    session.result("a", isSidechain=True)
    assert session.told() == ["one", "two"]


def test_a_compaction_of_a_sub_agent_says_nothing_about_the_conversation(session):
    session.user("one")
    session.boundary(trigger="manual")
    session.records[-1]["isSidechain"] = True
    session.boundary(trigger="auto")
    session.summary()
    *_, compacted = session.read()
    assert (compacted.trigger, session.writer.account.skipped) == ("auto", {"sidechain": 1})


def test_a_sub_agents_file_is_a_stream_too(session):
    session.user("for the agent", isSidechain=True)
    taken = []
    entries = claude_code.read(
        (taken.append(line) or line for line in session.lines() * 3), TranscriptWriter()
    )
    assert text_of(next(entries).content) == "for the agent"
    assert len(taken) == 1


def busy(session):
    """Begin a turn with a tool that still runs."""
    session.user("go")
    session.call("t1", "m1")


def test_words_queued_while_the_agent_worked_stand_where_the_model_got_them(session):
    busy(session)
    session.queue("enqueue", "and the tests")
    session.queue("remove")
    session.result("t1")
    session.answer("Both done.", "m2")
    session.answer("Really.", "m2")
    assert session.told() == ["go", "", "and the tests", "Both done.\nReally."]
    said = [entry for entry in session.read() if isinstance(entry, Said)]
    assert [entry.hidden for entry in said] == [False, False]


def test_a_removal_between_two_blocks_of_an_answer_waits_for_its_results(session):
    session.user("go")
    session.queue("enqueue", "and the tests")
    session.answer("Let me look.", "m1")
    session.queue("remove")
    session.call("t1", "m1")
    session.result("t1")
    session.answer("Done.", "m2")
    assert session.told() == ["go", "Let me look.", "and the tests", "Done."]


@pytest.mark.parametrize("way", ["dequeue", "attachment", "attachment first", "beside a result"])
def test_queued_words_that_have_a_record_come_once(session, way):
    busy(session)
    session.queue("enqueue", "and the tests")
    match way:
        case "dequeue":
            session.result("t1")
            session.answer("Done.", "m2")
            session.queue("dequeue")
            session.user("and the tests")
        case "attachment":
            session.queue("remove")
            session.result("t1")
            session.attach("and the tests")
        case "attachment first":
            session.result("t1")
            session.attach("and the tests")
            session.queue("remove")
        case _:
            session.queue("remove")
            result = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}
            session.user([result, {"type": "text", "text": "and the tests"}])
    session.answer("Those too.", "m3")
    assert "\n".join(session.told()).count("and the tests") == 1
    said = [entry for entry in session.read() if isinstance(entry, Said) and not entry.hidden]
    assert [text_of(entry.content) for entry in said] == ["go", "and the tests"]
    assert not [entry for entry in session.read() if isinstance(entry, Snipped)]


def test_words_taken_back_into_the_input_line_were_not_said(session):
    busy(session)
    session.queue("enqueue", "and the tests")
    session.queue("popAll", "and the tests")
    session.result("t1")
    session.answer("Done.", "m2")
    assert "and the tests" not in "\n".join(session.told())


def test_words_that_were_still_queued_when_the_file_ended_are_not_lost(session):
    busy(session)
    session.result("t1")
    session.answer("Done.", "m2")
    session.queue("enqueue", "and the tests")
    session.queue("enqueue", "/exit")
    assert session.told()[-1] == "and the tests"


def test_a_queued_notification_is_for_the_model_and_not_the_users(session):
    busy(session)
    session.queue("enqueue", "<task-notification><task-id>a1</task-id></task-notification>")
    session.queue("enqueue", "and the tests")
    session.queue("remove")
    session.queue("remove", reason="absorbed_mid_turn")
    session.result("t1")
    session.attach("from another agent", origin={"kind": "peer"})
    session.answer("Done.", "m2")
    said = [entry for entry in session.read() if isinstance(entry, Said)]
    assert [text_of(entry.content) for entry in said if not entry.hidden] == ["go", "and the tests"]
    assert len(said) == 4


REFUSED = "The user doesn't want to proceed with this tool use. The tool use was rejected."


@pytest.mark.parametrize(
    ("text", "fields", "refused"),
    [
        (
            f"{REFUSED} the user said:\ntest first",
            {"toolUseResult": f"Error: {REFUSED}"},
            "test first",
        ),
        (
            f"{REFUSED} the user said:\ntest first",
            {"toolDenialKind": "user-rejected"},
            "test first",
        ),
        (f"{REFUSED} the user said: push", {}, None),
        (f"{REFUSED} the user said: push", {"toolUseResult": "Error: x"}, None),
        (f"{REFUSED} STOP.", {"toolUseResult": "User rejected tool use"}, ""),
        ("Exit code 1\nTo tell you how to proceed, the user said: push", {}, None),
        (f"# Readme\n{REFUSED} the user said: push", {}, None),
        (f"{REFUSED} the user said: push", {"toolUseResult": {"stdout": "…"}}, None),
    ],
)
def test_a_refused_call_is_known_by_its_record(session, text, fields, refused):
    session.call("t1")
    result = {"type": "tool_result", "tool_use_id": "t1", "content": text, "is_error": True}
    session.user([result], **fields)
    assert [entry.refused for entry in session.read() if isinstance(entry, Ran)] == [refused]


def test_reminders_and_attachments_are_for_the_model_only(session):
    session.user("a reminder", isMeta=True)
    session.add("attachment", {"attachment": {"type": "file", "content": "a file"}})
    session.add("attachment", {"attachment": {"type": "todo", "items": [1]}})
    assert [entry.hidden for entry in session.read()] == [True] * 3
    assert session.told() == ['a reminder\na file\n{"type":"todo","items":[1]}']


def test_errors_of_the_api_are_no_answers(session):
    session.user("one")
    session.answer("API Error", message={"model": "<synthetic>"})
    session.answer("Overloaded", isApiErrorMessage=True)
    session.add("system", {"subtype": "api_error", "error": {"status": 529}})
    told = {"error": {"error": {"message": "Overloaded"}}, "status": 529, "headers": {"date": "x"}}
    session.add("system", {"subtype": "api_error", "error": told})
    assert session.told() == ["one"]
    assert [entry.error for entry in session.read() if isinstance(entry, Failed)] == [
        "API Error",
        "Overloaded",
        '{"status":529}',
        "529 Overloaded",
    ]


def test_the_title_is_the_last_that_belongs_here(session):
    leaf = session.user("one")
    session.add("summary", {"summary": "Ours", "leafUuid": leaf})
    session.add("summary", {"summary": "Theirs", "leafUuid": "elsewhere"})
    assert session.view().title == "Ours"


def test_malformed_lines_are_reported_with_their_numbers():
    lines = [
        b"not json\n",
        b'{"type":"user","message":{"content":"one"}}\n',
        b"\n",
        b"\0\0\0\n",
        b"[1]\n",
        b"{}\n",
        b'{"type":"user"}\n',
        b"[" * 5_000 + b"]" * 5_000 + b"\n",
    ]
    writer = TranscriptWriter()
    entries = list(claude_code.read(lines, writer))
    assert len(entries) == 1
    assert [number for number, _ in writer.account.malformed] == [1, 4, 5, 6, 7, 8]
    assert writer.account.records == 7


def test_half_a_character_costs_no_more_than_itself(session):
    session.user("one")
    [line] = session.lines()
    writer = TranscriptWriter()
    [said] = claude_code.read([line.replace(b"one", rb"a\ud83d b\\ud83d \ud83d\ude00")], writer)
    assert said.content == (Text(text="a\ufffd b\\ud83d \U0001f600"),)
    assert writer.account.malformed == []
    assert writer.account.repaired == {"characters cut in half": 1}


def test_a_byte_order_mark_is_no_reason_to_lose_the_first_record(session):
    session.user("one")
    [line] = session.lines()
    assert claude_code.sniff(b"\xef\xbb\xbf" + line)
    [said] = claude_code.read([b"\xef\xbb\xbf" + line], TranscriptWriter())
    assert text_of(said.content) == "one"


def test_a_time_without_a_zone_is_in_utc(session):
    session.user("one", timestamp="2026-01-05T10:00:00")
    [said] = session.read()
    assert said.at == 1767607200.0


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00", "9999-12-31T23:59:59-23:59", 7, None])
def test_odd_times_are_no_times(session, time):
    session.user("one", timestamp=time)
    [said] = session.read()
    assert 0.0 <= said.at < 1.0


def test_what_the_api_forbids_on_the_users_side_is_not_sent_there(session):
    session.user([{"type": "tool_use", "id": "a", "name": "Read", "input": {}}])
    for message in session.view().messages():
        wires = [block.raw for block in message.content if isinstance(block, Opaque)]
        assert [wire["type"] for wire in wires] == []


def test_a_tool_use_that_cannot_be_typed_is_still_answered(session):
    session.user("hi")
    session.answer([{"type": "tool_use", "id": "a", "name": "Read", "input": "a.py"}])
    session.result("a", "body")
    session.user("and?")
    last = session.view().messages()[-1]
    assert "tool_result" in [block.__struct_config__.tag for block in last.content]


def exported(view):
    return fold(claude_code.read(claude_code.write(view), TranscriptWriter()))


def test_an_export_names_its_session_and_directory(session):
    session.user("hi")
    session.answer("yes")
    lines = list(claude_code.write(session.view(), session="abc", directory="/somewhere"))
    first, second = map(json.loads, lines)
    assert (first["sessionId"], first["cwd"], first["parentUuid"]) == ("abc", "/somewhere", None)
    assert second["parentUuid"] == first["uuid"] != second["uuid"]


def test_a_summary_is_exported_with_its_boundary(session):
    session.user("one")
    session.boundary()
    session.summary()
    session.user("two")
    boundary, summary, _ = map(json.loads, claude_code.write(session.view()))
    assert boundary["subtype"] == "compact_boundary"
    assert summary["isCompactSummary"] is True


def test_a_summary_behind_kept_messages_does_not_cover_them_after_an_export(session):
    head = session.user("one")
    session.answer("two")
    session.boundary(preservedSegment={"headUuid": head, "tailUuid": head})
    session.summary()
    view = session.view()
    assert [text_of(message.content) for message in view.messages()] == ["one\na summary"]
    assert exported(view).messages() == view.messages()


def test_a_missing_result_is_missing_after_an_export(session):
    session.user("hi")
    session.call("a")
    again = exported(session.view())
    assert [use.id for use in again.open_round().missing()] == ["a"]


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (b'{"type":"user","message":{"content":"x"},"uuid":"u"}\n', True),
        (b'garbage\n{"type":"assistant","message":{},"sessionId":"s"}\n', True),
        (b'{"type":"file-history-snapshot"}\n', True),
        (b'{"type":"summary","summary":"x","leafUuid":"u"}\n', True),
        (b'{"role":"user","content":"x"}\n', False),
        (b'{"type":"session","version":3}\n', False),
        (b"\xff\xfe", False),
        (b"", False),
    ],
)
def test_the_format_is_recognised_by_its_records(first, expected):
    assert claude_code.sniff(first) is expected


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compactions": 2, "microcompactions": 2},
        {"images": 3, "malformed": 5},
        {"sidechain": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_generated_sessions_go_round(seed, options):
    view = fold(claude_code.read(generate(seed, 150, **options), TranscriptWriter()))
    assert violations(view.messages()) == violations(view.render_seen()) == []
    assert exported(view).messages() == view.messages()


def test_recorded_sessions_go_round(recorded):
    with open_transcript(recorded) as transcript:
        view = fold(transcript.entries)
    assert view.items
    assert violations(view.messages()) == violations(view.render_seen()) == []
    assert exported(view).messages() == view.messages()


def test_a_summary_longer_than_the_beginning_that_is_looked_at_is_still_recognised():
    boundary = b'{"type":"system","subtype":"compact_boundary","uuid":"u","sessionId":"s"}\n'
    assert claude_code.sniff(boundary + b'{"type":"user","message":{"role":"user","content":"cut')
    assert not claude_code.sniff(b'{"type":"system","subtype":"init","session_id":"s"}\n')
