"""The HTTP server: routes, authentication, faults and error bodies."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from typing import NamedTuple

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from longhold.core.http import (
    LOOPBACK,
    SIMULATED,
    find_foreign_host,
    find_foreign_page,
    is_loopback,
    listen,
    serve_in_thread,
    server_of,
)
from longhold.core.request.billing.api_request import (
    ApiError,
    Caller,
    JsonObject,
    invalid_request,
    parse_object,
    parse_request,
)
from longhold.core.request.billing.cache import SimulatorClock
from longhold.simulator.brains import Brain, EchoBrain
from longhold.simulator.faults import InjectedFault
from longhold.simulator.finishing import new_id
from longhold.simulator.model_list import DEFAULT_PAGE, find_model, model_list
from longhold.simulator.openai import ChatEndpoint, ChatReply, openai_error, with_error_event
from longhold.simulator.responses import create_response
from longhold.simulator.settings import SimulatorSettings
from longhold.simulator.simulation import ServedOutcome, Simulation
from longhold.simulator.stats import ServedRequest
from longhold.simulator.stream import StreamEvent, message_events
from longhold.simulator.wire import WireResponse


def _control(simulation: Simulation, action: str, order: JsonObject) -> JsonObject:
    match action:
        case "stats":
            return simulation.stats.to_json()
        case "clock":
            if "advance_seconds" in order:
                _advance(simulation, order["advance_seconds"])
            return {"now": simulation.clock.now()}
        case "faults":
            return simulation.faults.plan(order)
        case "reset":
            simulation.reset()
            return {"reset": True}
        case _:
            raise ApiError(404, f"no control action {action!r}")


def _advance(simulation: Simulation, seconds: object) -> None:
    try:
        simulation.clock.advance(float(str(seconds)))
    except ValueError as error:
        raise invalid_request(f"advance_seconds: {error}") from error


DEFAULT_PORT = 8787  # usually free
JSON_TYPE = b"application/json"
STREAM_TYPE = b"text/event-stream; charset=utf-8"
CHANGING = ("clock", "faults", "reset")  # need POST, so that opening a URL cannot trigger them
FAULT_HEADER = "x-simulator-fault"
ADVANCE_HEADER = "x-simulator-advance-seconds"

MAX_BODY_BYTES = 32 * 1024 * 1024  # limit of the Messages API, above which it answers 413
CHAT_PATHS = ("/v1/chat/completions", "/v1/responses")

Endpoint = Callable[[HttpRequest], Awaitable[ASGIApp]]


class RunningServer(NamedTuple):
    url: str
    simulation: Simulation


def application(simulation: Simulation) -> Starlette:
    server = _Server(simulation)
    routes: tuple[tuple[str, Endpoint, list[str]], ...] = (
        ("/v1/messages", server.messages, ["POST"]),
        ("/v1/messages/count_tokens", server.count_tokens, ["POST"]),
        ("/v1/chat/completions", server.chat, ["POST"]),
        ("/v1/responses", server.chat, ["POST"]),
        ("/v1/models", server.models, ["GET"]),
        ("/v1/models/{name:path}", server.model, ["GET"]),
        ("/simulator/{action}", server.control, ["GET", "POST"]),
        ("/{path:path}", server.answer_unknown, ["GET", "POST"]),
    )
    return Starlette(
        routes=[
            Route(
                path, server.guard_endpoint(endpoint, is_chat=path in CHAT_PATHS), methods=methods
            )
            for path, endpoint, methods in routes
        ]
    )


def serve(
    host: str = LOOPBACK,
    port: int = DEFAULT_PORT,
    brain: Brain | None = None,
    settings: SimulatorSettings | None = None,
    *,
    started: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve until interrupted. Call `started` with the address once the port is bound."""
    simulation = Simulation(brain or EchoBrain(), settings)
    with listen(host, port) as listener:
        started(f"http://{host}:{listener.getsockname()[1]}")
        server_of(application(simulation)).run([listener])


