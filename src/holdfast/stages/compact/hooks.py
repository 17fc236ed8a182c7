"""What the owner of a session adds to its compactions: hooks, restored content, notices.

Everything defaults to doing nothing, so that a program with its own loop can compact without them.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from holdfast.errors import RequestRejected
from holdfast.log.entries import Compacted, Framed, SpokenContent
from holdfast.log.secrets import masked
from holdfast.stages.compact.segment import Segment

Trigger: TypeAlias = Literal["manual", "auto", "reactive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What hooks say before a compaction."""

    focus: tuple[str, ...] = ()
    blocked: str = ""


class Blocked(RequestRejected):
    """A hook blocks the compaction."""


async def _nothing_before(trigger: Trigger, focus: str) -> Before:
    return Before()


async def _nothing_after(entry: Compacted) -> None:
    return None


async def _nothing_restored(segment: Segment) -> SpokenContent:
    return ()


async def _no_greeting() -> SpokenContent:
    return ()


async def _same_frame() -> Framed | None:
    return None


def _silent(line: str) -> None:
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionHooks:
    """What the owner of a session adds to its compactions."""

    before: Callable[[Trigger, str], Awaitable[Before]] = _nothing_before
    after: Callable[[Compacted], Awaitable[None]] = _nothing_after
    restore: Callable[[Segment], Awaitable[SpokenContent]] = _nothing_restored
    """Returns the files, skills, plan and todos to show again."""
    greet: Callable[[], Awaitable[SpokenContent]] = _no_greeting
    """Returns what hooks say to the new session; appended to what is restored."""
    renew: Callable[[], Awaitable[Framed | None]] = _same_frame
    tell: Callable[[str], None] = _silent
    progress: Callable[[str], None] = _silent
    masked: Callable[[str], str] | None = masked
    """Masks secrets in the text that replaces history."""
    is_autonomous: bool = False
