"""Statistics of served requests, for `GET /simulator/stats`: recent requests, and totals."""

from collections import Counter, deque
from dataclasses import asdict, dataclass, field, fields

from longhold.core.models.prices import Cost
from longhold.core.request.billing.api_request import JsonObject
from longhold.core.request.billing.cache import CachePlan


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