@contextmanager
def run_simulator(
    brain: Brain | None = None,
    settings: SimulatorSettings | None = None,
    clock: SimulatorClock | None = None,
) -> Iterator[RunningServer]:
    """Serve from a thread on a free loopback port until the block ends."""
    simulation = Simulation(brain or EchoBrain(), settings, clock)
    with serve_in_thread(server_of(application(simulation))) as url:
        yield RunningServer(url=url, simulation=simulation)


class _Server:
    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._chat = ChatEndpoint(simulation)

    def guard_endpoint(self, endpoint: Endpoint, *, is_chat: bool = False) -> Endpoint:
        async def guard(http: HttpRequest) -> ASGIApp:
            try:
                self._check_host(http)
                return await endpoint(http)
            except ApiError as error:
                return self._refusal(http, error, is_chat=is_chat)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                # The body has a wrong inner structure. The real API would name the field.
                problem = invalid_request(f"invalid request: {type(error).__name__}: {error}")
                return self._refusal(http, problem, is_chat=is_chat)

        return guard

    async def messages(self, http: HttpRequest) -> ASGIApp:
        fault = self._before(http)
        caller = self._caller(http)
        request = parse_request(await self._body(http))
        outcome = await self._simulation.create(request, caller)
        if self._simulation.settings.first_byte_delay_seconds:
            await asyncio.sleep(self._simulation.settings.first_byte_delay_seconds)
        chunks = (
            _stream_chunks(outcome, self._simulation.settings.delta_chars, fault)
            if request.stream
            else [msgspec.json.encode(outcome.message)]
        )
        begin = partial(self._begin, outcome, fault)
        return self._respond(chunks, begin, fault, is_stream=request.stream)

    async def count_tokens(self, http: HttpRequest) -> ASGIApp:
        self._before(http)
        caller = self._caller(http)
        return _json(self._simulation.count(parse_request(await self._body(http)), caller))

    async def chat(self, http: HttpRequest) -> ASGIApp:
        create: Callable[[JsonObject, Caller], Awaitable[ChatReply]] = self._chat.create
        if http.url.path.endswith("/responses"):
            create = partial(create_response, self._chat)
        fault = self._before(http)
        caller = self._caller(http, needs_version=False)
        reply = await create(parse_object(await self._body(http)), caller)
        chunks = reply.chunks
        if reply.is_stream and fault is not None and fault.stream == "error_event":
            chunks = with_error_event(chunks, fault)
        begin = partial(self._chat.begin, reply, fault)
        return self._respond(chunks, begin, fault, is_stream=reply.is_stream)

    async def models(self, http: HttpRequest) -> ASGIApp:
        self._caller(http, needs_version=False)
        limit = int(http.query_params.get("limit", DEFAULT_PAGE))
        return _json(model_list(limit, http.query_params.get("after_id")))

    async def model(self, http: HttpRequest) -> ASGIApp:
        self._caller(http, needs_version=False)
        return _json(find_model(http.path_params["name"], self._simulation.settings))

    async def control(self, http: HttpRequest) -> ASGIApp:
        action = http.path_params["action"]
        if http.method == "GET" and action in CHANGING:
            raise ApiError(405, f"{action} changes the simulator; use POST")
        body = await self._body(http)
        order = parse_object(body) if body else {}
        return _json(_control(self._simulation, action, order))

    async def answer_unknown(self, http: HttpRequest) -> ASGIApp:
        if http.path_params["path"] == "":
            return _json({"name": "longhold simulator"})
        if "upgrade" in http.headers:
            raise ApiError(426, "only HTTP is served here")
        raise ApiError(404, f"Not found: {http.url.path}")

    def _before(self, http: HttpRequest) -> InjectedFault | None:
        seconds = http.headers.get(ADVANCE_HEADER)
        if seconds is not None:
            _advance(self._simulation, seconds)
        fault = self._simulation.faults.take(http.headers.get(FAULT_HEADER))
        if fault is not None and fault.stream is None:
            raise fault.error()
        return fault

    async def _body(self, http: HttpRequest) -> bytes:
        body = bytearray()
        async for piece in http.stream():
            body += piece
            if len(body) > MAX_BODY_BYTES:
                raise ApiError(413, "Request exceeds the maximum size")
        return bytes(body)

    def _check_host(self, http: HttpRequest) -> None:
        """On loopback, refuse web pages, even if their host name resolves to loopback."""
        server = http.scope.get("server")
        bound = str(server[0]) if server else LOOPBACK
        if is_loopback(bound) and (name := find_foreign_host(http.headers.raw)):
            raise ApiError(
                403, f"this server is not {name!r}; use the address that it printed at its start"
            )
        if is_loopback(bound) and (page := find_foreign_page(http.headers.raw)):
            raise ApiError(403, f"a web page of {page!r} sent this request")

    def _caller(self, http: HttpRequest, *, needs_version: bool = True) -> Caller:
        """Identify the caller. The workspace is a hash of the key and the workspace id."""
        headers = http.headers
        bearer = headers.get("authorization", "").removeprefix("Bearer ").strip()
        key = headers.get("x-api-key") or bearer
        if not key:
            raise ApiError(401, "x-api-key header is required")
        version = headers.get("anthropic-version")
        if version is None and needs_version:
            raise invalid_request("anthropic-version: header is required")
        owner = f"{key}|{headers.get('anthropic-workspace-id', '')}"
        betas = ",".join(headers.getlist("anthropic-beta")).split(",")
        return Caller(
            workspace=blake2b(owner.encode(), digest_size=6).hexdigest(),
            version=version or "2026-10-21",
            betas=frozenset(beta.strip() for beta in betas if beta.strip()),
        )

    def _begin(self, outcome: ServedOutcome, fault: InjectedFault | None) -> None:
        self._simulation.begin(outcome)
        self._simulation.record(outcome, fault.name if fault else None)

    def _respond(
        self,
        chunks: list[bytes],
        begin: Callable[[], None],
        fault: InjectedFault | None,
        *,
        is_stream: bool,
    ) -> ASGIApp:
        return WireResponse(
            chunks,
            headers=[
                (b"content-type", STREAM_TYPE if is_stream else JSON_TYPE),
                (b"request-id", new_id("req_").encode()),
                (SIMULATED.encode(), b"1"),
            ],
            begin=begin,
            fault=fault,
            is_stream=is_stream,
            between_seconds=self._simulation.settings.between_events_seconds,
        )

    def _refusal(self, http: HttpRequest, error: ApiError, *, is_chat: bool) -> Response:
        request_id = new_id("req_")
        body = openai_error(error) if is_chat else error.body(request_id)
        headers = {"request-id": request_id}
        if error.retry_after_seconds is not None:
            headers["retry-after"] = f"{error.retry_after_seconds:g}"
        if http.url.path.startswith("/v1/"):
            self._simulation.stats.add(
                ServedRequest(
                    endpoint=http.url.path.removeprefix("/v1/"),
                    model="",
                    workspace="",
                    at=self._simulation.clock.now(),
                    status=error.status,
                    fault=error.type,
                )
            )
        return _json(body, error.status, headers)


def _stream_chunks(
    outcome: ServedOutcome, delta_chars: int, fault: InjectedFault | None
) -> list[bytes]:
    events = list(message_events(outcome, delta_chars))
    if fault is not None and fault.stream == "error_event":
        error = fault.error().body(new_id("req_"))
        events = [*events[: fault.after_events], StreamEvent("error", error)]
    return [event.encode() for event in events]


def _json(body: JsonObject, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    own = {"request-id": new_id("req_"), **(headers or {})}
    return Response(msgspec.json.encode(body), status, own, media_type="application/json")
