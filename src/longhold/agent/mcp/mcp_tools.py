"""The tools of all MCP servers, named `mcp__server__tool` and loaded on demand.

A name costs a few tokens and a definition hundreds, so `ToolSearch` loads definitions. The
request's tool list never changes. Found tools are referenced if the provider has their definition,
and otherwise called through `CallTool`. A server's text is untrusted and cannot declare a tool
harmless.
"""

import asyncio
import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from longhold.agent.mcp.link import McpLink, ServerFailed, read_result
from longhold.agent.mcp.servers import McpServer
from longhold.core.messages import JsonObject, Opaque
from longhold.core.messages.text import clean_document
from longhold.core.tools.context import ToolContext
from longhold.core.tools.describe import MCP_CHARS
from longhold.core.tools.protocol import NAME as CALL_TOOL
from longhold.core.tools.protocol import Input, Outcome, Refused, Tool, make_tool

if TYPE_CHECKING:
    from mcp.types import Tool as Offered

ASKED_CHARS = 500_000
"""The largest result limit that a tool may request for itself."""
ASKS = "anthropic/maxResultSizeChars"
"""The key of that request in a tool's `_meta`."""
DESCRIPTION_CHARS = 2_000
NAME_CHARS = 64
"""The longest tool name that every provider accepts."""
FOUND = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOffer:
    """The tools and instructions of one server. Both are untrusted data."""

    server: str
    names: tuple[str, ...] = ()
    instructions: str = ""


class ToolSearchInput(Input, frozen=True, kw_only=True):
    query: Annotated[
        str, Meta(description="`select:NAME,NAME`, or words to look for.", min_length=1)
    ]
    max_results: Annotated[int, Meta(description="How many to find at most.", ge=1, le=20)] = FOUND


class McpTools:
    def __init__(
        self,
        servers: Iterable[McpServer],
        *,
        can_refer: Callable[[str], bool] = lambda name: False,
    ) -> None:
        """`can_refer` returns whether requests carry a tool's deferred definition."""
        self._links = {server.name: McpLink(server) for server in servers}
        self._reached: dict[str, McpLink] = {}
        """The servers that answered, including those shared by another session."""
        self._tools: dict[str, Tool] = {}
        self._server_of: dict[str, str] = {}
        self._loaded: set[str] = set()
        self._said: dict[str, str] = {}
        self._can_refer = can_refer
        self.search_tool: Tool = make_tool(
            "ToolSearch", ToolSearchInput, self._search, kind="other", is_read_only=True
        )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._tools))

    @property
    def offers(self) -> tuple[ServerOffer, ...]:
        return tuple(
            ServerOffer(
                server=server,
                names=tuple(name for name in self.names if self._server_of[name] == server),
                instructions=self._said[server],
            )
            for server in sorted(self._said)
            if self._reached[server].failed_at is None
        )

    @property
    def loaded(self) -> tuple[Tool, ...]:
        return tuple(self._tools[name] for name in sorted(self._loaded))

    @property
    def tools(self) -> tuple[Tool, ...]:
        return tuple(self._tools[name] for name in self.names)

    async def connect(self) -> tuple[str, ...]:
        found = await asyncio.gather(*(self._ask(link) for link in self._links.values()))
        return tuple(problem for problem in found if problem)

    def load(self, names: Iterable[str]) -> tuple[Tool, ...]:
        """Mark tools as found. Unknown names are ignored."""
        known = tuple(self._tools[name] for name in names if name in self._tools)
        self._loaded.update(tool.name for tool in known)
        return known

    def find(self, query: str, limit: int = FOUND) -> tuple[Tool, ...]:
        words = set(re.findall(r"[a-z0-9]+", query.casefold()))
        scored = [(_score(tool, words), tool.name) for tool in self._tools.values()]
        best = sorted((-score, name) for score, name in scored if score)
        return tuple(self._tools[name] for _, name in best[:limit])

    def share(self, other: "McpTools", names: Iterable[str]) -> None:
        """Offer tools of another session over its connections, which that session closes."""
        for name in names:
            server = other._server_of[name]
            self._reached.setdefault(server, other._reached[server])
            self._add(other._tools[name], server)
            self._said.setdefault(server, other._said.get(server, ""))

    def _add(self, tool: Tool, server: str) -> None:
        if self._tools.setdefault(tool.name, tool) is tool:
            self._server_of[tool.name] = server

    async def close(self) -> None:
        await asyncio.gather(*(link.close() for link in self._links.values()))

    async def _ask(self, link: McpLink) -> str:
        try:
            offered = await link.fetch_tools()
        except ServerFailed as failure:
            return str(failure)
        self._reached[link.server.name] = link
        self._said[link.server.name] = link.instructions
        for each in offered:
            self._add(as_tool(each, link), link.server.name)
        return ""

    async def _search(self, given: ToolSearchInput, _tool_context: ToolContext) -> Outcome:
        away = [link for link in self._links.values() if link.is_worth_retrying()]
        await asyncio.gather(*map(self._ask, away))
        if given.query.startswith("select:"):
            wanted = [name.strip() for name in given.query.removeprefix("select:").split(",")]
            found = self.load(wanted)
        else:
            found = self.load(item.name for item in self.find(given.query, given.max_results))
        if not found:
            raise Refused(f"No tool matches {given.query!r}; there are {len(self._tools)} by name.")
        note = f"found {', '.join(item.name for item in found)}"
        if all(self._can_refer(item.name) for item in found):
            raw = [{"type": "tool_reference", "tool_name": item.name} for item in found]
            return Outcome(content=tuple(Opaque(raw=each) for each in raw), note=note)
        intro = f"Call these through {CALL_TOOL}."
        return Outcome(content="\n\n".join((intro, *map(_render, found))), note=note)


