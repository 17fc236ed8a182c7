"""Claude and other Messages API servers. The official SDK sends requests and returns raw JSON."""

import asyncio
import inspect
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import msgspec

from longhold.core.http import is_loopback
from longhold.core.messages import Json, JsonObject
from longhold.core.messages.usage import count_of
from longhold.core.models.assemble import Assembly
from longhold.core.models.capabilities import without_window
from longhold.core.models.connection import NO_KEY, READ_SECONDS, SdkModel, ThreadedModel
from longhold.core.models.protocol import Request
from longhold.core.models.translate import explain, read_fault, translate_errors
from longhold.core.settings.installation import load_extra
from longhold.core.settings.reading import ANTHROPIC, saved_key
from longhold.errors import AuthenticationFailed, ModelError, StreamBroken

ANTHROPIC_HOST = "api.anthropic.com"  # a saved key is sent only to this host
NO_CLAUDE_KEY = (
    "no key for Claude; set ANTHROPIC_API_KEY, or run `longhold chat` to choose another way to "
    "connect (--offline needs none, `longhold doctor` lists the keys it finds)"
)
PREFIXES = ("anthropic/", "simulated/")

_COUNTED = frozenset(
    {"messages", "model", "cache_control", "compaction", "context_management", "mcp_servers"}
    | {"output_config", "speed", "system", "thinking", "tool_choice", "tools"}
)
"""Request fields that `count_tokens` accepts. The other fields concern the answer."""


DRAIN_SECONDS = 0.1  # how long to read after the last event, because the stream may stay open


class AnthropicModel(SdkModel):
    PACKAGE, CLIENT, ASSEMBLY = "anthropic", "AsyncAnthropic", Assembly
    REQUEST_ID = "request-id"

    async def count(self, request: Request) -> int | None:
        wanted = {key: value for key, value in request.kwargs.items() if key in _COUNTED}
        endpoint, kwargs = self._route(Request(kwargs=wanted, betas=request.betas), "count_tokens")
        with translate_errors():
            counted = await endpoint(**kwargs)
        return count_of(counted.input_tokens) or None

    def _connect(self, base_url: str | None, api_key: str | None, timeout_seconds: float) -> Any:
        client = super()._connect(base_url, api_key, timeout_seconds)
        if client.api_key is None and client.auth_token is None and client.credentials is None:
            host = urlsplit(str(client.base_url)).hostname
            if is_loopback(host or ""):
                return client.with_options(api_key=NO_KEY)
            if host == ANTHROPIC_HOST and (saved := saved_key(ANTHROPIC)):
                return client.with_options(api_key=saved)
            raise AuthenticationFailed(NO_CLAUDE_KEY)
        return client

    def _route(self, request: Request, method: str = "create") -> tuple[Any, JsonObject]:
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

    async def _events(self, stream: Any, assembly: Assembly) -> AsyncIterator[JsonObject]:
        headers = stream.response.headers
        lines = load_extra("anthropic", extra="anthropic").AsyncStream.raw_events(stream.response)
        async for line in lines:
            if not line.data:
                continue
            event = _decode_event(line.data)
            kind = event.get("type", line.event)
            if kind == "error":
                fault = read_fault(event, headers=headers, request_id=assembly.request_id)
                raise explain(fault, has_begun=assembly.has_begun)
            if kind == "message_stop":
                await _drain(lines)
            yield event


class ThreadedAnthropic(ThreadedModel, AnthropicModel):
    def _route(self, request: Request, method: str = "create") -> tuple[Any, JsonObject]:
        """Set a timeout, because without one the SDK requires streaming."""
        endpoint, kwargs = AnthropicModel._route(self, request, method)
        return endpoint, kwargs | {"timeout": READ_SECONDS}


def wire_name(model: str) -> str:
    """Remove Longhold's prefixes and `[1m]`, which providers do not know, from a model's name."""
    for prefix in PREFIXES:
        model = model.removeprefix(prefix)
    return without_window(model)


def _decode_event(data: str) -> JsonObject:
    try:
        event: Json = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise StreamBroken(f"an event is not JSON ({error}); send the request again") from error
    return event if isinstance(event, dict) else {"type": "unknown"}


async def _drain(lines: AsyncIterator[object]) -> None:
    """Read the response to its end, so that its connection can be reused."""
    with suppress(TimeoutError, ModelError), translate_errors(lambda: True):
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in lines:
                pass
