"""The tools of one agent: its own and those of MCP servers."""

from collections.abc import Callable
from dataclasses import dataclass

from longhold.agent.mcp import McpTools
from longhold.agent.parts import AgentParts
from longhold.core.log.entries import Framed
from longhold.core.messages import JsonObject
from longhold.core.models.capabilities import capabilities
from longhold.core.request.tool_references import defer_tool, is_deferred
from longhold.core.tools.describe import Described, describe_declared, description_of
from longhold.core.tools.protocol import CALL_TOOL, Tool
from longhold.core.turn.engine import Engine


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
        """Return the tools of a new frame: own tools, loaded MCP tools, and the rest deferred.

        If the model does not support deferred tools, those are called through `CallTool`.
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
