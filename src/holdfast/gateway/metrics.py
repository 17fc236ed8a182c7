"""What a gateway counts, as Prometheus reads it."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from holdfast.gateway.shadow import SessionBill

BUCKETS_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
PREFIX = "holdfast_gateway_"


@dataclass(slots=True)
class GatewayCounts:
    """Counted since the gateway was started."""

    requests: int = 0
    changed: int = 0
    """Sent otherwise than the client wrote them."""
    over_budget: int = 0
    plan_seconds: float = 0.0
    plans: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_SECONDS) + 1))
    """Requests by how long deciding about them took."""
    failures: dict[str, int] = field(default_factory=dict)

    def planned(self, seconds: float, *, is_changed: bool) -> None:
        self.requests += 1
        self.changed += is_changed
        self.plan_seconds += seconds
        self.plans[bisect_left(BUCKETS_SECONDS, seconds)] += 1

    def refused(self) -> None:
        self.over_budget += 1

    def failed(self, reason: str) -> None:
        self.failures[reason] = self.failures.get(reason, 0) + 1


def metrics_text(counts: GatewayCounts, total: SessionBill, open_sessions: int) -> str:
    """Write everything in the text format; names of sessions and reasons are not labels."""
    return "\n".join(_lines(counts, total, open_sessions)) + "\n"


def _lines(counts: GatewayCounts, total: SessionBill, open_sessions: int) -> Iterator[str]:
    yield from _metric("requests_total", "Requests with a conversation.", counts.requests)
    yield from _metric("changed_total", "Requests sent otherwise than written.", counts.changed)
    failures = sum(counts.failures.values())
    yield from _metric("failures_total", "Requests passed on as they were.", failures)
    yield from _metric("over_budget_total", "Requests refused by a budget.", counts.over_budget)
    yield from _metric("sessions_open", "Sessions in memory.", open_sessions, kind="gauge")
    yield from _metric("billed_usd_total", "What the provider billed.", total.billed_usd)
    why = "What it would have billed for the clients' own requests."
    yield from _metric("shadow_usd_total", why, total.shadow_usd)
    tokens = {"read": total.read_tokens, "other": total.prompt_tokens - total.read_tokens}
    yield from _family("prompt_tokens_total", "Prompt tokens, by the cache.", "cache", tokens)
    yield from _histogram(counts)


def _metric(name: str, why: str, value: float, kind: str = "counter") -> Iterable[str]:
    yield f"# HELP {PREFIX}{name} {why}"
    yield f"# TYPE {PREFIX}{name} {kind}"
    yield f"{PREFIX}{name} {value:.10g}"


def _family(name: str, why: str, label: str, values: Mapping[str, float]) -> Iterable[str]:
    yield f"# HELP {PREFIX}{name} {why}"
    yield f"# TYPE {PREFIX}{name} counter"
    for key, value in values.items():
        yield f'{PREFIX}{name}{{{label}="{key}"}} {value:.10g}'


def _histogram(counts: GatewayCounts) -> Iterable[str]:
    name = f"{PREFIX}plan_seconds"
    yield f"# HELP {name} Time taken to decide what to send."
    yield f"# TYPE {name} histogram"
    seen = 0
    for edge, count in zip((*BUCKETS_SECONDS, float("inf")), counts.plans, strict=True):
        seen += count
        label = "+Inf" if edge == float("inf") else f"{edge:g}"
        yield f'{name}_bucket{{le="{label}"}} {seen}'
    yield f"{name}_sum {counts.plan_seconds:.10g}"
    yield f"{name}_count {seen}"
