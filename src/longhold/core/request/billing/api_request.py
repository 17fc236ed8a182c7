"""Parse a Messages API request, or raise the same 400 error as the API."""

import re
from dataclasses import dataclass
from typing import Any

import msgspec

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class ApiError(Exception):
    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.retry_after_seconds = retry_after_seconds

    @property
    def type(self) -> str:
        return ERROR_TYPES.get(self.status, "api_error")

    def body(self, request_id: str) -> dict[str, Any]:
        error: dict[str, Any] = {"type": self.type, "message": self.message}
        if self.code is not None:
            error["details"] = {"error_code": self.code}
        return {"type": "error", "error": error, "request_id": request_id}


def invalid_request(message: str, code: str | None = None) -> ApiError:
    return ApiError(400, message, code=code)


JsonObject = dict[str, Any]


class ApiMessage(msgspec.Struct, frozen=True):
    role: str
    content: str | list[JsonObject]
    clear_at: str | None = None
    output_config: JsonObject | None = None

    def blocks(self) -> list[JsonObject]:
        if isinstance(self.content, str):
            return [{"type": "text", "text": self.content}]
        return self.content


class ApiRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    model: str
    messages: list[ApiMessage]
    max_tokens: int | None = None
    system: str | list[JsonObject] | None = None
    tools: list[JsonObject] | None = None
    tool_choice: JsonObject | None = None
    thinking: JsonObject | None = None
    output_config: JsonObject | None = None
    output_format: JsonObject | None = None
    stop_sequences: list[str] | None = None
    stream: bool = False
    speed: str | None = None
    cache_control: JsonObject | None = None
    context_management: JsonObject | None = None
    compaction: JsonObject | None = None
    diagnostics: JsonObject | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    metadata: JsonObject | None = None
    service_tier: str | None = None
    inference_geo: str | None = None
    container: Any = None
    mcp_servers: list[JsonObject] | None = None
    fallbacks: Any = None
    thread: JsonObject | None = None
    user_profile_id: str | None = None

    def system_blocks(self) -> list[JsonObject]:
        if self.system is None or self.system == "":
            return []
        if isinstance(self.system, str):
            return [{"type": "text", "text": self.system}]
        return self.system


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    workspace: str = "default"
    version: str = "2026-10-21"
    betas: frozenset[str] = frozenset()


_decoder = msgspec.json.Decoder(ApiRequest)
_MISSING = re.compile(r"missing required field `(\w+)`(?: - at `\$(.*)`)?")
_UNKNOWN = re.compile(r"unknown field `(.+?)`")
_WRONG = re.compile(r"(Expected .+?) - at `\$(.*)`")


def parse_request(body: bytes) -> ApiRequest:
    try:
        return _decoder.decode(body)
    except msgspec.ValidationError as error:
        raise invalid_request(_describe(str(error))) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise invalid_request(f"The request body is not valid JSON: {error}") from error


def parse_object(body: bytes) -> JsonObject:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ApiError(400, f"The request body is not valid JSON: {error}") from error


def _describe(problem: str) -> str:
    if match := _MISSING.search(problem):
        return f"{_format_path(match.group(2) or '', match.group(1))}: Field required"
    if match := _UNKNOWN.search(problem):
        return f"{match.group(1)}: Extra inputs are not permitted"
    if match := _WRONG.search(problem):
        return f"{_format_path(match.group(2))}: {match.group(1).replace('Expected', 'Input should be')}"
    return problem


def _format_path(path: str, leaf: str = "") -> str:
    place = path.replace("[...]", "").strip(".")
    return ".".join(part for part in (place, leaf) if part)
