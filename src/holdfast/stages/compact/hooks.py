"""What whoever holds a session adds to its compactions: hooks, what is restored, who is told.

Everything has a default that does nothing, so that a program with a loop of its own compacts
without any of it; an agent puts in its hooks, its files and its frame.
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
    """A hook does not let the compaction happen."""


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
    """Tell nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionHooks:
    """What whoever holds the session adds to its compactions."""

    before: Callable[[Trigger, str], Awaitable[Before]] = _nothing_before
    after: Callable[[Compacted], Awaitable[None]] = _nothing_after
    restore: Callable[[Segment], Awaitable[SpokenContent]] = _nothing_restored
    """Gives the files, skills, plan and todos that are shown again."""
    greet: Callable[[], Awaitable[SpokenContent]] = _no_greeting
    """Gives what hooks say to a session that begins anew; it goes with what is restored."""
    renew: Callable[[], Awaitable[Framed | None]] = _same_frame
    tell: Callable[[str], None] = _silent
    progress: Callable[[str], None] = _silent
    masked: Callable[[str], str] | None = masked
    """Takes secrets out of what stands for history."""
    is_autonomous: bool = False
