"""Serves a gateway until interrupted, or in a thread for tests and `wrap`."""

import asyncio
import gc
import hmac
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from types import FrameType
from typing import ClassVar, TypeAlias

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from longhold.core.http import LOOPBACK, is_loopback, listen, new_token, serve_in_thread, server_of
from longhold.core.settings import Settings, home, load_settings
from longhold.core.settings.installation import make_plugins
from longhold.core.settings.private_files import keep_secret
from longhold.errors import ConfigError, StoreError
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
"""The maximum size of headers. Clients use a few thousand bytes."""
MOST_FILES = 65_536
CONNECT_SECONDS = 10.0
ENDING_SECONDS = 600
"""How long streams may take to finish after a restart began."""
QUIET_SECONDS = 1.0
"""The longest time after which a client still reuses a connection."""


class LimitedHeads(HttpToolsProtocol):
    """Closes connections whose headers are too long or too slow, and drops trailers.

    If too many connections have no complete request, the oldest is closed.

    The time limit runs from `connection_made` or `on_message_begin` to `on_headers_complete`. The
    size limit also covers chunk extensions and trailers, because the parser collects them in
    quadratic time.
    """

    head_seconds = 60.0
    most_receiving = 256
    _receiving: ClassVar[dict["LimitedHeads", None]] = {}
    """Connections without a complete request, oldest first. Anybody can open such a connection."""
    _due: asyncio.TimerHandle | None = None
    _head_bytes = 0
    """Bytes since the last part of a body, or since the last request."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._receive()
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
        self._receiving.pop(self, None)
        super().connection_lost(exc)

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._head_bytes = 0
        self._receiving.pop(self, None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing():
            self._receive()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._expect_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._due is not None:  # because later headers are trailers, which nobody has checked
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._end_head()
        self._head_bytes = 0
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        self._head_bytes += len(data)
        is_long = self._head_bytes > HEAD_BYTES
        if is_long and self._due is not None and b"\r\n\r\n" not in data:
            self.send_400_response(f"The head is over {HEAD_BYTES} bytes.")
            return
        super().data_received(data)
        if is_long and self._head_bytes > HEAD_BYTES:  # because this data contains no body
            self.transport.close()

    def _receive(self) -> None:
        self._receiving.pop(self, None)
        self._receiving[self] = None
        if len(self._receiving) > self.most_receiving:
            oldest = next(iter(self._receiving))
            del self._receiving[oldest]
            oldest.transport.abort()

    def _expect_head(self) -> None:
        if self._due is None:
            self._head_bytes = 0
            self._due = self.loop.call_later(self.head_seconds, self.transport.close)

    def _end_head(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None


def _raise_open_files() -> int:
    """Let this process open as many files as the system permits, and return how many."""
    if sys.platform == "win32":
        return 8_192
    import resource  # not on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return soft if soft > 0 else MOST_FILES


@dataclass(slots=True)
class Drain:
    """Serves for some seconds after SIGTERM, so that a balancer notices before the port closes.

    Meanwhile `/longhold/ready` answers 503, and each response closes its connection. Streams that
    began earlier have already sent their headers, so their clients may reuse the connection. The
    port therefore stays open until no request was served for `QUIET_SECONDS`.
    """

    seconds: float = 0.0
    began_at: float | None = None
    in_progress: int = 0
    served_at: float = 0.0

    @property
    def is_on(self) -> bool:
        return self.began_at is not None

    def begin(self) -> None:
        self.began_at = time.monotonic()

    @property
    def is_over(self) -> bool:
        if self.began_at is None:
            return False
        now = time.monotonic()
        is_quiet = not self.in_progress and now >= self.served_at + QUIET_SECONDS
        due = self.seconds if is_quiet else self.seconds + ENDING_SECONDS
        return now >= self.began_at + due

    async def serve(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        async def close_after(message: Message) -> None:
            if self.is_on and message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
            await send(message)

        self.in_progress += 1
        try:
            await app(scope, receive, close_after)
        finally:
            self.in_progress -= 1
            self.served_at = time.monotonic()


class DrainingServer(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, drain: Drain) -> None:
        super().__init__(config)
        self._drain = drain
        self._collected_at = time.monotonic()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if sig == signal.SIGTERM and self._drain.seconds and not self._drain.is_on:
            self._drain.begin()
        else:
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        self._shorten_collections()
        return self._drain.is_over or await super().on_tick(counter)

    def _shorten_collections(self) -> None:
        """Freeze existing objects, so that garbage collection only scans new ones.

        A full collection takes longer with more open sessions, so it runs only while there are no
        requests.
        """
        now, drain = time.monotonic(), self._drain
        is_idle = not drain.in_progress and now >= drain.served_at + IDLE_SECONDS
        if now >= self._collected_at + (COLLECT_SECONDS if is_idle else COLLECT_LATEST_SECONDS):
            gc.unfreeze()
            gc.collect()
            self._collected_at = now
        gc.freeze()


Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]

SALT = "LONGHOLD_SALT"
"""The salt for hashes of credentials. Gateways that share a database need the same salt."""
LOOK_SECONDS = 0.05
"""How often to check for sessions that are idle or that another process wants."""
OWN_PATHS = "/longhold/"
DASHBOARD = "/longhold/sessions"
KEY = "x-longhold-key"
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
COMPACTION = "longhold.core.stages.compact.compact"
"""A module loaded at the start, because other clients would wait while a session loads it."""
IDLE_SECONDS, COLLECT_SECONDS, COLLECT_LATEST_SECONDS = 1.0, 60.0, 600.0
SWITCH_SECONDS = 0.0005
"""The interval between thread switches. With Python's default of 5 ms, each read or write of a
request would wait that long while a shadow is computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayOptions:
    upstreams: Mapping[Upstream, str] = field(default_factory=lambda: UPSTREAMS)
    token: str = ""
    """Every request must send this token. It is mandatory beyond loopback."""
    apart: bool = True
    pages: Callable[[Planner, str, int], Starlette] | None = None
    """Builds the dashboard, which is served on loopback only, from planner, key and port."""
    key: str = field(default_factory=new_token)
    """The operator's key for the pages and the figures of all tenants."""
    drain: Drain = field(default_factory=Drain)


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
        closing = asyncio.create_task(_let_go(planner, options.drain))
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

    proxy = Proxy(
        planner,
        connections,
        own,
        upstreams=options.upstreams,
        token=options.token,
        plugin=next(iter(make_plugins("policies", settings.plugins.use).values()), None),
    )
    pages = [Mount(DASHBOARD, app=dashboard)] if dashboard is not None else []
    own_pages = Starlette(routes=[*_reports(planner, options), *pages], lifespan=lifespan)

    async def gateway(scope: Scope, receive: Receive, send: Send) -> None:
        is_own = scope["type"] != "http" or scope["path"].startswith(OWN_PATHS)
        if scope["type"] == "http" and not is_own:
            await options.drain.serve(proxy, scope, receive, send)
        else:
            await own_pages(scope, receive, send)

    return gateway


