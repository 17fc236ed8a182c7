"""Check that a stream is on time, in order and complete, and drop repeated blocks."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from longhold.core.messages import Block
from longhold.core.models import protocol
from longhold.errors import ModelError, ModelUnavailable, StreamBroken


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    first_event_seconds: float = 600.0  # as in both SDKs: the provider first reads the prompt
    stall_seconds: float = 120.0  # providers ping every few seconds, so more means a dead stream
    answer_seconds: float = 3600.0  # 128,000 tokens take about 45 minutes at 50 per second
    answer_events: int = 4_000_000  # events plus characters, far above the 600,000 of a long answer


PATIENCE = Patience()


async def guard_stream(
    events: AsyncIterator[protocol.Event], patience: Patience = PATIENCE
) -> AsyncIterator[protocol.Event]:
    so_far = _SoFar()
    deadline = asyncio.get_running_loop().time() + patience.answer_seconds
    size = 0
    async with closing(events):
        while True:
            limit = patience.stall_seconds if so_far.has_begun else patience.first_event_seconds
            event = await _await_next(events, limit, deadline, has_begun=so_far.has_begun)
            if event is None:
                raise StreamBroken("the stream ended before the answer was complete; send it again")
            size += (
                1 + len(event.text)
                if isinstance(event, protocol.TextDelta | protocol.ThinkingDelta)
                else 1
            )
            if size > patience.answer_events:
                raise Endless("the answer does not end; request less, or use another model")
            if so_far.accept(event):
                yield event
            if isinstance(event, protocol.Finished):
                return


async def _await_next(
    events: AsyncIterator[protocol.Event], limit_seconds: float, deadline: float, *, has_begun: bool
) -> protocol.Event | None:
    clock = asyncio.get_running_loop().time
    try:
        async with asyncio.timeout_at(min(clock() + limit_seconds, deadline)):
            event = await anext(events, None)
        # The timer does not fire while buffered events arrive.
        if clock() < deadline or event is None:
            return event
    except TimeoutError as error:
        if clock() < deadline:
            raise _silence(f"no event for {limit_seconds:g} s", has_begun=has_begun) from error
    if has_begun:
        raise Endless("the answer took too long; request less, or use another model")
    raise _silence("the answer took too long", has_begun=False)


def _silence(what: str, *, has_begun: bool) -> ModelError:
    if has_begun:
        return StreamBroken(f"{what}; send the request again")
    return ModelUnavailable(f"{what}; try again later")


class Endless(StreamBroken):
    """The answer does not end. It is not retried, because the next answer would not end either."""


class _SoFar:
    def __init__(self) -> None:
        self._started: protocol.Started | None = None
        self._blocks: dict[int, Block] = {}

    @property
    def has_begun(self) -> bool:
        return self._started is not None

    def accept(self, event: protocol.Event) -> bool:
        """Return whether the event is new. Raise if it contradicts an earlier event."""
        match event:
            case protocol.Started(response_id=id):
                is_new, self._started = not self._started, self._started or event
                if self._started.response_id != id:
                    raise StreamBroken("a second answer began during the first; send it again")
                return is_new
            case protocol.BlockFinished(index=index, block=block):
                is_new = index not in self._blocks
                if self._blocks.setdefault(index, block) != block:
                    raise StreamBroken(f"block {index} came twice but differs; send it again")
                return is_new
            case protocol.Finished(reply=reply):
                seen = tuple(self._blocks[index] for index in sorted(self._blocks))
                if seen and seen != reply.content:
                    raise StreamBroken("the answer differs from its own blocks; send it again")
        return True


@asynccontextmanager
async def closing(events: AsyncIterator[protocol.Event]) -> AsyncIterator[None]:
    """Close a generator on exit. Otherwise its connection would wait for the garbage collector."""
    try:
        yield
    finally:
        if close := getattr(events, "aclose", None):
            await close()
