"""The checks of a stream."""

import asyncio
from dataclasses import replace

import pytest

from longhold.core.messages import Text, ToolUse, Usage
from longhold.core.models.protocol import BlockFinished, Finished, Reply, Started, TextDelta, play
from longhold.core.models.retry import stream_with_retries
from longhold.core.models.steady import Patience, guard_stream
from longhold.errors import ModelUnavailable, StreamBroken

TOOL = ToolUse(id="t", name="Bash", input={"command": "ls"})
REPLY = Reply(
    response_id="m1",
    model="x",
    content=(Text(text="Hi"), TOOL),
    stop_reason="tool_use",
    usage=Usage(),
)
EVENTS = list(play(REPLY))


async def stream_of(*events):
    for event in events:
        yield event


async def read(*events, patience=None):
    stream = stream_of(*events)
    return [
        event
        async for event in (guard_stream(stream, patience) if patience else guard_stream(stream))
    ]


async def test_a_good_stream_passes_unchanged():
    assert await read(*EVENTS) == EVENTS


@pytest.mark.parametrize("at", range(len(EVENTS)))
async def test_no_block_comes_twice(at):
    passed = await read(*EVENTS[: at + 1], *EVENTS[at:])
    assert [event.block for event in passed if isinstance(event, BlockFinished)] == [*REPLY.content]
    assert [event for event in passed if isinstance(event, Finished)] == [EVENTS[-1]]


@pytest.mark.parametrize("at", range(len(EVENTS)))
async def test_an_early_end_is_an_error(at):
    with pytest.raises(StreamBroken, match="ended before"):
        await read(*EVENTS[:at])


@pytest.mark.parametrize(
    "wrong",
    [
        Started(response_id="m2", model="x"),
        BlockFinished(index=0, block=Text(text="Ho")),
        Finished(reply=replace(REPLY, content=(TOOL,))),
    ],
)
async def test_a_contradiction_is_an_error(wrong):
    with pytest.raises(StreamBroken):
        await read(*EVENTS[:-1], wrong)


async def test_what_follows_the_end_is_not_read():
    assert (await read(*EVENTS, TextDelta(index=9, text="x")))[-1] == EVENTS[-1]


async def waiting(*events):
    for event in events:
        yield event
    await asyncio.Event().wait()


async def test_silence_midway_breaks_the_stream():
    with pytest.raises(StreamBroken, match=r"no event for 0\.05 s"):
        async for _ in guard_stream(waiting(*EVENTS[:2]), Patience(stall_seconds=0.05)):
            pass


async def test_silence_at_first_is_unavailability():
    with pytest.raises(ModelUnavailable, match=r"no event for 0\.05 s"):
        async for _ in guard_stream(waiting(), Patience(first_event_seconds=0.05)):
            pass


async def endless():
    yield EVENTS[0]
    while True:
        yield TextDelta(index=0, text="x")


async def test_an_endless_answer_ends_though_it_never_pauses():
    with pytest.raises(StreamBroken, match="took too long"):
        async for _ in guard_stream(endless(), Patience(answer_seconds=0.05)):
            pass


async def test_leaving_early_closes_the_stream_inside():
    closed = []

    async def inside():
        try:
            yield EVENTS[0]
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    stream = guard_stream(inside())
    await anext(stream)
    await stream.aclose()
    assert closed == [True]


async def test_an_answer_that_does_not_end_is_not_asked_for_again():
    asked = 0

    class Endless:
        name, capabilities = "m", None

        async def stream(self, request):
            nonlocal asked
            asked += 1
            yield Started(response_id="r", model="m")
            while True:
                await asyncio.sleep(0)
                yield TextDelta(index=0, text="more " * 100)

    for patience in (Patience(answer_seconds=0.05), Patience(answer_events=5_000)):
        asked = 0
        with pytest.raises(StreamBroken, match=r"too long|does not end"):
            async for _ in stream_with_retries(Endless(), None, patience=patience):
                pass
        assert asked == 1
