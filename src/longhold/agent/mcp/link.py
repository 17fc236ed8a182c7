"""The connection to one MCP server. After a failure the next call restarts it. It runs in its own
task, because the SDK's scopes must be left in the task that entered them. Long results are returned
whole, and the general result limit applies later.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Awaitable, Iterator
from contextlib import AsyncExitStack
from typing import IO, TYPE_CHECKING, TypeVar

import msgspec

from longhold.agent.mcp.servers import McpServer, expand_variables
from longhold.agent.permissions.sources import is_unchanged
from longhold.core.messages import Image, JsonObject, ResultContent, Text, text_of
from longhold.core.settings.installation import load_extra
from longhold.core.tools.context import ToolContext
from longhold.core.tools.protocol import Outcome

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client import Transport
    from mcp.types import CallToolResult, ContentBlock, Tool

CLOSE_SECONDS = 8.0
"""The SDK ends, terminates and kills a server within 6 s."""
MAX_PAGES = 50
"""Maximum pages of a list, because a server could send pages forever."""
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
        """When the last start failed, or None once the server was reached."""
        self._errors: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by `close`

    def is_worth_retrying(self) -> bool:
        failed = self.failed_at
        return failed is not None and time.monotonic() - failed >= self.server.retry_seconds

    async def fetch_tools(self) -> list["Tool"]:
        client = await self._connect()
        tools: list[Tool] = []
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
