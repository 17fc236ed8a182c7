"""The usage of a response in the API's fields, and the statistics of `GET /simulator/stats`."""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Literal

from longhold.core.models.prices import Cost, usage_cost
from longhold.core.request.billing.api_request import JsonObject
from longhold.core.request.billing.cache import CachePlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    kind: Literal["message", "compaction"]
    plan: CachePlan
    output_tokens: int = 0
    thinking_tokens: int = 0

    def to_json(self) -> JsonObject:
        return {"type": self.kind, **_prompt_json(self.plan), "output_tokens": self.output_tokens}


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledUsage:
    iterations: Sequence[Iteration]
    speed: str | None = None
    shows_iterations: bool = False
    shows_deleted: bool = False

    @property
    def message(self) -> Iteration:
        """The iteration in the top-level fields. It is empty if only a compaction ran."""
        last = self.iterations[-1]
        return last if last.kind == "message" else Iteration(kind="message", plan=CachePlan())

    def to_json(self, *, is_start: bool = False) -> JsonObject:
        """Render the usage. `is_start` is for `message_start`, with at most one output token."""
        message = self.message
        output = min(message.output_tokens, 1) if is_start else message.output_tokens
        prompt = _prompt_json(message.plan)
        fields = {**prompt, "output_tokens": output, "service_tier": "standard"}
        if message.thinking_tokens and not is_start:
            fields["output_tokens_details"] = {"thinking_tokens": message.thinking_tokens}
        if self.speed is not None:
            fields["speed"] = self.speed
        if self.shows_deleted:
            fields["cache_deleted_input_tokens"] = message.plan.deleted_tokens
        if self.shows_iterations and not is_start:
            fields["iterations"] = [iteration.to_json() for iteration in self.iterations]
        return fields

    def cost(self, model: str) -> Cost | None:
        parts = [usage_cost(model, i.plan.usage(i.output_tokens)) for i in self.iterations]
        known = [part for part in parts if part is not None]
        return sum(known, Cost()) if known else None


def _prompt_json(plan: CachePlan) -> JsonObject:
    return {
        "input_tokens": plan.uncached_tokens,
        "cache_creation_input_tokens": plan.write_5m_tokens + plan.write_1h_tokens,
        "cache_read_input_tokens": plan.read_tokens,
        "cache_creation": {
            "ephemeral_5m_input_tokens": plan.write_5m_tokens,
            "ephemeral_1h_input_tokens": plan.write_1h_tokens,
        },
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedRequest:
    endpoint: str
    model: str
    workspace: str
    at: float
    status: int
    stop_reason: str | None = None
    message_id: str | None = None
    plan: CachePlan = field(default_factory=CachePlan)
    output_tokens: int = 0
    compaction_input_tokens: int = 0
    compaction_output_tokens: int = 0
    cost: Cost | None = None
    fault: str | None = None


PROMPT = ("read_tokens", "write_5m_tokens", "write_1h_tokens", "uncached_tokens")
COUNTED = (*PROMPT, "output_tokens", "compaction_input_tokens", "compaction_output_tokens")


class Stats:
    def __init__(self, limit: int) -> None:
        self._recent: deque[JsonObject] = deque(maxlen=limit)
        self.clear()

    def clear(self) -> None:
        self._recent.clear()
        self._requests: Counter[str] = Counter()
        self._statuses: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()
        self._cost = Cost()
        self._unpriced = 0

    def add(self, record: ServedRequest) -> None:
        plain = _record_json(record)
        self._recent.append(plain)
        self._requests[record.endpoint] += 1
        self._statuses[str(record.status)] += 1
        for name in COUNTED:
            self._tokens[name] += plain[name]
        if record.cost is not None:
            self._cost += record.cost
        elif record.output_tokens:
            self._unpriced += 1

    def to_json(self) -> JsonObject:
        prompt = sum(self._tokens[name] for name in PROMPT)
        return {
            "totals": {
                "requests": sum(self._requests.values()),
                "by_endpoint": dict(self._requests),
                "by_status": dict(self._statuses),
                **{name: self._tokens[name] for name in COUNTED},
                "prompt_tokens": prompt,
                "cache_read_ratio": self._tokens["read_tokens"] / prompt if prompt else 0.0,
                "cost_usd": _cost_json(self._cost),
                "requests_without_price": self._unpriced,
            },
            "requests": list(self._recent),
        }


def _cost_json(cost: Cost) -> JsonObject:
    return {**asdict(cost), "total": cost.total}


def _record_json(record: ServedRequest) -> JsonObject:
    plain = {field.name: getattr(record, field.name) for field in fields(record)}
    plan, cost = plain.pop("plan"), plain.pop("cost")
    prompt = {name: getattr(plan, name) for name in (*PROMPT, "deleted_tokens")}
    return plain | prompt | {"cost_usd": _cost_json(cost) if cost else None}
