"""The interface between the supervisor and its agents.

The factory makes a `Worker` from an `Order`; it works until there is a `Finish`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from longhold.agent.permissions.decide import Mode, pick_narrower
from longhold.agent.subagents.definition import Definition
from longhold.agent.subagents.worktree import Worktree
from longhold.core.log.entries import AnyEntry, Replied
from longhold.core.log.protocol import AgentLog
from longhold.core.log.unique_answers import usage_of
from longhold.core.messages import Usage, text_of
from longhold.core.turn.fork import ForkEnd
from longhold.core.turn.loop import End, LoopEvent, Stopped
from longhold.core.view import View, fold
from longhold.core.view.items import Round
from longhold.errors import LongholdError

STATES: dict[End | ForkEnd, Literal["completed", "failed", "stopped"]] = {
    "completed": "completed",
    "aborted": "stopped",
    "aborted_streaming": "stopped",
    "aborted_tools": "stopped",
    "denied": "stopped",
    "hook_stopped": "stopped",
    "max_turns": "stopped",
    "budget_spent": "stopped",
}
"""How the end of a loop or fork is reported; any other end is a failure."""
_CUT_SHORT = frozenset({"", "aborted", "broken", "max_tokens"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReach:
    """An agent's maximum permissions, fixed when it was first started."""

    tools: tuple[str, ...] | None = None
    """Tool names; None means all of the parent's."""
    mode: Mode | None = None
    """None means the parent's."""

    def keeps(self, tool: str) -> bool:
        return self.tools is None or tool in self.tools

    def narrow(self, mode: Mode) -> Mode:
        return mode if self.mode is None else pick_narrower(self.mode, mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    id: str
    definition: Definition
    prompt: str
    """"" for a resumed agent."""
    log: AgentLog
    task: str = ""
    name: str = ""
    depth: int = 1
    is_background: bool = False
    is_fork: bool = False
    is_teammate: bool = False
    tree: Worktree | None = None
    """Its worktree; None means the parent's directory."""
    reach: ToolReach = ToolReach()

    @property
    def called(self) -> str:
        return self.name or self.id

    @property
    def kind(self) -> str:
        return "fork" if self.is_fork else self.definition.name

    @property
    def source(self) -> str:
        return f"agent:{self.kind}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    state: Literal["completed", "failed", "stopped", "interrupted"]
    text: str = ""
    detail: str = ""
    usage: Usage | None = None


Seen: TypeAlias = Callable[[LoopEvent], None]


class Worker(Protocol):
    @property
    def reach(self) -> ToolReach: ...

    async def work(self, seen: Seen) -> Finish:
        """Work on the task or on mail until done."""
        ...

    def has_mail(self) -> bool: ...

    def stop(self) -> None: ...

    def approve_plan(self) -> None:
        """End plan mode, if it was started in it."""
        ...

    async def progress(self) -> str:
        """Return the current activity in a few words, or ""."""
        ...

    async def close(self) -> None: ...


def make_finish(end: Stopped, history: Sequence[AnyEntry], *, since: int) -> Finish:
    """Convert the end of a loop that began at index `since`."""
    reason = "" if end.reason == "completed" else end.reason.replace("_", " ")
    detail = f"{reason}: {end.detail}" if reason and end.detail else reason
    return Finish(
        state=STATES.get(end.reason, "failed"),
        text=end.text or _last_text(history),
        detail=detail,
        usage=usage_of(history[since:]),
    )


def read_back(log: AgentLog, *, since: float) -> Finish:
    """Return how an agent ended that was last started at `since`.

    It completed if its last answer came after that, and was interrupted otherwise.
    """
    try:
        entries = log.load().entries
    except LongholdError as error:
        return Finish(state="interrupted", detail=f"its log cannot be read: {error}")
    new = [entry for entry in entries if entry.at >= since]
    is_done = _is_complete(fold(entries)) and any(isinstance(entry, Replied) for entry in new)
    return Finish(
        state="completed" if is_done else "interrupted",
        text=_last_text(entries),
        usage=usage_of(new),
    )


def _is_complete(view: View) -> bool:
    last = view.items[-1] if view.items else None
    return isinstance(last, Round) and not last.tool_uses() and last.stop_reason not in _CUT_SHORT


def _last_text(history: Sequence[AnyEntry]) -> str:
    texts = (text_of(entry.content) for entry in reversed(history) if isinstance(entry, Replied))
    return next((text for text in texts if text.strip()), "")
