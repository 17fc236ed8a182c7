"""The tools of one agent: its own, and those of MCP servers that were loaded since."""

from dataclasses import dataclass

from holdfast.messages import JsonObject
from holdfast.tools.describe import Described, declared_by, description_of
from holdfast.tools.mcp import McpTools
from holdfast.tools.protocol import Tool
from holdfast.turn.engine import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkit:
    """Lists tools as requests do, and knows each by name."""

    tools: tuple[Tool, ...]
    engine: Engine
    known: dict[str, Tool]
    """Every tool that may be called; grows as MCP tools are loaded."""
    mcp: McpTools | None

    @property
    def names(self) -> tuple[str, ...]:
        """The agent's tools, those it could still load included."""
        return (*(tool.name for tool in self.tools), *(self.mcp.names if self.mcp else ()))

    def definitions(self) -> tuple[JsonObject, ...]:
        """List the tools as requests do, loaded MCP tools included."""
        tools = self.tools
        if self.mcp is not None:
            tools = (*tools, self.mcp.search_tool, *self.mcp.loaded)
        self.known.update((tool.name, tool) for tool in tools)
        self.engine.limits_chars.update((tool.name, tool.limit_chars) for tool in tools)
        return tuple(tool.definition() for tool in tools)

    def described(self, name: str) -> Described:
        """Describe a tool: one of ours by what it declares, any other by its name."""
        tool = self.known.get(name)
        return declared_by(tool) if tool else description_of(name)
