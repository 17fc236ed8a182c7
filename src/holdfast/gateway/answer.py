"""An answer as it passes by: read from the same bytes that the client gets."""

from collections.abc import Iterator

import msgspec

from holdfast.messages import JsonObject
from holdfast.models.clients import reply_from, reply_from_events
from holdfast.models.protocol import Reply

DATA = b"data:"
DONE = b"[DONE]"


class PassingAnswer:
    """Collects an answer's bytes, and says when it is whole."""

    def __init__(self, ends: bytes, *, is_stream: bool) -> None:
        self._ends, self._is_stream = ends, is_stream
        self._bytes = bytearray()

    def feed(self, chunk: bytes) -> bool:
        """Take a chunk; True if the last event of a stream begins in what came since."""
        before = max(0, len(self._bytes) - len(self._ends))
        self._bytes += chunk
        return self._is_stream and self._bytes.find(self._ends, before) >= 0

    def whole(self) -> bytes:
        return bytes(self._bytes)

    def reply(self) -> Reply:
        """Read the whole answer; raise what is wrong with it otherwise."""
        if self._is_stream:
            return reply_from_events(list(events_in(bytes(self._bytes))))
        return reply_from(msgspec.json.decode(self._bytes))


def events_in(stream: bytes) -> Iterator[JsonObject]:
    """Yield the events of a stream; an unfinished last line is none."""
    for line in stream.splitlines():
        if line.startswith(DATA) and (data := line[len(DATA) :].strip()) != DONE:
            try:
                event = msgspec.json.decode(data)
            except (msgspec.DecodeError, RecursionError):
                continue
            if isinstance(event, dict):
                yield event