def _reports(planner: Planner, options: GatewayOptions) -> list[Route]:
    """Return the figures of the caller's tenant, or of all tenants with the operator's key."""

    def is_operator(request: Request) -> bool:
        given = request.headers.get(KEY, "")
        return hmac.compare_digest(given.encode(), options.key.encode())

    async def stats(request: Request) -> Response:
        whose = None if is_operator(request) else request.headers
        return JSONResponse(await asyncio.to_thread(planner.stats, whose))

    async def metrics(request: Request) -> Response:
        if not is_operator(request):
            raise GatewayRefusal(401, "authentication_error", f"send the operator's key as {KEY}")
        text = await asyncio.to_thread(planner.metrics)
        return PlainTextResponse(text, media_type=METRICS_TYPE)

    async def health(_: Request) -> Response:
        return PlainTextResponse("alive\n")

    async def ready(_: Request) -> Response:
        if options.drain.is_on:
            return PlainTextResponse("draining\n", 503)
        return PlainTextResponse("ready\n")

    def guard_endpoint(endpoint: Endpoint) -> Endpoint:
        async def guard(request: Request) -> Response:
            try:
                check_caller(request, options.token)
                return await endpoint(request)
            except GatewayRefusal as refusal:
                return make_refusal(request.url.path, refusal)

        return guard

    return [
        Route("/longhold/health", health),  # without the token, because probes have none
        Route("/longhold/ready", ready),
        Route("/longhold/stats", guard_endpoint(stats)),
        Route("/longhold/metrics", guard_endpoint(metrics)),
    ]


def _build_planner(
    settings: Settings,
    options: GatewayOptions,
    *,
    conversations: Conversations | None = None,
    is_local: bool = True,
) -> Planner:
    return Planner(
        conversations or Conversations(settings),
        salt=bytes.fromhex(os.environ.get(SALT) or keep_secret(home() / "gateway.salt")),
        budgets=TenantBudgets(settings.gateway.tenant_usd_per_day, home() / "spent" / "tenants"),
        shadow=Shadow() if settings.gateway.shadow else None,
        apart=options.apart,
        is_local=is_local,
    )


def serve(
    host: str = LOOPBACK,
    port: int = 8788,
    options: GatewayOptions | None = None,
    *,
    settings: Settings | None = None,
    started: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve until interrupted. Call `started` with the address once the port is bound."""
    options, settings = options or GatewayOptions(), settings or load_settings()
    is_local = is_loopback(host)
    if not is_local and not options.token:
        raise ConfigError(f"other machines can reach {host}; set --token or listen on {LOOPBACK}")
    if not is_local:  # because a remote client cannot open the file that a preview names
        settings = replace(settings, spill=replace(settings.spill, on=False))
    conversations = Conversations(settings, opens_files=is_local)
    planner = _build_planner(settings, options, conversations=conversations, is_local=is_local)
    if not is_local:
        options = replace(options, pages=None)
    with listen(host, port) as listener:
        bound = listener.getsockname()[1]
        app = application(planner, settings, options, bound)
        started(f"http://{host}:{bound}")
        import_module(COMPACTION)
        sys.setswitchinterval(SWITCH_SECONDS)
        most = min(_raise_open_files(), MOST_FILES) // 4
        server = _server(app, settings, ending_seconds=ENDING_SECONDS, most_receiving=most)
        DrainingServer(server.config, options.drain).run([listener])


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


def _server(
    app: ASGIApp,
    settings: Settings,
    *,
    ending_seconds: int = 1,
    most_receiving: int = LimitedHeads.most_receiving,
) -> uvicorn.Server:
    given = {"head_seconds": settings.gateway.body_seconds, "most_receiving": most_receiving}
    protocol = type("Protocol", (LimitedHeads,), given)
    return server_of(app, has_lifespan=True, ending_seconds=ending_seconds, protocol=protocol)


async def _let_go(planner: Planner, drain: Drain) -> None:
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        with suppress(StoreError):  # the next check tries again
            # Use a thread, because closing a session waits for its commit.
            await asyncio.to_thread(partial(planner.let_go, is_draining=drain.is_on))
