"""API endpoints that carry conversations, and the place of the messages in their requests."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from longhold.core.messages import Json, JsonObject
from longhold.core.models.capabilities import LONG_WINDOW, capabilities
from longhold.core.models.clients import DialectName

Upstream = Literal["anthropic", "openai"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiEndpoint:
    dialect: DialectName
    list_field: str
    system_field: str = ""
    ends: re.Pattern[bytes] | None = None
    """Matches a line of a stream's last event, or is None if the gateway does not read answers."""
    is_count: bool = False


def _last_event(line: bytes) -> re.Pattern[bytes]:
    return re.compile(line + rb"\r?\n")


_MESSAGES = ApiEndpoint(
    dialect="anthropic",
    list_field="messages",
    system_field="system",
    ends=_last_event(rb"event: message_stop"),
)
ENDPOINTS: Mapping[str, ApiEndpoint] = {
    "/v1/messages": _MESSAGES,
    "/v1/messages/count_tokens": replace(_MESSAGES, ends=None, is_count=True),
    "/v1/chat/completions": ApiEndpoint(
        dialect="openai", list_field="messages", ends=_last_event(rb"data: \[DONE\]")
    ),
    "/v1/responses": ApiEndpoint(
        dialect="responses",
        list_field="input",
        system_field="instructions",
        ends=_last_event(rb"event: response\.(?:completed|incomplete|failed)"),
    ),
}

MOST_BLOCKS = 10_000
"""The limit for messages and blocks of a managed request. A window of 1M tokens has 10,000 parts of
100 tokens. Planning twice as many delayed other clients by more than 100 ms."""
MOST_VALUES = 1_000_000
"""The limit for commas, and so for values. Decoding many more would delay other clients."""
MOST_QUOTES = 400_000
"""The limit for quotes around strings, with 20 strings for each block. Decoding holds the
interpreter's lock, so a request with a million keys delays every other client by a second."""


class TooManyBlocks(ValueError):
    """The request has more parts than the gateway manages."""


REMEMBERED_ELSEWHERE = ("previous_response_id", "conversation", "container", "mcp_servers")
"""Fields of requests whose list is incomplete, because the provider stores a part of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request that contains a whole conversation."""

    endpoint: ApiEndpoint
    body: JsonObject
    model: str
    """The model's name, with the long-window suffix if the client requests the long window."""
    messages: list[JsonObject]
    betas: tuple[str, ...] = ()

    @property
    def system(self) -> Json:
        return self.body.get(self.endpoint.system_field) if self.endpoint.system_field else None

    @property
    def tools(self) -> list[JsonObject]:
        return self.body.get("tools") or []

    @property
    def output_limit(self) -> int:
        for name in ("max_tokens", "max_completion_tokens", "max_output_tokens"):
            if isinstance(limit := self.body.get(name), int) and limit > 0:
                return limit
        return 0


def upstream_of(path: str, headers: Mapping[str, str]) -> Upstream:
    if path.startswith(("/v1/messages", "/v1/complete")) or "anthropic-version" in headers:
        return "anthropic"
    return "openai" if path.startswith("/v1/") else "anthropic"


def read_call(endpoint: ApiEndpoint, body: bytes, headers: Mapping[str, str]) -> Call | None:
    """Read a request, or return None if it has no whole conversation and must pass unchanged."""
    if body.count(b",") > MOST_VALUES:
        raise TooManyBlocks(f"it has over {MOST_VALUES:,} values")
    if body.count(b'"') - body.count(b'\\"') > MOST_QUOTES:  # an opening quote is never escaped
        raise TooManyBlocks(f"it has over {MOST_QUOTES // 2:,} strings")
    raw = msgspec.json.decode(body)
    if not isinstance(raw, dict) or any(raw.get(name) for name in REMEMBERED_ELSEWHERE):
        return None
    messages, model = raw.get(endpoint.list_field), raw.get("model")
    if not isinstance(messages, list) or not messages or not isinstance(model, str):
        return None
    if not all(isinstance(message, dict) for message in messages):
        return None
    parts = (raw.get("tools"), raw.get(endpoint.system_field), *map(_content, messages))
    if sum(map(_count_blocks, parts)) > MOST_BLOCKS:
        raise TooManyBlocks(f"it has over {MOST_BLOCKS:,} messages, blocks and tools")
    betas = tuple(name.strip() for name in headers.get("anthropic-beta", "").split(",") if name)
    if capabilities(model).long_window_beta in betas:
        model += LONG_WINDOW
    return Call(endpoint=endpoint, body=raw, model=model, messages=messages, betas=betas)


def _content(value: Json) -> Json:
    return value.get("content") if isinstance(value, dict) else None


def _count_blocks(part: Json) -> int:
    """Count the blocks of a message or of the tools, including blocks inside results."""
    if not isinstance(part, list):
        return 1
    inner = (_content(block) for block in part)
    return len(part) + sum(len(one) for one in inner if isinstance(one, list))
