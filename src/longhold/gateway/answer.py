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
        self._begins = self._looked_at = 0
        """Where the first incomplete line begins, and where its end has not been looked for."""
        self._is_in_last = False
        """The event that is arriving is the last one."""

    def feed(self, chunk: bytes) -> bool:
        """Add a chunk; return True once the last event of a stream is complete."""
        self._bytes += chunk
        if self._ends is None:
            return False
        # Each line is looked at once: a provider that repeats the last line must not cost more.
        while (end := self._bytes.find(b"\n", self._looked_at) + 1) > 0:
            line = bytes(self._bytes[self._begins : end])
            self._begins = self._looked_at = end
            is_blank = line in (b"\n", b"\r\n")
            if is_blank and self._is_in_last:
                return True
            is_last = self._ends.fullmatch(line) is not None
            self._is_in_last = not is_blank and (self._is_in_last or is_last)
        self._looked_at = len(self._bytes)
        return False

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
