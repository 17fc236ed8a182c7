"""Plans a request, sends it upstream and relays the answer."""

import asyncio
import hmac
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass

import httpx2
import msgspec
from starlette.datastructures import Headers as HeaderView
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from longhold.core.http import (
    LOOPBACK,
    SIMULATED,
    Headers,
    find_foreign_host,
    find_foreign_page,
    is_loopback,
)
from longhold.core.messages.text import one_line
from longhold.core.settings import GatewaySettings
from longhold.gateway.answer import PassingAnswer
from longhold.gateway.endpoints import ENDPOINTS, ApiEndpoint, Upstream, upstream_of
from longhold.gateway.planner import Plan, Planner
from longhold.gateway.policy import GatewayPolicy, PolicyRequest, Verdict, judge
from longhold.gateway.tenants import OverBudget

OURS = b"x-longhold-"
TOKEN = "x-longhold-token"
"""A separate header, because `authorization` carries the provider's credential."""
SESSION = b"x-longhold-session"
PASSED = b"x-longhold-passed"
"""The response header with the reason why a request was passed unchanged."""

HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer "
    b"transfer-encoding upgrade".split()
)
LONGEST_REASON = 200


def _forward_headers(headers: Iterable[tuple[bytes, bytes]], *, is_plain: bool = False) -> Headers:
    """Return the headers for the provider. `is_plain` disables compression."""
    left = _select_end_to_end(headers, (b"host", b"content-length", b"expect"))
    if not is_plain:
        return left
    plain = [(name, value) for name, value in left if name != b"accept-encoding"]
    return [*plain, (b"accept-encoding", b"identity")]


def _make_reason_header(reason: str) -> tuple[bytes, bytes]:
    line = one_line(reason)[:LONGEST_REASON]
    return PASSED, "".join(c if " " <= c <= "~" else "?" for c in line).encode()


def _select_end_to_end(
    headers: Iterable[tuple[bytes, bytes]], without: tuple[bytes, ...] = ()
) -> Headers:
    listed = [(name.lower(), value) for name, value in headers]
    named = {
        part.strip().lower()
        for name, value in listed
        if name == b"connection"
        for part in value.split(b",")
    }
    gone = HOP_BY_HOP | named | {*without}
    return [
        (name, value) for name, value in listed if name not in gone and not name.startswith(OURS)
    ]


POOL_REQUESTS = 8


@dataclass(slots=True)
class _Pool:
    client: httpx2.AsyncClient
    in_flight: int = 0


class Connections:
    def __init__(self, build: Callable[[], httpx2.AsyncClient]) -> None:
        self._build = build
        self._pools: list[_Pool] = []

    @asynccontextmanager
    async def open(self, request: httpx2.Request) -> AsyncIterator[httpx2.Response]:
        """Send a request and yield the response once its headers have arrived, then close it."""
        pool = self._find_pool()
        pool.in_flight += 1
        try:
            response = await pool.client.send(request, stream=True)
            try:
                yield response
            finally:
                await response.aclose()
        finally:
            pool.in_flight -= 1

    async def close(self) -> None:
        for pool in self._pools:
            await pool.client.aclose()

    def _find_pool(self) -> _Pool:
        for pool in self._pools:
            if pool.in_flight < POOL_REQUESTS:
                return pool
        self._pools.append(_Pool(self._build()))
        return self._pools[-1]


UPSTREAMS: Mapping[Upstream, str] = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com",
}
FREE_METHODS = ("GET", "HEAD", "OPTIONS", "DELETE")
FILE_PATHS = ("/v1/files", "/v1/uploads", "/v1/audio")
FILE_BODIES = 16
"""How many times as long as other bodies a file may be. Providers accept 512 MB."""
REFUSED = (400, 413, 422)
"""Statuses by which a provider rejects a request as invalid."""


class GatewayRefusal(Exception):
    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind = status, kind


