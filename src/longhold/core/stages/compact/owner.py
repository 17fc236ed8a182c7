"""What is asked of a compaction, and what a session's owner adds: hooks, restored content, notices.

Everything defaults to doing nothing, so that a program with its own loop can compact without them.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from longhold.core.log.entries import Compacted, Framed, SpokenContent
from longhold.core.stages.compact.segment import Segment
from longhold.core.stages.compact.summary import SummaryKind
from longhold.errors import PromptTooLong, RequestRejected

Trigger: TypeAlias = Literal["manual", "auto", "reactive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactRequest:
    trigger: Trigger = "auto"
    focus: str = ""
    kind: SummaryKind = "full"
    pivot: int = 0
    """The message a partial compaction begins or ends at."""
    error: PromptTooLong | None = None
    """The whole conversation is known to be too long."""
    by_model: bool = True
    may_ask: bool = True
    """Whether a model may be asked now; a prepared summary may be used either way."""


def manual_request(
    focus: str = "", *, start: int | None = None, end: int | None = None, by_model: bool = True
) -> CompactRequest:
    """Ask by hand: for all of history, from message `start` on, or up to message `end`."""
    if start is not None and end is not None:
        raise RequestRejected("start and end exclude each other; give one")
    asked = CompactRequest(trigger="manual", focus=focus, by_model=by_model)
    if start is not None:
        return replace(asked, kind="from", pivot=start)
    return asked if end is None else replace(asked, kind="up_to", pivot=end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    focus: tuple[str, ...] = ()
    blocked: str = ""


class Blocked(RequestRejected):
    """A hook blocks the compaction."""


async def _say_nothing(trigger: Trigger, focus: str) -> Before:
    return Before()


async def _do_nothing(*_: object) -> None:
    return None


async def _restore_nothing(*_: object) -> SpokenContent:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionHooks:
    """What the owner of a session adds to its compactions."""

    before: Callable[[Trigger, str], Awaitable[Before]] = _say_nothing
    after: Callable[[Compacted], Awaitable[None]] = _do_nothing
    restore: Callable[[Segment], Awaitable[SpokenContent]] = _restore_nothing
    """Returns the files, skills, plan and todos to show again."""
    greet: Callable[[], Awaitable[SpokenContent]] = _restore_nothing
    """Returns what hooks say to the new session; appended to what is restored."""
    renew: Callable[[], Awaitable[Framed | None]] = _do_nothing
    tell: Callable[[str], None] = lambda _: None
    progress: Callable[[str], None] = lambda _: None
    is_autonomous: bool = False
