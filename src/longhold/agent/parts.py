"""What an agent is made of before it has tools, and what makes another agent from it.

`AgentParts` is what an agent shares with those it starts: they run on its models, at most with its
permissions, and are paid from its budget. `Blueprint` is what `build` needs to put one together,
the main agent and a sub-agent alike.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from longhold.agent.hook_events import HookEvents
from longhold.agent.hooks import Hooks
from longhold.agent.instructions import Nearby
from longhold.agent.mcp import McpTools
from longhold.agent.notices import Notices
from longhold.agent.permissions import Gate
from longhold.agent.subagents.ledger import Delivery
from longhold.agent.subagents.supervisor import Supervisor
from longhold.agent.tool_guard import ToolGuard
from longhold.core.log.entries import Section
from longhold.core.log.spending import Budget
from longhold.core.stages.spill.spill import Spill
from longhold.core.tools.context import ToolContext
from longhold.core.tools.protocol import Tool
from longhold.core.turn.answering import Models, own_refusal
from longhold.core.turn.engine import Engine, Stage
from longhold.core.turn.fork.run import Forks
from longhold.core.turn.round import Toolbox

if TYPE_CHECKING:
    from longhold.agent.agent import Agent


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentParts:
    """What an agent shares with those it starts."""

    engine: Engine
    models: Models
    tool_context: ToolContext
    guard: ToolGuard
    hooks: HookEvents
    budget: Budget
    notices: Notices
    mcp: McpTools | None
    known: dict[str, Tool]
    """Every tool that may be called, by name; grows as MCP tools are loaded."""
    nearby: Nearby
    toolbox: Toolbox

    def forks(self) -> Forks:
        """Make forks of the agent's conversation, which end with whoever asks, not with a turn."""
        return Forks(
            parent=self.engine,
            model=self.models.current,
            toolbox=lambda: self.toolbox,
            budget=self.budget,
            refuses=partial(own_refusal, self.engine),
        )

    @property
    def gate(self) -> Gate:
        return self.guard.gate

    @property
    def session(self) -> str:
        return self.engine.log.header.session

    @property
    def scratchpad(self) -> Path:
        return scratchpad_of(self.engine)


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    tools: tuple[Tool, ...]
    supervisor: Supervisor | None = None
    inbox: tuple[Stage, ...] = ()
    """Bring in what others say: mail, the reports of agents."""
    system: str = ""
    """Replaces the whole system prompt."""
    sections: tuple[Section, ...] = ()
    """Added to it."""
    mail: Delivery | None = None

    def waiting(self, engine: Engine) -> list[str]:
        letters = self.mail.waiting_lines(engine) if self.mail is not None else []
        return [*letters, *(self.supervisor.unread_lines() if self.supervisor else ())]

    async def next_look(self, seconds: float) -> None:
        if self.supervisor is None:
            await asyncio.Event().wait()  # nobody writes to an agent without agents
        else:
            await self.supervisor.news_within(seconds)


Equip: TypeAlias = Callable[[AgentParts, tuple[Tool, ...]], Awaitable[Equipment]]
"""Completes the tools every agent has with those of its place among the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    engine: Engine
    spill: Spill
    models: Models
    tool_context: ToolContext
    gate: Gate
    hooks: Hooks
    budget: Budget
    notices: Notices
    equip: Equip
    tools: tuple[Tool, ...] = ()
    """The tools there are, before any are left out."""
    mcp: McpTools | None = None
    source: str = "main"
    """Who asks, where calls are counted and compared: `main`, or `agent:<kind>`."""
    caller: str = "run"
    """Who started the session, which decides how long the provider keeps the prompt."""
    begins: str = "startup"
    """`startup` or `resume`, as hooks know it."""
    has_memory: bool = False
    """The project's long-term memory is this agent's."""
    abort: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_main(self) -> bool:
        return self.source == "main"

    async def abandon(self) -> None:
        await self.tool_context.close()
        if self.mcp is not None:
            await self.mcp.close()
        await self.models.close()
        self.engine.close()


Assemble: TypeAlias = Callable[[Blueprint], Awaitable["Agent"]]


def scratchpad_of(engine: Engine) -> Path:
    return engine.directory / "scratchpad"
