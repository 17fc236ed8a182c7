"""MCP servers and their tools, which are named `mcp__server__tool` and loaded on demand.

A server is a program that would run here, so a project's servers need the user's trust. The extra
`mcp` is imported with the first connection. A tool's name costs a few tokens and its definition
hundreds, so `ToolSearch` loads definitions. The request's tool list never changes. `ToolSearch`
returns references to tools whose definition the provider has. The model calls other tools through
`CallTool`. A server's text is untrusted and cannot declare a tool harmless.
"""

import asyncio
import hashlib
import os
import re
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct

from longhold.agent.permissions.sources import SettingsSection, is_unchanged, read_sections
from longhold.core.messages import Image, Json, JsonObject, Opaque, ResultContent, Text, text_of
from longhold.core.messages.text import clean_document
from longhold.core.settings.installation import load_extra
from longhold.core.tools.context import ToolContext
from longhold.core.tools.describe import MCP_CHARS
from longhold.core.tools.protocol import NAME as CALL_TOOL
from longhold.core.tools.protocol import Input, Outcome, Refused, Tool, ToolKind, make_tool
from longhold.errors import ConfigError

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client import Transport
    from mcp.types import CallToolResult, ContentBlock
    from mcp.types import Tool as Offered

START_SECONDS = 30.0
"""Long, because package runners download the server first."""
CALL_SECONDS = 300.0
"""Long, because browsers and builds are slow."""
RETRY_SECONDS = 60.0
"""The minimum time before a search retries an unreachable server."""

_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


class McpServer(Struct, frozen=True, kw_only=True):
    name: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    """Variables in addition to the few that every server gets. Servers get no other variables."""
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    kinds: dict[str, ToolKind] = {}
    """The kind of each listed tool, which decides whether its old results may be cleared."""
    start_seconds: float = START_SECONDS
    call_seconds: float = CALL_SECONDS
    section: SettingsSection | None = None
    """The source of the server. It must still be trusted and unchanged when the server starts."""
    retry_seconds: float = RETRY_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class McpPlan:
    servers: tuple[McpServer, ...] = ()
    untrusted: tuple[SettingsSection, ...] = ()


def load_servers(project: Path | None, *, at: Path | None = None) -> McpPlan:
    """Read the servers. A later file overrides an earlier one."""
    servers: dict[str, McpServer] = {}
    untrusted: list[SettingsSection] = []
    for section in read_sections("mcpServers", project, at=at):
        if not section.is_trusted:
            untrusted.append(section)
            continue
        for name, value in section.value.items():
            servers[name] = read_server(name, value, section)
    return McpPlan(servers=tuple(servers.values()), untrusted=tuple(untrusted))


def read_server(name: str, value: Json, section: SettingsSection) -> McpServer:
    file = section.file
    if isinstance(value, dict):
        value = {key: item for key, item in value.items() if key != "section"}
    try:
        server = msgspec.convert(value, McpServer)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{file}: mcpServers.{name}: {error}") from error
    if bool(server.command) == bool(server.url):
        raise ConfigError(f"{file}: mcpServers.{name}: give either a command or a url")
    return msgspec.structs.replace(server, name=name, section=section)


def expand_variables(server: McpServer, variables: Mapping[str, str]) -> McpServer:
    def fill(text: str) -> str:
        return _VARIABLE.sub(lambda found: variables.get(found[1], found[2] or ""), text)

    return msgspec.structs.replace(
        server,
        command=fill(server.command),
        args=tuple(fill(text) for text in server.args),
        env={key: fill(value) for key, value in server.env.items()},
        url=fill(server.url),
        headers={key: fill(value) for key, value in server.headers.items()},
    )


CLOSE_SECONDS = 8.0
"""The SDK closes, then terminates, then kills a server within 6 s."""
MAX_PAGES = 50
"""The maximum number of pages in a list, because a server could send pages forever."""
MAX_TOOLS = 1_000
MAX_BLOCKS = 1_000
LAST_WORDS_BYTES = 2_000
WARN_TOKENS = 10_000
"""Larger results are reported to the user with the server's name."""

