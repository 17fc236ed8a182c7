"""Serves a gateway until interrupted, or in a thread for tests and `wrap`."""

import asyncio
import gc
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from longhold.core.http import LOOPBACK, is_loopback, listen, new_token, serve_in_thread, server_of
from longhold.core.settings import GatewaySettings, Settings, home, load_settings
from longhold.core.settings.private_files import write_private
from longhold.errors import ConfigError
from longhold.gateway.conversations import Conversations
from longhold.gateway.endpoints import Upstream
from longhold.gateway.planner import Planner
from longhold.gateway.proxy import (
    UPSTREAMS,
    Connections,
    GatewayRefusal,
    Proxy,
    check_caller,
    make_refusal,
)
from longhold.gateway.shadow import Shadow
from longhold.gateway.tenants import TenantBudgets

HEAD_BYTES = 65_536
"""Generous: clients' headers take a few thousand bytes."""
CONNECT_SECONDS = 10.0


def _limited_heads(settings: GatewaySettings) -> type[HttpToolsProtocol]:
    """Return a protocol that closes connections with too long or too slow headers."""

    class LimitedHeads(HttpToolsProtocol):
        """Headers are due from `connection_made` or `on_message_begin` to `on_headers_complete`."""

        _due: asyncio.TimerHandle | None = None
        _head_bytes = 0

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._expect_head()

        def connection_lost(self, exc: Exception | None) -> None:
            self._end_head()
            super().connection_lost(exc)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._expect_head()

        def on_headers_complete(self) -> None:
            self._end_head()
            super().on_headers_complete()

        def data_received(self, data: bytes) -> None:
            if self._due is not None:
                self._head_bytes += len(data)
                if self._head_bytes > HEAD_BYTES and b"\r\n\r\n" not in data:
                    self.send_400_response(f"The head is over {HEAD_BYTES} bytes.")
                    return
            super().data_received(data)

        def _expect_head(self) -> None:
            if self._due is None:
                self._head_bytes = 0
                self._due = self.loop.call_later(settings.body_seconds, self.transport.close)

        def _end_head(self) -> None:
            if self._due is not None:
                self._due.cancel()
                self._due = None

    return LimitedHeads


Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]

