"""The writer numbers, dates and measures imported entries, and counts skipped records."""

import pytest

from longhold.core.log.entries import Imported, Titled
from longhold.core.messages import Image, Opaque, Text, Thinking, ToolResult, ToolUse, Usage
from longhold.core.messages.measure import measure_content
from longhold.core.view.block_roles import to_spoken
from longhold.session.importing.transcript_writer import TranscriptWriter


@pytest.fixture
def writer():
    return TranscriptWriter()


def test_entries_are_numbered_from_one(writer):
    assert writer.last == 0
    assert [
        writer.write_message(()).n,
        writer.ran(ToolResult(tool_use_id="a", content="x")).n,
        writer.write_answer("r", ()).n,
    ] == [1, 2, 3]
    assert writer.last == 3


def test_a_date_is_taken_from_the_file_or_from_the_entry(writer):
    assert writer.write(Titled(title="a", at=5.0), 7.0).at == 7.0
    assert writer.write(Titled(title="a", at=5.0)).at == 5.0
    assert writer.write_message(()).at == 0.0


def test_entries_carry_their_measure(writer):
    content = (Text(text="fix the bug"),)
    assert writer.write_message(content).measure == measure_content(content)
    assert writer.write_answer("r", content).measure == measure_content(content)
    assert writer.ran(ToolResult(tool_use_id="a", content="ok")).measure == measure_content("ok")


def test_blocks_that_cannot_stand_on_the_users_side_are_written_out(writer):
    picture, thought = Image(source={"type": "url"}), Thinking(thinking="hm")
    strange, broken = Opaque(raw={"type": "tomorrow"}), Opaque(raw={"type": "tool_use", "id": 1})
    kept = writer.write_message((picture, thought, strange, broken)).content
    assert kept == (
        picture,
        Text(text='{"type":"thinking","thinking":"hm"}'),
        strange,
        Text(text='{"type":"tool_use","id":1}'),
    )
    assert to_spoken((picture, thought, strange, broken)) == kept


def test_blocks_that_cannot_stand_on_the_models_side_are_written_out(writer):
    use, result = ToolUse(id="a", name="b", input={}), ToolResult(tool_use_id="a", content="x")
    strange, broken = Opaque(raw={"type": "tomorrow"}), Opaque(raw={"type": "thinking"})
    kept = writer.write_answer("r", (use, result, strange, broken)).content
    assert kept == (
        use,
        Text(text='{"type":"tool_result","tool_use_id":"a","content":"x"}'),
        strange,
        Text(text='{"type":"thinking"}'),
    )


def test_a_picture_on_the_models_side_stays_a_picture(writer):
    picture = Image(source={"type": "url"})
    [kept] = writer.write_answer("r", (picture,)).content
    assert kept == Opaque(raw={"type": "image", "source": {"type": "url"}})


def test_blocks_that_cannot_stand_in_a_result_are_written_out(writer):
    strange = Opaque(raw={"type": "tomorrow"})
    inside = Opaque(raw={"type": "tool_use", "id": "a", "name": "b", "input": {}})
    kept = writer.ran(ToolResult(tool_use_id="a", content=(strange, inside))).content
    assert kept == (strange, Text(text='{"type":"tool_use","id":"a","name":"b","input":{}}'))


def test_usage_is_read_or_counted(writer):
    assert writer.account.usage({"input_tokens": 3}) == Usage(input_tokens=3)
    assert writer.account.usage(None) is None
    assert writer.account.repaired == {}
    assert writer.account.usage({"input_tokens": "many"}) is None
    assert writer.account.repaired == {"usage that cannot be read": 1}


def test_the_account_is_the_last_entry(writer):
    writer.account.records = 9
    writer.account.skipped["progress"] += 2
    writer.account.malformed.append((4, "not JSON"))
    writer.account.repaired["dangling parents"] += 1
    assert writer.write_import("pi", "a.jsonl") == Imported(
        n=1,
        format="pi",
        source="a.jsonl",
        records=9,
        skipped={"progress": 2},
        malformed=((4, "not JSON"),),
        repaired={"dangling parents": 1},
    )
