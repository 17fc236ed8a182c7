"""The interface between the supervisor and the agents it runs.

An `Order` says which agent is wanted. The factory makes a `Worker` of it, which works until there is
a `Finish`. The supervisor decides when a worker starts and stops.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from holdfast.agent.subagents.definition import Definition
from holdfast.agent.subagents.worktree import Worktree
from holdfast.messages import Usage
from holdfast.tools.permissions.decide import Mode, narrower
from holdfast.turn.loop import End, LoopEvent, Stopped

_STATES: dict[End, Literal["completed", "failed", "stopped"]] = {
    "completed": "completed",
    "aborted_streaming": "stopped",
    "aborted_tools": "stopped",
    "denied": "stopped",
    "hook_stopped": "stopped",
    "max_turns": "stopped",
    "budget_spent": "stopped",
}
"""How ends of a loop are reported; any other end is a failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReach:
    """The most an agent may do: what it had when first started, whatever changed since."""

    tools: tuple[str, ...] | None = None
    """By name; None is all its parent has."""
    mode: Mode | None = None
    """None is its parent's."""

    def keeps(self, tool: str) -> bool:
        return self.tools is None or tool in self.tools

    def narrowed(self, mode: Mode) -> Mode:
        return mode if self.mode is None else narrower(self.mode, mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    id: str
    definition: Definition
    prompt: str
    """Its task; '' for an agent that is resumed."""
    log: Path
    task: str = ""
    """The task in a few words, for people."""
    name: str = ""
    depth: int = 1
    is_background: bool = False
    is_fork: bool = False
    is_teammate: bool = False
    tree: Worktree | None = None
    """Where it works, if not in its parent's directory."""
    reach: ToolReach = ToolReach()
    """What it had, if it is resumed."""

    @property
    def called(self) -> str:
        """What users and other agents call it."""
        return self.name or self.id

    @property
    def kind(self) -> str:
        return "fork" if self.is_fork else self.definition.name

    @property
    def source(self) -> str:
        """How its calls are labelled in the log."""
        return f"agent:{self.kind}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    state: Literal["completed", "failed", "stopped", "interrupted"]
    text: str = ""
    """Its last answer."""
    detail: str = ""
    """Why it ended, if it did not complete."""
    usage: Usage | None = None


Seen: TypeAlias = Callable[[LoopEvent], None]


class Worker(Protocol):
    @property
    def reach(self) -> ToolReach:
        """The tools and mode it was given."""
        ...

    async def work(self, seen: Seen) -> Finish:
        """Work on its task, or on its mail, until done."""
        ...

    def has_mail(self) -> bool: ...

    def stop(self) -> None: ...

    async def progress(self) -> str:
        """Return what it does in a few words, or ''."""
        ...

    async def close(self) -> None: ...


def finished(end: Stopped, last_text: str, usage: Usage | None) -> Finish:
    """Convert the end of a loop to a `Finish`."""
    reason = "" if end.reason == "completed" else end.reason.replace("_", " ")
    detail = f"{reason}: {end.detail}" if reason and end.detail else reason
    return Finish(
        state=_STATES.get(end.reason, "failed"),
        text=end.text or last_text,
        detail=detail,
        usage=usage,
    )
