"""Convert providers' failures to Longhold's errors. No other module knows their wording."""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from longhold.core.messages import Json
from longhold.core.messages.usage import count_of, fields_of
from longhold.core.models.protocol import Reply
from longhold.errors import (
    AuthenticationFailed,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    PromptTooLong,
    RequestRejected,
    StreamBroken,
)

_STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "exceed_context_size_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "conflict_error": 409,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "tokens": 429,
    "requests": 429,
    "api_error": 500,
    "server_error": 500,
    "unavailable_error": 503,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""HTTP status codes for the types of error events."""

_PROBLEMS = {
    429: "rate limited",
    503: "overloaded",
    529: "overloaded",
    408: "timed out at the provider",
    504: "timed out at the provider",
}

_TRANSIENT_CODES = frozenset({"compaction_unavailable", "thread_continue_in_flight"})
_ACCOUNT_CODES = frozenset({"insufficient_quota", "enforced_spend_limit_reached"})
_REFUSAL_CODES = frozenset({"content_filter", "content_policy_violation"})
_REFUSAL_WORDS = re.compile(
    r"blocked by (?:our )?content filtering|content management policy", re.I
)

_NO_CREDENTIALS = frozenset({"CredentialsError", "OAuthError", "SubjectTokenProviderError"})

_TOO_LONG_CODES = frozenset(
    {"context_length_exceeded", "exceed_context_size_error", "request_too_large"}
)
_TOO_LONG_WORDS = (
    re.compile(r"prompt is too long(?:: (?P<needed>\d+) tokens > (?P<allowed>\d+))?", re.I),
    re.compile(r"exceed context limit: (?P<needed>\d+) \+ (?P<more>\d+) > (?P<allowed>\d+)", re.I),
    re.compile(
        r"maximum context length is (?P<allowed>\d+) tokens"
        r"(?:.*?(?:resulted in|you requested|request has|contains at least) (?P<needed>\d+))?",
        re.I | re.S,
    ),
    re.compile(
        r"request \((?P<needed>\d+) tokens\) exceeds the available context size \((?P<allowed>\d+)",
        re.I,
    ),
    re.compile(r"prompt \(length (?P<needed>\d+)\) is longer than .*?(?P<allowed>\d+)", re.I),
    re.compile(r"input token count \((?P<needed>\d+)\) exceeds .*?\((?P<allowed>\d+)\)", re.I),
    re.compile(
        r"exceeds the available context size|exceeds the context (?:window|length)"
        r"|input is too long for requested model|exceeded max context length",
        re.I,
    ),
)
"""Error texts of Anthropic, OpenAI, vLLM, llama.cpp, Gemini's chat endpoint, Bedrock and Ollama."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderFault:
    status: int | None = None
    kind: str = ""
    code: str = ""
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, Json] = field(default_factory=dict)
    request_id: str = ""


