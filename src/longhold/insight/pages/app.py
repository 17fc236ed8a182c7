"""The page served live on loopback, for the user's own browser.

The URL contains a secret token. Requests with another host name (DNS rebinding) or origin are
refused even with the token. Only listed sessions are served.
"""

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, TypeAlias

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from longhold.core.http import find_foreign_page, new_token
from longhold.errors import ConfigError, LongholdError
from longhold.insight.pages.followed import FollowedSessions
from longhold.insight.pages.html import policy, render, session_columns

WAITING_EVENTS = 256
"""The limit for queued events per page. A page that falls further behind must reconnect."""


class Feed:
    """Belongs to one event loop. Call `publish` and `subscribe` only on that loop."""

    def __init__(self) -> None:
        self._queues: set[asyncio.Queue[bytes | None]] = set()

    @property
    def listeners(self) -> int:
        return len(self._queues)

    def publish(self, kind: str, value: Any) -> None:
        event = b"event: %s\ndata: %s\n\n" % (kind.encode(), msgspec.json.encode(value))
        for queue in list(self._queues):
            if queue.qsize() < WAITING_EVENTS:
                queue.put_nowait(event)
            else:
                self._queues.discard(queue)
                queue.put_nowait(None)

    async def subscribe(self) -> AsyncIterator[bytes]:
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._queues.add(queue)
        try:
            yield b": connected\n\n"  # so that the browser sees the connection immediately
            while (event := await queue.get()) is not None:
                yield event
        finally:
            self._queues.discard(queue)


LOOPBACK = "127.0.0.1"
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

Undo: TypeAlias = Callable[[str, int], Awaitable[str]]
_Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


FOLLOW_SECONDS = 1.0


def application(
    sessions: FollowedSessions,
    *,
    token: str,
    port: int,
    undo: Undo | None = None,
) -> Starlette:
    """Build the app. `undo(session, number)` undoes a change and returns a message for the user."""
    site = _Site(sessions, token=token, port=port, undo=undo)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        follower = asyncio.create_task(site.follow())
        try:
            yield
        finally:
            follower.cancel()
            with suppress(asyncio.CancelledError):
                await follower
            sessions.close()

    routes = {
        "/": site.page,
        "/api/session": site.session,
        "/api/text": site.text,
        "/api/search": site.search,
        "/api/events": site.events,
    }
    listed = [
        Route("/{token}" + path, site.guard(endpoint), methods=["GET"])
        for path, endpoint in routes.items()
    ]
    if undo is not None:
        listed.append(Route("/{token}/api/undo", site.guard(site.undo), methods=["POST"]))
    return Starlette(routes=listed, lifespan=lifespan)


class _Site:
    def __init__(
        self,
        sessions: FollowedSessions,
        *,
        token: str,
        port: int,
        undo: Undo | None = None,
    ) -> None:
        self._sessions, self._feed, self._undo = sessions, Feed(), undo
        self._token = token
        self._hosts = {f"{LOOPBACK}:{port}", f"localhost:{port}"}

    def guard(self, endpoint: _Endpoint) -> _Endpoint:
        async def check(request: Request) -> Response:
            if refusal := self._refusal(request):
                response: Response = refusal
            else:
                try:
                    response = await endpoint(request)
                except (KeyError, LongholdError, OSError, ValueError) as error:
                    response = PlainTextResponse(str(error), 404)
            response.headers.update(HEADERS)
            return response

        return check

    def _refusal(self, request: Request) -> Response | None:
        headers = request.headers
        host = headers.get("host", "")
        if host not in self._hosts:
            return PlainTextResponse("use the address that `longhold serve` printed", 403)
        if find_foreign_page(headers.raw, f"http://{host}"):
            return PlainTextResponse("the request came from another page", 403)
        given = request.path_params["token"]
        if not secrets.compare_digest(given.encode(), self._token.encode()):
            return PlainTextResponse("not found", 404)
        return None

    async def page(self, request: Request) -> Response:
        rows = await run_in_threadpool(self._sessions.rows)
        page = await run_in_threadpool(
            render, rows, {}, mode="live", title="Sessions", can_undo=self._undo is not None
        )
        own = {"Content-Security-Policy": f"{policy(is_live=True)}; frame-ancestors 'none'"}
        return Response(page, media_type="text/html; charset=utf-8", headers=own)

    async def session(self, request: Request) -> Response:
        return _json(await run_in_threadpool(self._sessions.data, request.query_params["session"]))

    async def text(self, request: Request) -> Response:
        asked = request.query_params
        text = await run_in_threadpool(self._sessions.text, asked["session"], int(asked["n"]))
        return _json({"text": text})

    async def search(self, request: Request) -> Response:
        asked = request.query_params
        found = await run_in_threadpool(self._sessions.search, asked["session"], asked["words"])
        return _json({"numbers": found})

    async def undo(self, request: Request) -> Response:
        asked = request.query_params
        name = await run_in_threadpool(self._sessions.name, asked["session"])
        assert self._undo is not None, "the path exists"
        return _json({"said": await self._undo(name, int(asked["n"]))})

    async def events(self, request: Request) -> Response:
        return StreamingResponse(self._feed.subscribe(), media_type="text/event-stream")

    async def follow(self) -> None:
        known: Any = None
        while True:
            await asyncio.sleep(FOLLOW_SECONDS)
            if not self._feed.listeners:
                continue
            rows = await run_in_threadpool(self._sessions.rows)
            if rows != known:
                known = rows
                self._feed.publish("list", {"sessions": session_columns(rows)})
            for change in await run_in_threadpool(self._sessions.changes):
                self._feed.publish("session", change)


def _json(value: Any) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")


def serve(
    sessions: FollowedSessions, *, port: int, started: Callable[[str], None] = lambda address: None
) -> None:
    """Serve until interrupted. `started` gets the address, which includes the token."""
    with prepare(sessions, port) as (server, listener, address):
        started(address)
        server.run([listener])


@contextmanager
def prepare(
    sessions: FollowedSessions, port: int
) -> Iterator[tuple[uvicorn.Server, socket.socket, str]]:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((LOOPBACK, port))
            listener.listen()  # so that the address works when it is printed
        except OSError as error:
            raise ConfigError(
                f"port {port} cannot be used: {error.strerror}; --port 0 picks a free one"
            ) from None
        bound, token = listener.getsockname()[1], new_token()
        app = application(sessions, token=token, port=bound)
        config = uvicorn.Config(
            app, ws="none", access_log=False, log_level="critical", timeout_graceful_shutdown=1
        )
        yield uvicorn.Server(config), listener, f"http://{LOOPBACK}:{bound}/{token}/"
