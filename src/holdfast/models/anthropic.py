"""Claude, and other servers of the Messages API, through the official SDK.

A request goes through the SDK's own `create`, so the bytes on the wire are the SDK's; the answer
is read as raw JSON events, so that what the SDK's types do not know survives. `translate` says
which exception means what, `assemble` makes blocks of events.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.errors import AuthenticationFailed, ModelError, RequestRejected, StreamBroken
from holdfast.messages import Json, JsonObject
from holdfast.models.assemble import Assembly
from holdfast.models.connection import (
    CONNECT_SECONDS,
    DRAIN_SECONDS,
    NO_KEY,
    SdkModel,
    check_is_stream,
    is_loopback,
    load_extra,
)
from holdfast.models.protocol import Event, Model, Request
from holdfast.models.translate import explain, read_fault, translated

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

PREFIXES = ("anthropic/", "simulated/", "local/")
"""Parts of a name that say which server of the Messages API to ask."""

_COUNTED = frozenset(
    {"messages", "model", "cache_control", "compaction", "context_management", "mcp_servers"}
    | {"output_config", "speed", "system", "thinking", "tool_choice", "tools"}
)
"""What `count_tokens` takes of a request; the rest is about the answer."""


class AnthropicModel(SdkModel):
    async def stream(self, request: Request) -> AsyncIterator[Event]:
        assembly: Assembly | None = None
        with translated(lambda: assembly is not None and assembly.has_begun):
            response = await self._send(request)
            assembly = Assembly(response.headers.get("request-id", ""))
            events = _events(response)
            try:
                async for raw in events:
                    if raw.get("type") == "error":
                        raise _reported(raw, response, has_begun=assembly.has_begun)
                    if raw.get("type") == "message_stop":
                        await _drain(events)
                    for event in assembly.feed(raw):
                        yield event
                for event in assembly.end():
                    yield event
            finally:
                await response.aclose()

    async def count(self, request: Request) -> int | None:
        wanted = {key: value for key, value in request.kwargs.items() if key in _COUNTED}
        endpoint, kwargs = self._route(Request(kwargs=wanted, betas=request.betas), "count_tokens")
        with translated():
            counted = await endpoint(**kwargs)
        return int(counted.input_tokens)

    async def _send(self, request: Request) -> Any:
        endpoint, kwargs = self._route(request, "create")
        stream = await endpoint(**kwargs, stream=True)
        try:
            check_is_stream(stream.response.headers)
        except RequestRejected:
            await stream.close()
            raise
        return stream.response

    def _route(self, request: Request, method: str) -> tuple[Any, JsonObject]:
        """Choose the SDK's method; fields it has no parameter for go into `extra_body`."""
        space = self._client.beta.messages if request.betas else self._client.messages
        endpoint = getattr(space, method)
        known = inspect.signature(endpoint).parameters
        kwargs = {key: value for key, value in request.kwargs.items() if key in known}
        beside = {key: value for key, value in request.kwargs.items() if key not in known}
        if beside:
            kwargs["extra_body"] = {**kwargs.get("extra_body", {}), **beside}
        if request.betas:
            kwargs["betas"] = list(request.betas)
        return endpoint, kwargs | {"model": wire_name(kwargs["model"])}

    def _connect(
        self, base_url: str | None, api_key: str | None, timeout_seconds: float
    ) -> "AsyncAnthropic":
        sdk = load_extra("anthropic", extra="anthropic")
        with translated():
            client: AsyncAnthropic = sdk.AsyncAnthropic(
                base_url=base_url,
                api_key=api_key,
                max_retries=0,
                timeout=sdk.Timeout(timeout_seconds, connect=CONNECT_SECONDS),
            )
        if client.api_key is None and client.auth_token is None and client.credentials is None:
            if not is_loopback(str(client.base_url)):
                raise AuthenticationFailed("no key for Claude; set ANTHROPIC_API_KEY")
            return client.with_options(api_key=NO_KEY)
        return client


def wire_name(model: str) -> str:
    """Remove what a provider does not know of a name: our prefixes and `[1m]`."""
    for prefix in PREFIXES:
        model = model.removeprefix(prefix)
    return model.removesuffix("[1m]")


def _reported(raw: JsonObject, response: Any, *, has_begun: bool) -> ModelError:
    request_id = response.headers.get("request-id", "")
    return explain(
        read_fault(raw, headers=response.headers, request_id=request_id), has_begun=has_begun
    )


async def _events(response: Any) -> AsyncIterator[JsonObject]:
    async for sse in load_extra("anthropic", extra="anthropic").AsyncStream.raw_events(response):
        if not sse.data:
            continue
        try:
            event: Json = msgspec.json.decode(sse.data)
        except msgspec.DecodeError as error:
            raise StreamBroken(f"an event is not JSON ({error}); send the request again") from error
        if sse.event == "error" and isinstance(event, dict):
            event.setdefault("type", "error")
        yield event if isinstance(event, dict) else {"type": "unknown"}


async def _drain(events: AsyncIterator[JsonObject]) -> None:
    """Read the response to its end, so that its connection can be reused."""
    with suppress(TimeoutError, ModelError), translated(lambda: True):
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in events:
                pass


if TYPE_CHECKING:

    def _conforms(model: AnthropicModel) -> Model:
        return model
