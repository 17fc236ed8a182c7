"""A dialogue out of order: answers stay whole, and results find their tool uses."""

from longhold.core.log.entries import AnyEntry, Ran, Replied
from longhold.core.messages import Text, ToolResult, ToolUse
from longhold.session.importing.transcript_writer import Dialogue, TranscriptWriter


def use(id: str) -> ToolUse:
    return ToolUse(id=id, name="f", input={})


def ids(entries: list[AnyEntry]) -> list[str]:
    return [block.id for e in entries if isinstance(e, Replied) for block in e.content
            if isinstance(block, ToolUse)]  # fmt: skip


def test_the_same_id_twice_in_one_answer_takes_results_in_order():
    writer = TranscriptWriter()
    dialogue = Dialogue(writer)
    entries = list(dialogue.write_answer((use("a"), use("a"))))
    results = [
        dialogue.ran(ToolResult(tool_use_id="a", content="1")),
        dialogue.ran(ToolResult(tool_use_id="a", content="2")),
    ]
    assert ids(entries) == ["a", "a-2"]
    assert [(ran.tool_use_id, ran.content) for ran in results] == [("a", "1"), ("a-2", "2")]


def test_a_result_prefers_the_last_answer():
    writer = TranscriptWriter()
    dialogue = Dialogue(writer)
    list(dialogue.write_answer((use("a"),)))
    list(dialogue.write_message((Text(text="and?"),)))
    list(dialogue.write_answer((use("a"),)))
    assert dialogue.ran(ToolResult(tool_use_id="a", content="x")).tool_use_id == "a-2"
    assert writer.account.repaired == {"missing result": 1, "repeated tool use id": 1}


def test_a_new_id_never_takes_one_that_is_there():
    dialogue = Dialogue(TranscriptWriter())
    entries = [e for id in ("a", "a", "a-2", "a") for e in dialogue.write_answer((use(id),))]
    assert ids(entries) == ["a", "a-2", "a-2-2", "a-3"]


def test_a_second_result_is_counted():
    writer = TranscriptWriter()
    dialogue = Dialogue(writer)
    list(dialogue.write_answer((use("a"),)))
    dialogue.ran(ToolResult(tool_use_id="a", content="1"))
    dialogue.ran(ToolResult(tool_use_id="a", content="2"))
    assert writer.account.repaired == {"second result": 1}


def test_results_go_before_what_was_said_with_them():
    dialogue = Dialogue(TranscriptWriter())
    list(dialogue.write_answer((use("a"),)))
    said = list(
        dialogue.write_message((Text(text="and"), ToolResult(tool_use_id="a", content="x")))
    )
    assert [type(entry).__name__ for entry in said] == ["Ran", "Said"]


def test_an_answer_named_like_the_last_is_another_one():
    dialogue = Dialogue(TranscriptWriter())
    first = list(dialogue.write_answer((Text(text="1"),), answer="m"))
    between = list(dialogue.write_message((Text(text="?"),)))
    second = list(dialogue.write_answer((Text(text="2"),), answer="m"))
    names = [e.response_id for e in first + between + second if isinstance(e, Replied)]
    assert names == ["m", "m-3"]


def test_what_waits_is_known():
    dialogue = Dialogue(TranscriptWriter())
    list(dialogue.write_answer((use("a"), use("b"))))
    assert isinstance(dialogue.ran(ToolResult(tool_use_id="a", content="")), Ran)
    assert dialogue.waiting() == ["b"]
