"""Inject refusals and broken streams that a request header or a queue orders."""

from collections import deque
from dataclasses import dataclass
from typing import Literal, get_args

from longhold.core.request.billing.api_request import (
    ERROR_TYPES,
    ApiError,
    JsonObject,
    invalid_request,
)

StreamFault = Literal["cut", "stall", "error_event", "one_byte", "repeat", "end_early"]
STREAM_FAULTS: dict[str, StreamFault] = {kind: kind for kind in get_args(StreamFault)}
DEFAULT_RETRY_AFTER_SECONDS = 1.0  # default `retry-after` of a 429 response
DEFAULT_AFTER_EVENTS = 3  # after message_start and the first delta
MESSAGES = {
    400: "prompt is too long: more tokens than the maximum",
    429: "This request would exceed your organization's rate limit. Please try again later.",
    500: "Internal server error",
    504: "The request timed out.",
    529: "Overloaded",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedFault:
    status: int | None = None
    stream: StreamFault | None = None  # without streaming, only `cut`, `stall` and `one_byte` apply
    after_events: int = DEFAULT_AFTER_EVENTS
    retry_after_seconds: float | None = None

    @property
    def name(self) -> str:
        return str(self.status) if self.stream is None else self.stream

    def error(self) -> ApiError:
        status = self.status or 529
        retry = self.retry_after_seconds
        if retry is None and status == 429:
            retry = DEFAULT_RETRY_AFTER_SECONDS
        message = MESSAGES.get(status, ERROR_TYPES.get(status, "error"))
        return ApiError(status, message, retry_after_seconds=retry)


class Faults:
    """The queue of faults. A header of the request overrides it."""

    def __init__(self) -> None:
        self._queue: deque[InjectedFault | None] = deque()

    def clear(self) -> None:
        self._queue.clear()

    def take(self, header: str | None) -> InjectedFault | None:
        if header:
            return _parse_fault(header)
        return self._queue.popleft() if self._queue else None

    def plan(self, order: JsonObject) -> JsonObject:
        """Apply a control request with a `queue` of faults."""
        self._queue.extend([_parse_fault(str(item)) for item in order.get("queue") or ()])
        return {"queued": len(self._queue)}


def _parse_fault(order: str) -> InjectedFault | None:
    """Parse `429`, `429:2` (retry after 2 s), `cut:2` (after 2 events) or `none`."""
    kind, _, rest = order.partition(":")
    if kind == "none":
        return None
    if kind.isdigit() and int(kind) in ERROR_TYPES:
        return InjectedFault(status=int(kind), retry_after_seconds=float(rest) if rest else None)
    if kind in STREAM_FAULTS:
        return InjectedFault(
            stream=STREAM_FAULTS[kind], after_events=int(rest or DEFAULT_AFTER_EVENTS)
        )
    allowed = [str(status) for status in ERROR_TYPES] + list(STREAM_FAULTS)
    raise invalid_request(f"fault: {kind!r} is not one of {', '.join(allowed)}")