DEFAULT_PORT = 8788
SALT_BYTES = 16
LOOK_SECONDS = 0.1
"""How often to check for sessions that are idle or that another process wants."""
OWN_PATHS = "/longhold/"
DASHBOARD = "/longhold/sessions"
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SWITCH_SECONDS = 0.0005
"""Thread switch interval. With Python's default of 5 ms, each read or write of a request waits that
long while a shadow is computed."""
ENDING_SECONDS = 600
"""A restart lets streams finish for this long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayOptions:
    upstreams: Mapping[Upstream, str] = field(default_factory=lambda: UPSTREAMS)
    token: str = ""
    """Required of every request, and mandatory beyond loopback."""
    apart: bool = True
    pages: Callable[[Planner, str, int], Starlette] | None = None
    """Builds the dashboard from the planner, the key and the port. Served on loopback only."""
    key: str = field(default_factory=new_token)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningGateway:
    url: str
    planner: Planner


def application(
    planner: Planner, settings: Settings, options: GatewayOptions, port: int = 0
) -> ASGIApp:
    dashboard = options.pages(planner, options.key, port) if options.pages else None
    own = settings.gateway
    timeout = httpx2.Timeout(own.read_seconds, connect=CONNECT_SECONDS, pool=None)
    verified = httpx2.create_ssl_context()
    connections = Connections(lambda: httpx2.AsyncClient(timeout=timeout, verify=verified))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        closing = asyncio.create_task(_let_go(planner))
        try:
            async with AsyncExitStack() as stack:
                if dashboard is not None:
                    context = dashboard.router.lifespan_context(dashboard)
                    await stack.enter_async_context(context)
                yield
        finally:
            closing.cancel()
            await connections.close()
            planner.close()

    proxy = Proxy(planner, connections, own, upstreams=options.upstreams, token=options.token)
    pages = [Mount(DASHBOARD, app=dashboard)] if dashboard is not None else []
    own_pages = Starlette(routes=[*_reports(planner, options.token), *pages], lifespan=lifespan)

    async def gateway(scope: Scope, receive: Receive, send: Send) -> None:
        is_own = scope["type"] != "http" or scope["path"].startswith(OWN_PATHS)
        await (own_pages if is_own else proxy)(scope, receive, send)

    return gateway


def _reports(planner: Planner, token: str) -> list[Route]:
    async def stats(request: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(planner.stats))

    async def metrics(request: Request) -> Response:
        text = await asyncio.to_thread(planner.metrics)
        return PlainTextResponse(text, media_type=METRICS_TYPE)

    def guarded(endpoint: Endpoint) -> Endpoint:
        async def guard(request: Request) -> Response:
            try:
                check_caller(request, token)
            except GatewayRefusal as refusal:
                return make_refusal(request.url.path, refusal)
            return await endpoint(request)

        return guard

    return [
        Route("/longhold/stats", guarded(stats)),
        Route("/longhold/metrics", guarded(metrics)),
    ]


def _build_planner(
    settings: Settings,
    options: GatewayOptions,
    *,
    conversations: Conversations | None = None,
) -> Planner:
    return Planner(
        conversations or Conversations(settings),
        salt=_salt(),
        budgets=TenantBudgets(settings.gateway.tenant_usd_per_day, home() / "spent" / "tenants"),
        shadow=Shadow() if settings.gateway.shadow else None,
        apart=options.apart,
    )


def serve(
    host: str = LOOPBACK,
    port: int = DEFAULT_PORT,
    options: GatewayOptions | None = None,
    *,
    settings: Settings | None = None,
    started: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve until interrupted. Calls `started` with the address once the port is bound."""
    options, settings = options or GatewayOptions(), settings or load_settings()
    is_local = is_loopback(host)
    if not is_local and not options.token:
        raise ConfigError(f"others can reach {host}; give --token, or listen on {LOOPBACK}")
    if not is_local:  # a remote client cannot open the file that a preview names
        settings = replace(settings, spill=replace(settings.spill, on=False))
    conversations = Conversations(settings, opens_files=is_local)
    planner = _build_planner(settings, options, conversations=conversations)
    if not is_local:
        options = replace(options, pages=None)
    with listen(host, port) as listener:
        bound = listener.getsockname()[1]
        app = application(planner, settings, options, bound)
        started(f"http://{host}:{bound}")
        gc.freeze()  # loaded modules stay, so the collector need not scan them
        sys.setswitchinterval(SWITCH_SECONDS)
        _server(app, settings, ending_seconds=ENDING_SECONDS).run([listener])


@contextmanager
def running(
    options: GatewayOptions | None = None,
    *,
    settings: Settings | None = None,
    conversations: Conversations | None = None,
) -> Iterator[RunningGateway]:
    """Serve from a thread on a free loopback port until the block ends."""
    options, settings = options or GatewayOptions(), settings or load_settings()
    planner = _build_planner(settings, options, conversations=conversations)
    app = application(planner, settings, options)
    with serve_in_thread(_server(app, settings)) as url:
        yield RunningGateway(url=url, planner=planner)


def _server(app: ASGIApp, settings: Settings, *, ending_seconds: int = 1) -> uvicorn.Server:
    protocol = _limited_heads(settings.gateway)
    return server_of(app, has_lifespan=True, ending_seconds=ending_seconds, protocol=protocol)


async def _let_go(planner: Planner) -> None:
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        planner.let_go()


def _salt() -> bytes:
    file = home() / "gateway.salt"
    if not file.exists():
        write_private(file, os.urandom(SALT_BYTES).hex())
    return bytes.fromhex(file.read_text(encoding="ascii").strip())