class Proxy:
    def __init__(
        self,
        planner: Planner,
        connections: Connections,
        settings: GatewaySettings,
        *,
        upstreams: Mapping[Upstream, str] = UPSTREAMS,
        token: str = "",
        plugin: GatewayPolicy | None = None,
    ) -> None:
        self._planner, self._connections, self._settings = planner, connections, settings
        self._upstreams, self._token, self._plugin = upstreams, token, plugin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            check_caller(request, self._token)
            await self._answer(request, send)
        except GatewayRefusal as refusal:
            await make_refusal(request.url.path, refusal)(scope, receive, send)
        except OverBudget as error:
            over = GatewayRefusal(402, "billing_error", str(error))
            await make_refusal(request.url.path, over)(scope, receive, send)
        except ClientDisconnect:
            return

    async def _answer(self, request: Request, send: Send) -> None:
        if request.headers.get("upgrade", "").lower() == "websocket":
            raise GatewayRefusal(
                426, "invalid_request_error", "WebSockets are not supported; use HTTP"
            )
        endpoint = ENDPOINTS.get(request.url.path) if request.method == "POST" else None
        # Only credentials that reach the provider identify the tenant.
        headers = HeaderView(raw=_forward_headers(request.scope["headers"]))
        if request.method not in FREE_METHODS:
            self._planner.check_budget(headers, is_counted=endpoint is not None)
        if endpoint is None:
            await self._pass(request, send)
            return
        given = b"".join([piece async for piece in self._body(request)])
        async with AsyncExitStack() as stack:
            async with watch_client(request.receive):  # because other requests may come first
                reserved = self._planner.reserve(endpoint, given, headers)
                await stack.enter_async_context(reserved)
            await self._manage(endpoint, request, given, headers, send)

    async def _manage(
        self, endpoint: ApiEndpoint, request: Request, given: bytes, headers: HeaderView, send: Send
    ) -> None:
        verdict = await self._judge(request, given, headers)
        if verdict.action == "refuse":
            raise GatewayRefusal(
                403, "permission_error", verdict.why or "the gateway's policy refuses this request"
            )
        if verdict.action == "manage":
            plan = await self._planner.plan(endpoint, given, headers)
        else:
            plan = self._planner.pass_through(given, headers, verdict.why)
        answer = PassingAnswer(endpoint.ends)
        try:
            async with (
                watch_client(request.receive),
                self._sent(request, given, plan) as (response, final),
            ):
                await self._relay(response, final, given, answer, send)
        except (ClientDisconnect, httpx2.TransportError, GatewayRefusal) as error:
            # The provider accepted the request but did not answer in time. It may still bill it.
            is_late = isinstance(error.__cause__, httpx2.ReadTimeout)
            if is_late or not isinstance(error, GatewayRefusal):
                await self._planner.pay_unfinished(plan, answer)
            raise
        finally:
            self._planner.end(plan)

    async def _judge(self, request: Request, given: bytes, headers: HeaderView) -> Verdict:
        path, tenant = request.url.path, self._planner.name_tenant(headers)
        asked = PolicyRequest(path=path, headers=request.headers, body=given, tenant=tenant)
        try:
            return await judge(self._settings, asked, self._plugin)
        except Exception as error:  # noqa: BLE001 - the client's request passes unchanged
            self._planner.count_failure(f"policy: {type(error).__name__}")
            return Verdict("pass", "the gateway's policy failed")

    async def _pass(self, request: Request, send: Send) -> None:
        has_body = "content-length" in request.headers or "transfer-encoding" in request.headers
        is_file = request.url.path.startswith(FILE_PATHS)
        body = self._body(request, FILE_BODIES if is_file else 1) if has_body else b""
        async with self._send(request, body) as response, watch_client(request.receive):
            await _relay(response, response.aiter_raw(), send)

    @asynccontextmanager
    async def _sent(
        self, request: Request, given: bytes, plan: Plan
    ) -> AsyncIterator[tuple[httpx2.Response, Plan]]:
        """Send a plan. If the provider rejects a changed request, send the client's own bytes."""
        async with self._send(request, plan.body, is_plain=True) as response:
            if response.status_code not in REFUSED or plan.body is given:
                yield response, plan
                return
        plan = self._planner.fall_back(plan, given, response.status_code)
        async with self._send(request, given) as response:
            yield response, plan

    async def _relay(
        self, response: httpx2.Response, plan: Plan, given: bytes, answer: PassingAnswer, send: Send
    ) -> None:
        """Relay an answer. The answer is logged before the client can react to its end."""
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        is_read = response.status_code == 200 and answer.begin(
            is_stream=is_stream, is_simulated=SIMULATED in response.headers
        )
        if not is_read:
            answer.finish()

        async def chunks() -> AsyncGenerator[bytes, None]:
            async for chunk in response.aiter_raw():
                if is_read and answer.feed(chunk):
                    await self._planner.record_answer(plan, given, answer)
                if is_stream or not is_read:
                    yield chunk
            if is_read and not answer.is_recorded:
                if is_stream and not answer.feed(b"\n\n"):
                    await self._planner.pay_unfinished(plan, answer)
                else:
                    await self._planner.record_answer(plan, given, answer)
            if is_read and not is_stream:
                yield answer.whole()

        more: Headers = []
        if plan.conversation is not None:
            more.append((SESSION, plan.conversation.id.encode()))
        if plan.reason:
            more.append(_make_reason_header(plan.reason))
        await _relay(response, chunks(), send, more)

    async def _body(self, request: Request, times: int = 1) -> AsyncIterator[bytes]:
        """Yield a body of at most `times` the size limit. The time limit is per `body_bytes`."""
        most, seconds = self._settings.body_bytes, self._settings.body_seconds
        read, pieces = 0, aiter(request.stream())
        due = time.monotonic() + seconds
        while True:
            try:
                async with asyncio.timeout(due - time.monotonic()):
                    piece = await anext(pieces)
            except StopAsyncIteration:
                return
            except TimeoutError:
                message = f"the request did not arrive within {seconds:g} seconds"
                raise GatewayRefusal(408, "timeout_error", message) from None
            if read // most < (read + len(piece)) // most:
                due = time.monotonic() + seconds
            read += len(piece)
            if read > most * times:
                message = f"the request is over {most * times:,} bytes"
                raise GatewayRefusal(413, "request_too_large", message)
            yield piece

    @asynccontextmanager
    async def _send(
        self, request: Request, body: bytes | AsyncIterator[bytes], *, is_plain: bool = False
    ) -> AsyncIterator[httpx2.Response]:
        base = self._upstreams[upstream_of(request.url.path, request.headers)].rstrip("/")
        path = request.scope.get("raw_path") or request.url.path.encode()
        query = request.scope["query_string"]
        url = base + path.decode("latin-1") + (f"?{query.decode('latin-1')}" if query else "")
        headers = _forward_headers(request.scope["headers"], is_plain=is_plain)
        async with AsyncExitStack() as stack:
            try:
                out = httpx2.Request(request.method, url, headers=headers, content=body or None)
                response = await stack.enter_async_context(self._connections.open(out))
            except (httpx2.TransportError, httpx2.InvalidURL) as error:
                why = str(error) or type(error).__name__
                where = re.sub(r"//[^/@]*@", "//", base)  # without a password
                message = f"{where} cannot be reached: {why}"
                raise GatewayRefusal(502, "api_error", message) from error
            yield response


