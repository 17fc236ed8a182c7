"""The parts that an agent shares with its sub-agents, and the blueprint for an agent."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from longhold.agent.hooks import Hooks
from longhold.agent.instructions.nearby import Nearby
from longhold.agent.mcp import McpTools
from longhold.agent.permissions import Gate
from longhold.agent.subagents.ledger import Delivery
from longhold.agent.subagents.supervisor import Supervisor, render_line
from longhold.agent.tool_guard import HookEvents, ToolGuard
from longhold.agent.user_notices import Notices
from longhold.core.log.entries import Framed, Section
from longhold.core.log.spending import Budget
from longhold.core.messages import JsonObject
from longhold.core.models.capabilities import capabilities
from longhold.core.request.tool_references import defer_tool, is_deferred
from longhold.core.stages.spill.spill import Spill
from longhold.core.tools.context import ToolContext
from longhold.core.tools.describe import Described, describe_declared, description_of
from longhold.core.tools.protocol import CALL_TOOL, Tool
from longhold.core.turn.answering import Models, own_refusal
from longhold.core.turn.engine import Engine, Stage
from longhold.core.turn.fork.run import Forks
from longhold.core.turn.round import Toolbox

if TYPE_CHECKING:
    from longhold.agent.agent import Agent


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentParts:
    engine: Engine
    models: Models
    tool_context: ToolContext
    guard: ToolGuard
    hooks: HookEvents
    budget: Budget
    notices: Notices
    mcp: McpTools | None
    known: dict[str, Tool]
    nearby: Nearby
    toolbox: Toolbox
    is_strict: bool = False

    def forks(self) -> Forks:
        """Return forks of the conversation, which end with their caller and not with a turn."""
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
    system: str = ""
    sections: tuple[Section, ...] = ()
    mail: Delivery | None = None

    def waiting(self, engine: Engine) -> list[str]:
        letters = self.mail.waiting_lines(engine) if self.mail is not None else []
        unread = self.supervisor.registry.list_unreported() if self.supervisor else ()
        return [*letters, *map(render_line, unread)]

    async def next_look(self, seconds: float) -> None:
        if self.supervisor is None:
            await asyncio.Event().wait()  # because without a supervisor there is no mail
        else:
            await self.supervisor.news_within(seconds)


Equip: TypeAlias = Callable[[AgentParts, tuple[Tool, ...]], Awaitable[Equipment]]


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
    mcp: McpTools | None = None
    source: str = "main"
    """The name under which calls are counted: `main` or `agent:<kind>`."""
    caller: str = "run"
    """The origin of the session, which decides the cache lifetime of the prompt."""
    begins: str = "startup"
    has_memory: bool = False
    is_strict: bool = False
    """Whether the checkout has untrusted settings. Its files then count as untrusted text."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit:
    tools: tuple[Tool, ...]
    parts: AgentParts

    @property
    def mcp(self) -> McpTools | None:
        return self.parts.mcp

    @property
    def names(self) -> tuple[str, ...]:
        return (*(tool.name for tool in self.tools), *(self.mcp.names if self.mcp else ()))

    def definitions(self) -> tuple[JsonObject, ...]:
        """Return the tools of a new frame: its own tools, loaded MCP tools and deferred MCP tools.

        A model that does not support deferred tools calls them through `CallTool`.
        """
        self.fill_toolbox()
        found = self.mcp.loaded if self.mcp else ()
        listed = tuple(tool.definition() for tool in (*self._list_fixed(), *found))
        if self.mcp is None or not capabilities(self.parts.models.current().name).tool_references:
            return listed
        others = (tool for tool in self.mcp.tools if tool not in found)
        return (*listed, *(defer_tool(tool.definition()) for tool in others))

    def is_listed_in(self, frame: Framed) -> bool:
        """Return whether a frame has the agent's current tools. MCP tools may differ."""
        self.fill_toolbox()
        own = {tool.name: tool.definition() for tool in self._list_fixed()}
        listed = {str(tool.get("name")): tool for tool in frame.tools}
        servers = {name for name in listed if name.startswith("mcp__")}
        return own == {name: tool for name, tool in listed.items() if name not in servers}

    def _list_fixed(self) -> tuple[Tool, ...]:
        return (*self.tools, *((self.mcp.search_tool, CALL_TOOL) if self.mcp else ()))

    def fill_toolbox(self) -> None:
        tools = (*self._list_fixed(), *(self.mcp.tools if self.mcp else ()))
        self.parts.known.update((tool.name, tool) for tool in tools)
        self.parts.engine.limits_chars.update((tool.name, tool.limit_chars) for tool in tools)

    def describe(self, name: str) -> Described:
        tool = self.parts.known.get(name)
        return describe_declared(tool) if tool else description_of(name)


def references_in(engine: Engine) -> Callable[[str], bool]:
    return lambda name: (
        capabilities(engine.model).tool_references
        and any(is_deferred(tool) and tool.get("name") == name for tool in engine.frame.tools)
    )
