"""Serving a gateway: until interrupted for the command line, from a thread for tests and `wrap`."""

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
from longhold.core.settings.files import write_private
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
"""Clients' headers are a few thousand bytes."""
CONNECT_SECONDS = 10.0
"""An upstream that does not answer by then is down."""


def _limited_heads(settings: GatewaySettings) -> type[HttpToolsProtocol]:
    """Return a protocol that closes connections whose next head is too long or too slow."""

    class LimitedHeads(HttpToolsProtocol):
        """Between `connection_made` or `on_message_begin` and `on_headers_complete` a head is due."""

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
"""How often it is looked which sessions are idle, or wanted by another process."""
OWN_PATHS = "/longhold/"
DASHBOARD = "/longhold/sessions"
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SWITCH_SECONDS = 0.0005
"""How long a thread that counts may keep the others from running: with Python's own 5 ms a request
waits that long each time it reads or writes while another's shadow is computed."""
ENDING_SECONDS = 600
"""A restart cuts no stream short that ends within this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayOptions:
    upstreams: Mapping[Upstream, str] = field(default_factory=lambda: UPSTREAMS)
    token: str = ""
    """Required of every request; needed beyond loopback."""
    apart: bool = True
    """Keep the conversations of different credentials apart."""
    pages: Callable[[Planner, str, int], Starlette] | None = None
    """Makes the dashboard from the planner, its key and the port. It is served on loopback only."""
    key: str = field(default_factory=new_token)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningGateway:
    url: str
    planner: Planner


def application(
    planner: Planner, settings: Settings, options: GatewayOptions, port: int = 0
) -> ASGIApp:
    """Build the ASGI application around a planner; a dashboard needs to know its port."""
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
    """Serve until interrupted; `started` is called with the address once it is reachable."""
    options, settings = options or GatewayOptions(), settings or load_settings()
    is_local = is_loopback(host)
    if not is_local and not options.token:
        raise ConfigError(f"others can reach {host}; give --token, or listen on {LOOPBACK}")
    if not is_local:  # a preview names a file, which no client elsewhere can open
        settings = replace(settings, spill=replace(settings.spill, on=False))
    conversations = Conversations(settings, opens_files=is_local)
    planner = _build_planner(settings, options, conversations=conversations)
    if not is_local:
        options = replace(options, pages=None)
    with listen(host, port) as listener:
        bound = listener.getsockname()[1]
        app = application(planner, settings, options, bound)
        started(f"http://{host}:{bound}")
        gc.freeze()  # what was loaded stays, and is not looked through again and again
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