@asynccontextmanager
async def watch_client(receive: Receive) -> AsyncIterator[None]:
    """Cancel the block when the client disconnects, so that the provider stops generating."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(None) as until_gone:

            async def await_disconnect() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                until_gone.reschedule(loop.time())

            waiting = loop.create_task(await_disconnect())
            try:
                yield
            finally:
                waiting.cancel()
    except TimeoutError:
        if not until_gone.expired():
            raise
        raise ClientDisconnect from None


async def _relay(
    response: httpx2.Response,
    chunks: AsyncGenerator[bytes, None],
    send: Send,
    more: Sequence[tuple[bytes, bytes]] = (),
) -> None:
    """Relay status, headers (including repeated ones) and each chunk as it arrives."""
    headers = [*_select_end_to_end(response.headers.raw), *more]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    async with aclosing(chunks):
        async for chunk in chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def check_caller(request: Request, token: str) -> None:
    """Check the token. Without a token, check the host and origin, to stop web pages."""
    if token:
        given = request.headers.get(TOKEN, "")
        if not hmac.compare_digest(given.encode(), token.encode()):
            raise GatewayRefusal(
                401, "authentication_error", f"send the gateway's token as {TOKEN}"
            )
        return
    server = request.scope.get("server")
    bound = str(server[0]) if server else LOOPBACK
    if is_loopback(bound) and (name := find_foreign_host(request.headers.raw)):
        message = f"this server is not {name!r}; use the address that it printed at its start"
        raise GatewayRefusal(403, "permission_error", message)
    if page := find_foreign_page(request.headers.raw):
        raise GatewayRefusal(403, "permission_error", f"the web page {page!r} sent this request")


def make_refusal(path: str, refusal: GatewayRefusal) -> Response:
    said = f"longhold gateway: {refusal}"
    error = {"type": refusal.kind, "message": said}
    is_openai = path.startswith(("/v1/chat/", "/v1/responses"))
    body = {"error": error} if is_openai else {"type": "error", "error": error}
    response = Response(msgspec.json.encode(body), refusal.status, media_type="application/json")
    name, value = _make_reason_header(str(refusal))
    response.headers[name.decode()] = value.decode()
    return response