Response = TypeVar("Response")


class ServerFailed(Exception):
    """A server failed. The message is for the model."""


class McpLink:
    def __init__(self, server: McpServer) -> None:
        self.server = server
        self._starting = asyncio.Lock()
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._client: Client | None = None
        self.failed_at: float | None = None
        self._errors: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by `close`

    def is_worth_retrying(self) -> bool:
        failed = self.failed_at
        return failed is not None and time.monotonic() - failed >= self.server.retry_seconds

    async def fetch_tools(self) -> list["Offered"]:
        client = await self._connect()
        tools: list[Offered] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await self._answer(client.list_tools(cursor=cursor), self.server.start_seconds)
            tools.extend(page.tools)
            cursor = page.next_cursor
            if cursor is None or len(tools) >= MAX_TOOLS:
                break
        return tools[:MAX_TOOLS]

    @property
    def instructions(self) -> str:
        return (self._client.instructions or "") if self._client is not None else ""

    async def call(self, tool: str, given: JsonObject) -> "CallToolResult":
        client = await self._connect()
        return await self._answer(client.call_tool(tool, given), self.server.call_seconds)

    async def close(self) -> None:
        """End the connection, and the server if Longhold started it."""
        await self._leave()
        self._errors.close()

    async def _leave(self) -> None:
        task, self._task, self._client = self._task, None, None
        self._stop.set()
        if task is not None:
            await asyncio.wait({task}, timeout=CLOSE_SECONDS)
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=CLOSE_SECONDS)
            _ = task.cancelled() or task.exception()

    async def _connect(self) -> "Client":
        async with self._starting:
            if self._client is None or self._task is None or self._task.done():
                await self._leave()
                await self._start()
            assert self._client is not None
            return self._client

    async def _start(self) -> None:
        load_extra("mcp", extra="mcp", what="an MCP server")
        section = self.server.section
        if section is not None and not await asyncio.to_thread(is_unchanged, section):
            raise ServerFailed(
                f"the server {self.server.name} was not started: files it may run have changed "
                "since the user trusted it"
            )
        self._stop, ready = asyncio.Event(), asyncio.Event()
        task = self._task = asyncio.create_task(self._hold_connection(ready, self._stop))
        waiting = asyncio.ensure_future(ready.wait())
        try:
            await asyncio.wait(
                {task, waiting},
                timeout=self.server.start_seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            waiting.cancel()
        if not ready.is_set():
            self.failed_at = time.monotonic()
            reason = f"did not answer within {self.server.start_seconds:g} s"
            if task.done():
                error = task.exception()
                while isinstance(error, BaseExceptionGroup):
                    error = error.exceptions[0]
                reason = f"could not be reached: {f'{error}' or type(error).__name__}"
            else:
                task.cancel()
                await asyncio.wait({task}, timeout=CLOSE_SECONDS)
            name = self.server.name
            raise ServerFailed(f"The MCP server {name!r} {reason}.{self._last_words()}")
        self.failed_at = None

    async def _hold_connection(self, ready: asyncio.Event, stop: asyncio.Event) -> None:
        async with AsyncExitStack() as stack:
            transport = await self._transport(stack)
            client: Client = load_extra("mcp", extra="mcp").Client(transport)
            self._client = await stack.enter_async_context(client)
            ready.set()
            await stop.wait()
            self._client = None

    async def _transport(self, stack: AsyncExitStack) -> "Transport":
        from mcp import StdioServerParameters, stdio_client
        from mcp.client.streamable_http import streamable_http_client

        server = expand_variables(self.server, os.environ)
        if server.url:
            http = load_extra(
                "httpx2", extra="gateway", what="an MCP server over HTTP"
            ).AsyncClient(headers=server.headers, timeout=server.call_seconds)
            await stack.enter_async_context(http)
            return streamable_http_client(server.url, http_client=http)
        started = StdioServerParameters(
            command=server.command, args=list(server.args), env=server.env, cwd=server.cwd or None
        )
        return stdio_client(started, errlog=self._errors)  # type: ignore[arg-type]

    async def _answer(self, request: Awaitable[Response], seconds: float) -> Response:
        """Await an answer. Every failure is raised as `ServerFailed`."""
        from anyio import BrokenResourceError, ClosedResourceError
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED

        name, broken = self.server.name, (BrokenResourceError, ClosedResourceError)
        try:
            async with asyncio.timeout(seconds):
                return await request
        except TimeoutError:
            said = f"did not answer within {seconds:g} s, and the call was cancelled."
        except MCPError as error:
            if error.code != CONNECTION_CLOSED:
                raise ServerFailed(f"The MCP server {name!r} refused: {error}.") from None
            said = "ended in the middle of the call; the next call starts it again."
            self._break()
        except (*broken, OSError, RuntimeError, ValueError) as error:
            said = f"cannot be understood: {error}. The next call reconnects."
            self._break()
        raise ServerFailed(f"The MCP server {name!r} {said}{self._last_words()}")

    def _break(self) -> None:
        self._client = None
        self._stop.set()

    def _last_words(self) -> str:
        number = self._errors.fileno()
        size = os.fstat(number).st_size
        tail = os.pread(number, LAST_WORDS_BYTES, max(0, size - LAST_WORDS_BYTES))
        lines = tail.decode("utf-8", "replace").strip().splitlines()
        return f" It last said: {lines[-1][:500]}" if lines else ""


def read_result(result: "CallToolResult", name: str, tool_context: ToolContext) -> Outcome:
    items = result.content[:MAX_BLOCKS]
    blocks = tuple(block for item in items for block in _blocks(item))
    if len(result.content) > MAX_BLOCKS:
        blocks += (Text(text=f"[{len(result.content) - MAX_BLOCKS:,} more blocks are left out]"),)
    if not blocks and result.structured_content is not None:
        blocks = (Text(text=msgspec.json.encode(result.structured_content).decode()),)
    texts_only = all(isinstance(block, Text) for block in blocks)
    content: ResultContent = text_of(blocks) if texts_only else blocks
    size_tokens = tool_context.count_tokens(text_of(content))
    return Outcome(
        content=content or "(no content)",
        is_error=result.is_error,
        note=f"about {size_tokens:,} tokens from {name}" if size_tokens > WARN_TOKENS else "",
    )


def _blocks(item: "ContentBlock") -> Iterator[Text | Image]:
    match item.type:
        case "text":
            yield Text(text=item.text)
        case "image":
            source = {"type": "base64", "media_type": item.mime_type, "data": item.data}
            yield Image(source=source)
        case "audio":
            yield Text(text="[sound]")
        case "resource_link":
            yield Text(text=f"{item.name}: {item.uri}")
        case "resource":
            yield Text(text=getattr(item.resource, "text", f"[{item.resource.uri}: not text]"))


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
        self, servers: Iterable[McpServer], *, can_refer: Callable[[str], bool] = lambda name: False
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
        known = tuple(self._tools[name] for name in names if name in self._tools)
        self._loaded.update(tool.name for tool in known)
        return known

    def find(self, query: str, limit: int = FOUND) -> tuple[Tool, ...]:
        words = set(re.findall(r"[a-z0-9]+", query.casefold()))
        scored = [(_score(tool, words), tool.name) for tool in self._tools.values()]
        best = sorted((-score, name) for score, name in scored if score)
        return tuple(self._tools[name] for _, name in best[:limit])

    def share(self, other: "McpTools", names: Iterable[str]) -> None:
        """Offer another session's tools over its connections. The other session closes them."""
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
