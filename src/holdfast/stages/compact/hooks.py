"""What the owner of a session adds to its compactions: hooks, restored content, notices.

Everything defaults to doing nothing, so that a program with its own loop can compact without them.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from holdfast.errors import RequestRejected
from holdfast.log.entries import Compacted, Framed, SpokenContent
from holdfast.stages.compact.segment import Segment

Trigger: TypeAlias = Literal["manual", "auto", "reactive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    focus: tuple[str, ...] = ()
    blocked: str = ""


class Blocked(RequestRejected):
    """A hook blocks the compaction."""


async def _nothing_said(trigger: Trigger, focus: str) -> Before:
    return Before()


async def _none(*_: object) -> None:
    return None


async def _no_content(*_: object) -> SpokenContent:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionHooks:
    """What the owner of a session adds to its compactions."""

    before: Callable[[Trigger, str], Awaitable[Before]] = _nothing_said
    after: Callable[[Compacted], Awaitable[None]] = _none
    restore: Callable[[Segment], Awaitable[SpokenContent]] = _no_content
    """Returns the files, skills, plan and todos to show again."""
    greet: Callable[[], Awaitable[SpokenContent]] = _no_content
    """Returns what hooks say to the new session; appended to what is restored."""
    renew: Callable[[], Awaitable[Framed | None]] = _none
    tell: Callable[[str], None] = lambda _: None
    progress: Callable[[str], None] = lambda _: None
    is_autonomous: bool = False
