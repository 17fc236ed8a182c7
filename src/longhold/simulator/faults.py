"""Faults on demand: refusals and broken streams, from a request header, a queue, or a rate."""

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from longhold.core.request.billing.api_request import (
    ERROR_TYPES,
    ApiError,
    JsonObject,
    invalid_request,
)

StreamFault = Literal["cut", "stall", "error_event", "one_byte", "repeat", "end_early"]
STREAM_FAULTS: tuple[StreamFault, ...] = get_args(StreamFault)
DEFAULT_RETRY_AFTER_SECONDS = 1.0  # the default retry-after of a 429
DEFAULT_AFTER_EVENTS = 3  # after message_start and the first delta
MESSAGES = {
    429: "This request would exceed your organization's rate limit. Please try again later.",
    500: "Internal server error",
    504: "The request timed out.",
    529: "Overloaded",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedFault:
    status: int | None = None
    stream: StreamFault | None = None  # without streaming, only cut, stall and one_byte apply
    after_events: int = DEFAULT_AFTER_EVENTS
    retry_after_seconds: float | None = None
    message: str | None = None
    code: str | None = None

    @property
    def name(self) -> str:
        return str(self.status) if self.stream is None else self.stream

    def error(self) -> ApiError:
        status = self.status or 529
        retry = self.retry_after_seconds
        if retry is None and status == 429:
            retry = DEFAULT_RETRY_AFTER_SECONDS
        message = self.message or MESSAGES.get(status, ERROR_TYPES.get(status, "error"))
        return ApiError(status, message, code=self.code, retry_after_seconds=retry)


class Faults:
    """The queue and the rate. A header on the request overrides both."""

    def __init__(self) -> None:
        self._queue: deque[InjectedFault | None] = deque()
        self._random = random.Random(0)
        self.clear()

    def clear(self) -> None:
        self._queue.clear()
        self._rate = 0.0
        self._kinds: Sequence[InjectedFault] = ()

    def take(self, header: str | None) -> InjectedFault | None:
        if header:
            return _parse_fault(header)
        if self._queue:
            return self._queue.popleft()
        if self._kinds and self._random.random() < self._rate:
            return self._random.choice(self._kinds)
        return None

    def plan(self, order: JsonObject) -> JsonObject:
        """Apply a control request: `queue`, or `rate` with `seed` and `kinds`."""
        queue = [_parse_fault(item) for item in order.get("queue") or ()]
        kinds = [_parse_fault(item) for item in order.get("kinds") or ()]
        rate = float(order.get("rate", 0.0))
        if not 0.0 <= rate <= 1.0:
            raise invalid_request(f"rate: {rate!r} is not between 0 and 1")
        if rate and not any(kinds):
            raise invalid_request("kinds: a rate needs at least one kind of fault")
        self._queue.extend(queue)
        self._rate = rate
        self._kinds = [kind for kind in kinds if kind is not None]
        self._random = random.Random(int(order.get("seed", 0)))
        return {"queued": len(self._queue), "rate": self._rate}


def _parse_fault(order: object) -> InjectedFault | None:
    """Parse `429`, `cut:2`, an object with the fields, or `none` for no fault."""
    if isinstance(order, dict):
        fields: JsonObject = order
    else:
        name, _, rest = str(order).partition(":")
        detail = "retry_after_seconds" if name.isdigit() else "after_events"
        fields = {"kind": name, **({detail: rest} if rest else {})}
    kind = str(fields.get("kind", "none"))
    if kind == "none":
        return None
    if kind.isdigit() and int(kind) in ERROR_TYPES:
        retry = fields.get("retry_after_seconds")
        return InjectedFault(
            status=int(kind),
            retry_after_seconds=None if retry is None else float(retry),
            message=fields.get("message"),
            code=fields.get("code"),
        )
    if kind in STREAM_FAULTS:
        status = fields.get("status")
        return InjectedFault(
            stream=kind,
            after_events=int(fields.get("after_events", DEFAULT_AFTER_EVENTS)),
            status=None if status is None else int(status),
            message=fields.get("message"),
        )
    allowed = [str(status) for status in ERROR_TYPES] + list(STREAM_FAULTS)
    raise invalid_request(f"fault: {kind!r} is not one of {', '.join(allowed)}")
