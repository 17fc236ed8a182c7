"""The calls of one session, each with what it cost and what it lost: what the index keeps."""

from dataclasses import dataclass

import msgspec
from msgspec import Struct

from holdfast.messages.usage import add_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Tokens by how they were billed."""

    uncached: int = 0
    read: int = 0
    write_5m: int = 0
    write_1h: int = 0
    output: int = 0

    @property
    def prompt(self) -> int:
        return self.uncached + self.read + self.write_5m + self.write_1h

    @property
    def all(self) -> int:
        return self.prompt + self.output

    def __add__(self, other: "Tokens") -> "Tokens":
        return add_fields(self, other)


class SessionCall(Struct, frozen=True, kw_only=True, array_like=True):
    key: str
    """The same for copies of one call in several files."""
    at: float
    model: str
    source: str
    uncached: int = 0
    read: int = 0
    write_5m: int = 0
    write_1h: int = 0
    output: int = 0
    usd: float = 0.0
    is_priced: bool = True
    unrecorded_output: int = 0
    unrecorded_calls: int = 0
    unrecorded_usd: float = 0.0
    cause: str = ""
    """Why it read less from the cache than it could; '' if it did not."""
    is_expected: bool = False
    idle_seconds: float = 0.0
    lost_tokens: int = 0
    lost_usd: float = 0.0
    hour_usd: float = 0.0
    """What writing for an hour instead of five minutes would have added."""


class SessionCalls(Struct, frozen=True, kw_only=True, array_like=True):
    agent: str = ""
    """Whose session it is; '' for a file that is none."""
    session: str = ""
    directory: str = ""
    title: str = ""
    window_tokens: int = 0
    """As far as the file proves it."""
    turns: int = 0
    calls: tuple[SessionCall, ...] = ()
    is_import: bool = False
    """It is our copy of another agent's session."""
    problem: str = ""


encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(SessionCalls).decode
