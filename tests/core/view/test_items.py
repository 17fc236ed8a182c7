"""How an item renders, alone and next to others."""

import pytest
from msgspec.structs import replace

from longhold.core.log.entries import Ran
from longhold.core.messages import Image, Message, Opaque, Text, Thinking, ToolResult, ToolUse
from longhold.core.messages.measure import Measure, measure_content
from longhold.core.view.items import (
    CLEARED_RESULT,
    NO_RESULT,
    OPENING,
    Result,
    Round,
    Spoken,
    StandIn,
    join,
    make_late,
    render,
)

THOUGHT = Thinking(thinking="hm", signature="s")
USE = ToolUse(id="a", name="read", input={})
GONE = StandIn(text="gone", how="rewritten", measure=Measure(spaced=1))


def spoken(*texts, **fields):
    return Spoken(id=1, order=1, content=tuple(Text(text=text) for text in texts), **fields)


def answer(*content, **fields):
    return Round(id=2, order=2, response_id="r", content=content, **fields)


def result(content="ok", **fields):
    return Result(id=3, tool_use_id="a", content=content, measure=Measure(spaced=9), **fields)


def fragments(item, projection="sent"):
    return list(item.fragments(projection))


def test_blank_blocks_are_not_sent():
    assert fragments(spoken("a", " ", "b")) == [Message("user", (Text(text="a"), Text(text="b")))]
    assert fragments(spoken("", "\n")) == []


@pytest.mark.parametrize(
    ("kind", "hidden", "asked"),
    [
        ("said", False, True),
        ("said", True, False),
        ("summary", False, False),
        ("late", True, False),
    ],
)
def test_only_what_the_user_said_openly_waits_for_an_answer(kind, hidden, asked):
    assert spoken("x", kind=kind, hidden=hidden).is_asked() is asked


def test_thinking_that_leads_to_nothing_is_left_out():
    assert fragments(answer(THOUGHT)) == []
    assert fragments(answer(THOUGHT, Text(text="x"), THOUGHT)) == [
        Message("assistant", (THOUGHT, Text(text="x")))
    ]


def test_thinking_that_is_no_longer_valid_is_left_out():
    item = answer(THOUGHT, Text(text="x"), drops_thinking=True)
    assert fragments(item) == [Message("assistant", (Text(text="x"),))]
    assert item.without_thinking().answer_measure == measure_content((Text(text="x"),))


def test_thinking_of_past_turns_is_sent_and_not_seen():
    item = answer(THOUGHT, Text(text="x"), is_past=True)
    assert fragments(item) == [Message("assistant", (THOUGHT, Text(text="x")))]
    assert fragments(item, "seen") == [Message("assistant", (Text(text="x"),))]


def test_results_follow_the_calls_and_missing_ones_are_said_to_be():
    other = ToolUse(id="b", name="read", input={})
    _, results = fragments(answer(other, USE, results=(result(),)))
    assert results.content == (
        ToolResult(tool_use_id="b", content=NO_RESULT, is_error=True),
        ToolResult(tool_use_id="a", content="ok"),
    )


@pytest.mark.parametrize("content", ["", "  \n", (), (Text(text=" "),)])
def test_an_empty_result_is_said_to_be_empty(content):
    _, results = fragments(answer(USE, results=(result(content),)))
    assert results.content[0].content == "read finished without output."


def test_spilling_takes_only_text_away():
    picture, odd = Image(source={}), Opaque(raw={"type": "tomorrow"})
    long = result((Text(text="long"), picture, odd), spilled=replace(GONE, how="spilled"))
    assert long.block("sent").content == (Text(text="gone"), picture, odd)
    assert replace(long, cleared=GONE).block("sent").content == "gone"


def test_pictures_stay_in_a_result():
    picture = Image(source={})
    assert result((Text(text=""), picture)).block("sent").content == (picture,)


@pytest.mark.parametrize("how", ["edited", "server"])
def test_what_a_provider_clears_is_still_sent(how):
    cleared = result(cleared=replace(GONE, how=how))
    assert cleared.block("sent").content == "ok"
    assert cleared.block("seen").content == "gone"
    assert cleared.seen_measure == Measure(spaced=1)


def test_clearing_goes_before_spilling():
    both = result(spilled=replace(GONE, text="a preview", how="spilled"), cleared=GONE)
    assert both.block("sent").content == both.block("seen").content == "gone"
    edited = replace(both, cleared=replace(GONE, how="edited"))
    assert edited.block("sent").content == "a preview"


def test_a_stand_in_without_a_word_says_that_something_stood_there():
    assert result(cleared=replace(GONE, text=" ")).block("sent").content == CLEARED_RESULT


def test_marks_and_unknown_fields_of_a_result_stay_on_its_stand_in():
    block = result(is_error=True, extra={"n": 1}, cleared=GONE).block("sent")
    assert (block.is_error, block.extra) == (True, {"n": 1})


def test_a_round_weighs_its_answer_and_its_results():
    item = answer(USE, answer_measure=Measure(calls=1)).with_result(result(cleared=GONE))
    assert item.measure == Measure(calls=1, spaced=1)


def test_a_late_result_is_told_with_its_tool_use():
    item = make_late(Ran(n=7, tool_use_id="a", content="x"))
    assert (item.id, item.order, item.kind, item.hidden) == (7, 7, "late", True)
    assert [block.text for block in item.content] == ["A result came late for tool use a:", "x"]


def test_neighbours_of_one_role_become_one_message():
    items = [spoken("hi"), answer(USE, results=(result(),)), spoken("and")]
    assert [len(message.content) for message in render(items)] == [1, 1, 2]
    assert isinstance(render(items)[-1].content[0], ToolResult)


def test_a_list_that_would_begin_with_the_assistant_gets_an_opening():
    messages = []
    join(messages, Message("assistant", (Text(text="a"),)))
    join(messages, Message("assistant", (Text(text="b"),)))
    assert messages == [
        Message("user", (Text(text=OPENING),)),
        Message("assistant", (Text(text="a"), Text(text="b"))),
    ]
