"""What it takes to be an agent that somebody starts: the seam between starting and working.

An `Order` says what is wanted; whoever can make agents is handed to the household as `Hire` and
gives a `Worker`, which works until there is a `Finish`. How a worker thinks and which tools it
has is its maker's business; when it starts, stops and is heard is the household's.
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
"""What the end of a loop is for the one who waits; whatever is not here has failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReach:
    """What an agent may at most: what it had when it was started, whatever holds since."""

    tools: tuple[str, ...] | None = None
    """By name; None is whatever its parent has."""
    mode: Mode | None = None
    """None is its parent's."""

    def keeps(self, tool: str) -> bool:
        """Say whether a tool is within it."""
        return self.tools is None or tool in self.tools

    def narrowed(self, mode: Mode) -> Mode:
        """Give a mode that is no wider than its own."""
        return mode if self.mode is None else narrower(self.mode, mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An agent that is wanted."""

    id: str
    definition: Definition
    prompt: str
    """What it is to do; nothing for one that goes on with what it finds."""
    log: Path
    task: str = ""
    """The same in a few words, for people."""
    name: str = ""
    depth: int = 1
    is_background: bool = False
    is_fork: bool = False
    is_teammate: bool = False
    tree: Worktree | None = None
    """Where it works, if not where its parent does."""
    reach: ToolReach = ToolReach()
    """What it had, if it is started again."""

    @property
    def called(self) -> str:
        """What people and other agents call it."""
        return self.name or self.id

    @property
    def kind(self) -> str:
        """The sort of agent it is."""
        return "fork" if self.is_fork else self.definition.name

    @property
    def source(self) -> str:
        """Who asks, where calls are counted and compared."""
        return f"agent:{self.kind}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """How an agent ended."""

    state: Literal["completed", "failed", "stopped", "interrupted"]
    text: str = ""
    """Its last answer."""
    detail: str = ""
    """Why it ended, if not because it was done."""
    usage: Usage | None = None


Seen: TypeAlias = Callable[[LoopEvent], None]


class Worker(Protocol):
    """An agent at work."""

    @property
    def reach(self) -> ToolReach:
        """What it was given."""
        ...

    async def work(self, seen: Seen) -> Finish:
        """Work on what it was given, or on the mail that waits for it, until done."""
        ...

    def has_mail(self) -> bool:
        """Say whether something waits that it has not read."""
        ...

    def stop(self) -> None:
        """End what it does at the next moment."""
        ...

    async def progress(self) -> str:
        """Say in a few words what it does, if it can; nothing otherwise."""
        ...

    async def close(self) -> None:
        """Let everything go that it holds."""
        ...


def finished(end: Stopped, last_text: str, usage: Usage | None) -> Finish:
    """Say what the end of a loop is for whoever waits for it."""
    reason = "" if end.reason == "completed" else end.reason.replace("_", " ")
    detail = f"{reason}: {end.detail}" if reason and end.detail else reason
    return Finish(
        state=_STATES.get(end.reason, "failed"),
        text=end.text or last_text,
        detail=detail,
        usage=usage,
    )
