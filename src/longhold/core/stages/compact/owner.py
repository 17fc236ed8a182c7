"""The compact stage of a session, its requests, and the hooks of the session's owner.

Hooks do nothing by default, so a program with its own loop can compact without them.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from longhold.core.log.entries import Compacted, Framed, SpokenContent
from longhold.core.policy.decide import SpaceDecision, Trigger
from longhold.core.stages.notes.notes import Notes
from longhold.core.stages.space import Part
from longhold.core.turn.engine import Engine
from longhold.core.turn.fork.asking import AskFork
from longhold.errors import ModelError, PromptTooLong, RequestRejected

if TYPE_CHECKING:
    from longhold.core.stages.compact.compact import Compaction
    from longhold.core.stages.compact.segment import Segment
    from longhold.core.stages.compact.summary import Summariser

SummaryKind: TypeAlias = Literal["full", "from", "up_to"]
LOAD_SHARE = 0.5
"""Share of the threshold at which the code is loaded, while files can still be opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactRequest:
    trigger: Trigger = "auto"
    focus: str = ""
    kind: SummaryKind = "full"
    pivot: int = 0
    """The message with which a partial compaction begins or ends."""
    error: PromptTooLong | None = None
    """The error, if the provider reported that the conversation is too long."""
    by_model: bool = True


def manual_request(
    focus: str = "", *, start: int | None = None, end: int | None = None, by_model: bool = True
) -> CompactRequest:
    """Make a user's request to compact all history, from message `start` on, or up to `end`."""
    if start is not None and end is not None:
        raise RequestRejected("start and end cannot be combined; give only one")
    asked = CompactRequest(trigger="manual", focus=focus, by_model=by_model)
    if start is not None:
        return replace(asked, kind="from", pivot=start)
    return asked if end is None else replace(asked, kind="up_to", pivot=end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    focus: tuple[str, ...] = ()
    blocked: str = ""


class Blocked(RequestRejected):
    """A hook blocked the compaction."""


async def _say_nothing(trigger: Trigger, focus: str) -> Before:
    return Before()


async def _do_nothing(*_: object) -> None:
    return None


async def _restore_nothing(*_: object) -> SpokenContent:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionHooks:
    """Callbacks with which a session's owner extends its compactions."""

    before: Callable[[Trigger, str], Awaitable[Before]] = _say_nothing
    after: Callable[[Compacted], Awaitable[None]] = _do_nothing
    restore: Callable[["Segment"], Awaitable[SpokenContent]] = _restore_nothing
    """Returns the files, skills, plan and todos to show again."""
    greet: Callable[[], Awaitable[SpokenContent]] = _restore_nothing
    """Returns hook output for the new context, which is appended to the restored content."""
    renew: Callable[[], Awaitable[Framed | None]] = _do_nothing
    tell: Callable[[str], None] = lambda _: None
    progress: Callable[[str], None] = lambda _: None
    is_autonomous: bool = False


class CompactionStage(Part):
    """The compact stage, which acts above the threshold, after an overflow, or on request."""

    steps = ("wait", "shorten", "relieve", "compact")

    def __init__(
        self,
        *,
        ask: AskFork | None,
        hooks: CompactionHooks,
        notes: Notes,
        summariser: "Summariser | None" = None,
    ) -> None:
        """Without `ask`, no model is called. The plug-in `summariser` precedes `notes`."""
        self.hooks = hooks
        self._ask = ask
        self._notes, self._summariser = notes, summariser
        self._loaded: Compaction | None = None

    def load(self) -> "Compaction":
        if self._loaded is None:
            # This is imported here because short sessions do not need it, and it is a fifth of the
            # code.
            from longhold.core.stages.compact.compact import Compaction

            self._loaded = Compaction(
                ask=self._ask, hooks=self.hooks, notes=self._notes, summariser=self._summariser
            )
        return self._loaded

    def observe(self, engine: Engine) -> None:
        full = engine.fullness()
        if full.used_tokens >= LOAD_SHARE * full.window.auto_tokens:
            self.load()

    def facts(self, engine: Engine) -> dict[str, Any]:
        return {"history": cache(lambda: self.load().facts(engine))}

    async def carry_out(self, engine: Engine, decision: SpaceDecision) -> None:
        await self.load().carry_out(engine, decision)

    async def recover(self, engine: Engine, error: ModelError) -> bool:
        """Free space after an overflow. Return whether that was possible."""
        if not engine.makes_room or not isinstance(error, PromptTooLong):
            return False
        return await self.load().recover(engine, error)

    async def compact(self, engine: Engine, request: CompactRequest) -> Compacted:
        """Replace history with a summary. If that is impossible, raise and change nothing."""
        return await self.load().compact(engine, request)
