"""Reads an answer from the bytes that the gateway relays to the client."""

import re
from collections.abc import Iterator

import msgspec

from longhold.core.messages import JsonObject
from longhold.core.models.clients import reply_from, reply_from_events
from longhold.core.models.protocol import Reply

DATA = b"data:"
DONE = b"[DONE]"


class PassingAnswer:
    def __init__(self, ends: re.Pattern[bytes] | None, *, is_stream: bool) -> None:
        self._ends = ends if is_stream else None
        self._bytes = bytearray()
        self._begins = 0
        """Where the first incomplete event begins."""

    def feed(self, chunk: bytes) -> bool:
        """Add a chunk; return True once the last event of a stream is complete."""
        self._bytes += chunk
        if self._ends is None:
            return False
        is_whole = self._ends.search(self._bytes, self._begins) is not None
        self._begins = max(self._begins, self._bytes.rfind(b"\n\n") + 2)
        return is_whole

    def whole(self) -> bytes:
        return bytes(self._bytes)

    def reply(self) -> Reply:
        if self._ends is not None:
            return reply_from_events(list(events_in(bytes(self._bytes))))
        return reply_from(msgspec.json.decode(self._bytes))


def events_in(stream: bytes) -> Iterator[JsonObject]:
    """Yield the events of a stream, without an incomplete last line."""
    for line in stream.splitlines():
        if line.startswith(DATA) and (data := line[len(DATA) :].strip()) != DONE:
            try:
                event = msgspec.json.decode(data)
            except (msgspec.DecodeError, RecursionError):
                continue
            if isinstance(event, dict):
                yield event
