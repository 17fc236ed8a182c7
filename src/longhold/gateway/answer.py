"""Reads an answer from the bytes that the gateway relays to the client."""

import re
from collections.abc import Iterator

import msgspec
from msgspec import structs

from longhold.core.messages import JsonObject, Usage
from longhold.core.messages.usage import usage_from_wire
from longhold.core.models.clients import reply_from, reply_from_events
from longhold.core.models.protocol import Reply

DATA = b"data:"
DONE = b"[DONE]"
CHARS_A_TOKEN = 4
EVENT_BYTES_A_TOKEN = 30
"""A stream contains about four tokens per event, and an event has about 120 bytes."""


class PassingAnswer:
    def __init__(self, ends: re.Pattern[bytes] | None, *, is_stream: bool = False) -> None:
        self.ends, self.is_stream = ends, is_stream
        self.is_recorded, self.is_simulated = ends is None, False
        self._bytes = bytearray()
        self._begins = self._looked_at = 0
        """The start of the first incomplete line, and the position to search for its end."""
        self._is_in_last = False
        """Whether the last event of the stream has begun but is incomplete."""

    def begin(self, *, is_stream: bool, is_simulated: bool) -> bool:
        """Store the kind of the answer, and return whether the answer must be read."""
        self.is_stream, self.is_simulated = is_stream, is_simulated
        return self.ends is not None

    def finish(self) -> None:
        """Mark the answer as recorded or paid, so that this happens only once."""
        self.is_recorded = True

    def feed(self, chunk: bytes) -> bool:
        """Add a chunk. Return True once the last event of a stream is complete."""
        self._bytes += chunk
        if self.ends is None or not self.is_stream or self.is_recorded:
            return False
        # Each line is examined once, so that a provider that repeats the last line costs no more.
        while (end := self._bytes.find(b"\n", self._looked_at) + 1) > 0:
            line = bytes(self._bytes[self._begins : end])
            self._begins = self._looked_at = end
            is_blank = line in (b"\n", b"\r\n")
            if is_blank and self._is_in_last:
                return True
            is_last = self.ends.fullmatch(line) is not None
            self._is_in_last = not is_blank and (self._is_in_last or is_last)
        self._looked_at = len(self._bytes)
        return False

    def whole(self) -> bytes:
        return bytes(self._bytes)

    def reply(self) -> Reply:
        if self.is_stream:
            return reply_from_events(list(events_in(bytes(self._bytes))))
        return reply_from(msgspec.json.decode(self._bytes))

    def usage_so_far(self, sent: bytes) -> Usage:
        """Return the reported usage of an unfinished answer, or an estimate."""
        begun: JsonObject = {}
        for event in events_in(bytes(self._bytes)):
            said = event.get("message") or event.get("response") or event
            if isinstance(said, dict) and isinstance(said.get("usage"), dict):
                begun |= said["usage"]
        known = usage_from_wire(begun) if begun else Usage(input_tokens=len(sent) // CHARS_A_TOKEN)
        written = len(self._bytes) // (EVENT_BYTES_A_TOKEN if self.is_stream else CHARS_A_TOKEN)
        return structs.replace(known, output_tokens=max(known.output_tokens, written))


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
