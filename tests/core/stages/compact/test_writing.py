"""The ways to ask a model for a summary, and how a long conversation is shortened."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.core.messages import Image, Text, Thinking, ToolUse
from longhold.core.models.capabilities import capabilities
from longhold.core.stages.compact.segment import Segment
from longhold.core.stages.compact.summary import (
    NoSummary,
    SummaryWriter,
    bare_messages,
    least_thinking,
    truncate,
)
from longhold.core.turn.fork.asking import ForkReply
from longhold.core.view.items import Result, Round, Spoken
from longhold.errors import Aborted, PromptTooLong

PICTURE = Image(source={"type": "base64", "media_type": "image/png", "data": "aGk="})


def spoken(n, text="hello", kind="said"):
    return Spoken(id=n, order=n, content=(Text(text=text),), kind=kind)


def called(n, result="a result"):
    use = ToolUse(id=f"t{n}", name="Read", input={"path": "a.py"})
    thought = Thinking(thinking="hm", signature="c2ln")
    answer = Round(id=n, order=n, response_id=f"r{n}", content=(thought, use), model="m")
    return answer.with_result(Result(id=n, tool_use_id=f"t{n}", content=result))


@pytest.fixture
def writer(talk):
    """Make writers whose model gives these replies, each with the requests it got."""

    def make(*replies, window=200_000):
        asked, coming = [], iter(replies)

        async def ask(request):
            asked.append(request)
            return next(coming)

        return SummaryWriter(engine=talk(window=window).engine, ask=ask, asked="Sum up."), asked

    return make


def reply(text, reason="completed"):
    content = (Text(text=text),)
    return ForkReply(
        text=text,
        content=content,
        stop_reason="end_turn",
        reason=reason,
        turns=1,
        calls=(),
        seconds=0.0,
    )


def test_a_reader_without_tools_gets_text_alone():
    items = [
        spoken(1),
        called(2, (Text(text="seen"), PICTURE)),
        spoken(3, "old files", "restored"),
    ]
    messages = bare_messages(items)
    text = "\n".join(block.text for message in messages for block in message.content)
    assert text == "hello\n[called Read with {'path': 'a.py'}]\n[result] seen\n[image]"


def test_as_little_thinking_as_the_model_accepts():
    assert least_thinking(capabilities("claude-opus-4-6")) == {"thinking": {"type": "disabled"}}
    between = {"thinking": {"type": "between_tools"}}
    assert least_thinking(capabilities("claude-sonnet-5-5")) == between
    low = {"output_config": {"effort": "low"}}
    assert least_thinking(capabilities("claude-fable-5")) == low
    assert least_thinking(capabilities("gpt-6-sol")) == {}


@given(st.integers(2, 40), st.integers(1, 400), st.integers(1, 400))
def test_truncating_always_gets_on_and_always_leaves_something(count, needed, allowed):
    items = [spoken(n, "word " * n) for n in range(1, count + 1)]
    left = truncate(items, PromptTooLong("x", needed_tokens=needed, allowed_tokens=allowed))
    assert 1 <= len(left) < len(items)
    assert left == tuple(items[-len(left) :])


def test_one_item_cannot_be_shortened():
    with pytest.raises(PromptTooLong):
        truncate([spoken(1)], PromptTooLong("x"))


async def test_the_answer_of_a_direct_call_is_capped_by_the_window(writer):
    for window_tokens, cap in ((200_000, 20_000), (8_000, 1_600)):
        one, asked = writer(reply("no"), window=window_tokens)
        with pytest.raises(NoSummary):
            await one.ask_directly([spoken(1)])
        assert asked[0].prefix.max_output_tokens == cap


async def test_a_stopped_fork_is_no_answer(writer):
    one, _ = writer(reply("", reason="aborted"))
    with pytest.raises(Aborted):
        await one.ask_fork(Segment(items=(spoken(1),)))
