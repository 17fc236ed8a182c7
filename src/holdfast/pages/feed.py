"""The live channel of a page: whoever knows something new publishes it, each open page gets it.

An event has a kind and a JSON value. `list` replaces the list of sessions; `session` carries rows
to add to one session's tables. Who publishes does not matter: files that are followed, or calls
that pass through.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec

WAITING_EVENTS = 256
"""For a page that does not read; past it the page is dropped, connects again and reads anew."""


class Feed:
    """Belongs to one event loop; `publish` and `subscribe` are called on it."""

    def __init__(self) -> None:
        self._queues: set[asyncio.Queue[bytes | None]] = set()

    @property
    def listeners(self) -> int:
        return len(self._queues)

    def publish(self, kind: str, value: Any) -> None:
        event = b"event: %s\ndata: %s\n\n" % (kind.encode(), msgspec.json.encode(value))
        for queue in list(self._queues):
            if queue.qsize() < WAITING_EVENTS:
                queue.put_nowait(event)
            else:
                self._queues.discard(queue)
                queue.put_nowait(None)

    def close(self) -> None:
        """End every subscription."""
        for queue in self._queues:
            queue.put_nowait(None)
        self._queues.clear()

    async def subscribe(self) -> AsyncIterator[bytes]:
        """Yield events as they are sent to a browser, from now on."""
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._queues.add(queue)
        try:
            yield b": connected\n\n"  # the browser learns at once that it is
            while (event := await queue.get()) is not None:
                yield event
        finally:
            self._queues.discard(queue)