def as_tool(offered: "Offered", link: McpLink) -> Tool:
    name = _full_name(link.server.name, offered.name)
    description = clean_document(offered.description or "", instead="")

    async def run(given: JsonObject, tool_context: ToolContext) -> Outcome:
        try:
            result = await link.call(offered.name, given)
        except ServerFailed as failure:
            return Outcome(content=str(failure), is_error=True, note=str(failure))
        return read_result(result, name, tool_context)

    return Tool(
        name=name,
        description=description[:DESCRIPTION_CHARS],
        input_schema=offered.input_schema,
        kind=link.server.kinds.get(offered.name, "other"),
        limit_chars=_limit(offered.meta),
        run=run,
    )


def _limit(meta: JsonObject | None) -> int:
    asked = (meta or {}).get(ASKS)
    if isinstance(asked, int | float) and not isinstance(asked, bool) and asked >= 1:
        return int(min(asked, ASKED_CHARS))
    return MCP_CHARS


def _full_name(server: str, tool: str) -> str:
    """Return a name that every provider accepts. A changed name ends in a hash.

    A rule for `mcp__github` must not cover a server called `github__evil`.
    """
    exact = f"mcp__{server}__{tool}"
    mark = hashlib.sha256(exact.encode()).hexdigest()[:8]
    safe = re.sub(r"[^A-Za-z0-9_-]", "_", server)
    if "__" in f"{safe}_":
        safe = f"{re.sub('_+', '_', safe)}-{mark}"
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", f"mcp__{safe}__{tool}")
    if plain == exact and len(exact) <= NAME_CHARS:
        return exact
    return f"{plain[: NAME_CHARS - 9]}_{mark}"


def _score(tool: Tool, words: set[str]) -> int:
    name = set(re.findall(r"[a-z0-9]+", tool.name.casefold()))
    said = set(re.findall(r"[a-z0-9]+", tool.description.casefold()))
    inside = sum(any(word in part for part in name) for word in words if len(word) > 2)
    return 10 * len(words & name) + 3 * inside + len(words & said)


def _render(tool: Tool) -> str:
    schema = msgspec.json.encode(tool.input_schema).decode()
    return f"{tool.name}\n{tool.description}\ninput: {schema}"
