"""Behaviour that all models share."""

import subprocess
import sys

import pytest

from longhold.core.messages import Opaque, Text, Thinking, ToolUse, Usage
from longhold.core.models.protocol import BlockFinished, Finished, Reply, Started, collect, play
from longhold.errors import StreamBroken

REPLY = Reply(
    response_id="m1",
    model="x",
    content=(
        Thinking(thinking="hm", signature="s"),
        Text(text="Hi"),
        ToolUse(id="t", name="Read", input={}),
        Opaque(raw={"type": "hologram"}),
    ),
    stop_reason="tool_use",
    usage=Usage(input_tokens=3),
)


async def stream_of(*events):
    for event in events:
        yield event


async def test_collecting_a_played_reply_gives_it_back():
    assert await collect(stream_of(*play(REPLY))) == REPLY


async def test_collecting_half_a_stream_is_an_error():
    with pytest.raises(StreamBroken):
        await collect(stream_of(*list(play(REPLY))[:-1]))


def test_a_played_reply_finishes_each_block_once():
    events = list(play(REPLY))
    blocks = [event for event in events if isinstance(event, BlockFinished)]
    assert tuple(event.block for event in blocks) == REPLY.content
    assert [event.index for event in blocks] == [0, 1, 2, 3]
    assert (type(events[0]), type(events[-1])) == (Started, Finished)


def test_importing_the_package_imports_no_sdk():
    code = (
        "import sys, longhold.core.models, longhold.core.models.anthropic, longhold.core.models.openai; "
        "sys.exit(bool({'anthropic', 'openai', 'httpx2', 'pydantic'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
