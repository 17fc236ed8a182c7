"""An answer in the log: in parts while streaming, or whole, but always the same entry."""

import pytest

from longhold.core.log.entries import Replied
from longhold.core.messages import Text, ToolUse, Usage
from longhold.core.models.protocol import (
    BlockFinished,
    Finished,
    Reply,
    Restarted,
    Started,
    TextDelta,
)
from longhold.core.turn.answer_writer import AnswerWriter
from longhold.errors import StreamBroken

USE = ToolUse(id="t1", name="Read", input={"file_path": "a.py"})
REPLY = Reply(
    response_id="r1",
    model="m",
    content=(Text(text="look"), USE, Text(text="and more")),
    stop_reason="tool_use",
    usage=Usage(input_tokens=5, output_tokens=7),
)


@pytest.fixture
def log():
    return []


@pytest.fixture
def writer(log):
    """A writer over a list of numbered entries."""

    def record(entry):
        log.append(entry)
        return type(entry)(**{f: getattr(entry, f) for f in entry.__struct_fields__} | {"n": 1})

    return AnswerWriter(record)


def test_a_tool_call_is_written_before_its_tool_may_begin(writer, log):
    assert writer.take(Started(response_id="r1", model="m")) is None
    assert writer.take(BlockFinished(index=0, block=Text(text="look"))) is None
    assert log == []
    assert writer.take(BlockFinished(index=0, block=USE)) == USE
    [written] = log
    assert written.content == (Text(text="look"), USE)
    assert (written.response_id, written.stop_reason, written.usage) == ("r1", "", None)


def test_the_rest_of_an_answer_carries_its_usage(writer, log):
    for block in REPLY.content:
        writer.take(BlockFinished(index=0, block=block))
    writer.take(Finished(reply=REPLY))
    assert [entry.usage for entry in log] == [None, REPLY.usage]
    assert tuple(block for entry in log for block in entry.content) == REPLY.content
    assert writer.reply == REPLY and len(writer.numbers) == 2


def test_a_whole_answer_is_one_entry_with_the_same_content(writer, log):
    writer.write(REPLY)
    assert log == [
        Replied(
            response_id="r1",
            model="m",
            content=REPLY.content,
            stop_reason="tool_use",
            usage=REPLY.usage,
            measure=log[0].measure,
        )
    ]


def test_a_restarted_answer_begins_anew(writer, log):
    writer.take(BlockFinished(index=0, block=Text(text="half")))
    writer.take(Restarted(attempt=1, wait_seconds=0.0, error=StreamBroken("cut")))
    writer.take(Finished(reply=REPLY))
    assert log[0].content == ()


@pytest.mark.parametrize(("reason", "kept"), [("aborted", "so f"), ("broken", None)])
def test_of_an_answer_cut_short_whole_blocks_stay(writer, log, reason, kept):
    writer.take(BlockFinished(index=0, block=Text(text="whole")))
    writer.take(TextDelta(index=0, text="so f"))
    writer.close(reason)
    texts = [block.text for block in log[0].content]
    assert texts == ["whole", *([kept] if kept else [])] and log[0].stop_reason == reason


def test_nothing_is_written_of_an_answer_that_never_began(writer, log):
    writer.close("broken")
    assert log == []
