"""Extracting facts from items."""

from longhold.core.log.entries import Compacted
from longhold.core.messages import Opaque, RedactedThinking, Text, Thinking, ToolResult, ToolUse
from longhold.core.stages.facts.facts import (
    AnswerFact,
    Interruption,
    PriorSummary,
    TaskFact,
    Thought,
    WordsFact,
)
from longhold.core.stages.facts.tool_steps import extract, gather, originals
from longhold.core.view import fold
from longhold.session.importing.transcript_writer import TranscriptWriter


def text(said):
    """Make content of a text."""
    return (Text(text=said),)


def test_each_message_of_the_user_begins_a_turn(talk):
    talk.user("one")
    talk.answer("yes")
    talk.user("two")
    turns = extract(talk.items).turns
    assert [(turn.number, turn.words.text, len(turn.steps)) for turn in turns] == [
        (1, "one", 1),
        (2, "two", 0),
    ]


def test_work_before_the_first_word_is_turn_zero(talk):
    talk.answer("going on")
    assert [(turn.number, turn.words) for turn in extract(talk.items).turns] == [(0, None)]


def test_thinking_answers_and_stops_are_steps_in_order(talk):
    talk.user("go")
    talk.answer("done", Thinking(thinking="hm"), RedactedThinking(data="x"), Opaque(raw={"a": 1}))
    talk.user("[Request interrupted by user]")
    assert extract(talk.items).turns[0].steps == (
        Thought(id=2, text="hm"),
        AnswerFact(id=2, text="done"),
        Interruption(id=3),
    )


def test_hidden_messages_are_not_the_users(talk):
    talk.user("be careful", hidden=True)
    assert extract(talk.items).turns == ()


def test_a_foreign_summary_is_kept_as_what_came_before(talk):
    n = talk.user("This session is being continued from a previous conversation. It was long.")
    assert extract(talk.items).prior == (
        PriorSummary(id=n, text="This session is being continued from a previous conversation. It was long."),
    )  # fmt: skip


def test_background_tasks_are_known_by_their_last_state(talk):
    started = "Command running in background with ID: b1. Output goes elsewhere."
    one = talk.call("Bash", started, command="serve", run_in_background=True)
    talk.call("Task", "launched, agentId: a2", description="Review", run_in_background=True)
    two = talk.user(
        "<task-notification><task-id>a2</task-id><result>ok</result></task-notification>"
    )
    assert extract(talk.items).tasks == (
        TaskFact(name="b1", about="serve", state="running", id=one),
        TaskFact(name="a2", about="Review", state="ended", id=two),
    )


def compacted_log(by):
    """Write a log that was compacted once and went on."""
    scribe = TranscriptWriter()
    entries = [scribe.write_message(text("first wish")), scribe.write_answer("r1", text("did it"))]
    entries.append(
        scribe.write(Compacted(first=1, last=2, summary=text("1. Intent\nA wish."), by=by))
    )
    use = ToolUse(id="t", name="Bash", input={"command": "ls"})
    entries += [
        scribe.write_message(text("second wish")),
        scribe.write_answer("r2", (use,)),
        scribe.ran(ToolResult(tool_use_id="t", content="a")),
    ]
    return entries


def test_what_was_compacted_before_is_read_again_from_the_log():
    entries = compacted_log("model")
    facts = gather(entries, list(fold(entries).items))
    assert [words.text for _, words in facts.words()] == ["first wish", "second wish"]
    assert facts.prior == (PriorSummary(id=3, text="1. Intent\nA wish."),)
    assert facts.since == 4


def test_a_digest_is_made_afresh_and_not_carried():
    entries = compacted_log("digest")
    assert gather(entries, list(fold(entries).items)).prior == ()


def test_turns_are_counted_from_the_beginning_of_the_log():
    entries = compacted_log("digest")
    tail = [item for item in originals(entries) if item.order >= 4]
    assert [turn.number for turn in gather(entries, tail).turns] == [2]


def test_words_in_tool_results_count_as_the_users(talk):
    talk.user("go on")
    talk.call("Bash", "Not allowed: not on a Friday.", refused="not on a Friday", command="deploy")
    said = [(turn, words.text, words.via) for turn, words in extract(talk.items).words()]
    assert said == [(1, "go on", "message"), (1, "not on a Friday", "refusal")]
    assert isinstance(extract(talk.items).turns[0].steps[0], WordsFact)