@contextmanager
def translate_errors(has_begun: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Convert SDK exceptions. `has_begun` returns whether part of an answer has arrived."""
    try:
        yield
    except Exception as error:
        ours = translate(error, has_begun=has_begun())
        if ours is None or ours is error:
            raise
        raise ours from error


def translate(error: BaseException, *, has_begun: bool = False) -> ModelError | None:
    if isinstance(error, ModelError):
        return error
    names = {kind.__name__ for kind in type(error).__mro__}
    if isinstance(error, UnicodeDecodeError | json.JSONDecodeError | RecursionError):
        return StreamBroken(f"the provider sent an unreadable answer ({error}); send it again")
    # OpenAI's SDK raises its base class if no key is set.
    if names & _NO_CREDENTIALS or type(error).__name__ == "OpenAIError":
        return AuthenticationFailed(f"no usable credentials: {error}; set the provider's key")
    if names & {"APIConnectionError", "RequestError"}:
        is_timeout = bool(names & {"APITimeoutError", "TimeoutException"})
        return _connection_error(error, is_timeout=is_timeout, has_begun=has_begun)
    if "APIError" in names:
        return explain(_fault_of(error), has_begun=has_begun)
    return None


def explain(fault: ProviderFault, *, has_begun: bool = False) -> ModelError:
    """Interpret a provider's failure. A transient failure during an answer breaks the stream."""
    meaning = _meaning(fault)
    if has_begun and isinstance(meaning, ModelUnavailable):
        broken = StreamBroken(
            f"the answer stopped midway: {meaning}",
            status=meaning.status,
            request_id=fault.request_id,
        )
        broken.__cause__ = meaning
        return broken
    return meaning


def refusal(reply: Reply) -> ModelRefused | None:
    """Return the error if the model declined to answer. Such an answer is billed."""
    if reply.stop_reason != "refusal":
        return None
    details = fields_of(reply.extra.get("stop_details"))
    reason = details.get("explanation") or details.get("category") or "no reason given"
    return ModelRefused(
        f"the model declined to answer ({reason}); change the request", request_id=reply.request_id
    )


def _meaning(fault: ProviderFault) -> ModelError:
    status = fault.status or _STATUS_OF_TYPE.get(fault.kind) or _STATUS_OF_TYPE.get(fault.code)
    said = fault.message or fault.kind or f"status {status}"
    if too_long := _find_too_long(fault, status, said):
        return too_long
    may_pass = status is None or status in {408, 409, 429} or status >= 500
    if fault.code in _TRANSIENT_CODES or (may_pass and fault.code not in _ACCOUNT_CODES):
        problem = _PROBLEMS.get(status or 0, "the provider failed")
        return ModelUnavailable(
            f"{problem}: {said}; try again later",
            retry_after_seconds=retry_after_seconds(fault.headers),
            status=status,
            request_id=fault.request_id,
        )
    kind, text = _verdict(fault, status, said)
    return kind(text, status=status, request_id=fault.request_id)


def _verdict(fault: ProviderFault, status: int | None, said: str) -> tuple[type[ModelError], str]:
    if fault.code in _REFUSAL_CODES or _REFUSAL_WORDS.search(fault.message):
        return ModelRefused, f"the provider blocked this: {said}; change the request"
    if status in {401, 402, 403} or fault.code in _ACCOUNT_CODES:
        return AuthenticationFailed, f"the provider refused the key: {said}; check the key"
    return RequestRejected, f"the provider rejected the request: {said}; correct it"


def _find_too_long(fault: ProviderFault, status: int | None, said: str) -> PromptTooLong | None:
    found = next((hit for words in _TOO_LONG_WORDS if (hit := words.search(fault.message))), None)
    is_declared = fault.code in _TOO_LONG_CODES or fault.kind in _TOO_LONG_CODES or status == 413
    if not is_declared and (found is None or status not in {None, 400, 422, 500}):
        return None
    numbers = {key: count_of(value) for key, value in (found.groupdict() if found else {}).items()}
    needed = numbers.get("needed") or count_of(fault.details.get("n_prompt_tokens"))
    needed += numbers.get("more", 0) if needed else 0
    says_so = "too long" in said.lower()
    return PromptTooLong(
        f"{said if says_so else f'the prompt is too long: {said}'}; compact the conversation",
        needed_tokens=needed or None,
        allowed_tokens=numbers.get("allowed") or count_of(fault.details.get("n_ctx")) or None,
        status=status,
        request_id=fault.request_id,
    )


def retry_after_seconds(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Read the wait that the provider requests, given in milliseconds, in seconds or as a date."""
    known = {name.lower(): value for name, value in headers.items()}
    try:
        if "retry-after-ms" in known:
            return max(0.0, float(known["retry-after-ms"]) / 1000)
        return max(0.0, float(known["retry-after"]))
    except KeyError:
        return None
    except ValueError:
        # This is imported here because dates are rare and the import is slow.
        from email.utils import parsedate_to_datetime

        with suppress(ValueError, TypeError, LookupError, OverflowError):
            until = parsedate_to_datetime(known.get("retry-after", "")).timestamp()
            return max(0.0, until - (time.time() if now is None else now))
        return None


def _connection_error(error: BaseException, *, is_timeout: bool, has_begun: bool) -> ModelError:
    reason = str(error.__cause__ or error) or type(error).__name__
    what = "the provider went silent" if is_timeout else f"the connection failed ({reason})"
    if has_begun:
        return StreamBroken(f"{what} midway; send the request again")
    return ModelUnavailable(f"{what}; check the address and the network")


def _fault_of(error: BaseException) -> ProviderFault:
    response = getattr(error, "response", None)
    status = getattr(error, "status_code", None)
    fault = read_fault(
        getattr(error, "body", None),
        # An error inside a stream has the status of the stream, which is 200.
        status=status if status and status >= 400 else None,
        headers=dict(response.headers) if response is not None else {},
        request_id=getattr(error, "request_id", None) or "",
    )
    return fault if fault.message else replace(fault, message=str(error))


def read_fault(
    body: Json,
    *,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
    request_id: str = "",
) -> ProviderFault:
    whole = body if isinstance(body, dict) else {}
    inner = whole.get("error", whole)
    if not isinstance(inner, dict):
        inner = {"message": str(inner)}
    nested = inner.get("details") if isinstance(inner.get("details"), dict) else {}
    code = (nested or {}).get("error_code") or inner.get("code")
    if status is None and isinstance(code, int) and 400 <= code < 600:
        status = code
    return ProviderFault(
        status=status,
        kind=str(inner.get("type") or ""),
        code=str(code or ""),
        message=str(inner.get("message") or (body if isinstance(body, str) else "")),
        headers=headers or {},
        details=inner,
        request_id=request_id or str(whole.get("request_id") or ""),
    )
