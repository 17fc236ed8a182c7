"""Plans what to send for a request, and records the answer.

If planning fails, the client's bytes go upstream unchanged, and a response header gives the reason.
"""

import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from longhold.core.log.spending import BilledFigures
from longhold.core.messages import JsonObject
from longhold.gateway.answer import PassingAnswer
from longhold.gateway.conversation import Conversation
from longhold.gateway.conversations import Conversations, identify, tenant_of
from longhold.gateway.decisions import PricedDecision
from longhold.gateway.endpoints import ApiEndpoint, Call, read_call
from longhold.gateway.shadow import BilledCall, SessionBill, Shadow
from longhold.gateway.tenants import TenantBudgets

BUCKETS_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
PREFIX = "longhold_gateway_"


@dataclass(slots=True)
class GatewayCounts:
    requests: int = 0
    changed: int = 0
    over_budget: int = 0
    plan_seconds: float = 0.0
    plans: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_SECONDS) + 1))
    failures: dict[str, int] = field(default_factory=dict)

    def count_plan(self, seconds: float, *, is_changed: bool) -> None:
        self.requests += 1
        self.changed += is_changed
        self.plan_seconds += seconds
        self.plans[bisect_left(BUCKETS_SECONDS, seconds)] += 1

    def refused(self) -> None:
        self.over_budget += 1

    def failed(self, kind: str) -> None:
        """Count a failure by its kind. Its text may quote a client, and every tenant reads this."""
        self.failures[kind] = self.failures.get(kind, 0) + 1


def _metrics_text(counts: GatewayCounts, total: SessionBill, open_sessions: int) -> str:
    """Format the Prometheus metrics. Sessions and reasons are not labels, to limit series."""
    return "\n".join(_lines(counts, total, open_sessions)) + "\n"


def _lines(counts: GatewayCounts, total: SessionBill, open_sessions: int) -> Iterator[str]:
    yield from _metric("requests_total", "Requests with a conversation.", counts.requests)
    yield from _metric("changed_total", "Requests sent otherwise than written.", counts.changed)
    failures = sum(counts.failures.values())
    yield from _metric("failures_total", "Requests passed on as they were.", failures)
    yield from _metric("over_budget_total", "Requests refused by a budget.", counts.over_budget)
    yield from _metric("sessions_open", "Sessions in memory.", open_sessions, kind="gauge")
    yield from _metric("billed_usd_total", "What the provider billed.", total.tally.usd)
    why = "What it would have billed for the clients' own requests."
    yield from _metric("shadow_usd_total", why, total.shadow_usd)
    read = total.tally.cache_read_tokens
    tokens = {"read": read, "other": total.tally.prompt_tokens - read}
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


USD_DIGITS = 6
UNMANAGED = "no whole conversation in it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    body: bytes
    reason: str = ""
    """Why a request that should be managed was passed unchanged."""
    call: Call | None = None
    conversation: Conversation | None = None
    asked: int = 0
    decisions: tuple[PricedDecision, ...] = ()
    at: float = 0.0
    tenant: str = ""


class Planner:
    """Decides what to send for a request. Never raises."""

    def __init__(
        self,
        conversations: Conversations,
        *,
        salt: bytes,
        budgets: TenantBudgets,
        shadow: Shadow | None = None,
        apart: bool = True,
    ) -> None:
        self._conversations, self._budgets = conversations, budgets
        self._salt, self._apart = salt, apart
        self._shadow = shadow
        self._counts = GatewayCounts()
        self._callers: dict[str, tuple[str, str]] = {}
        """Model and client name by session id."""

    def refusal(self, headers: Mapping[str, str]) -> str:
        reason = self._budgets.refusal(self._tenant(headers))
        if reason:
            self._counts.refused()
        return reason

    def pass_through(self, body: bytes, headers: Mapping[str, str]) -> Plan:
        return Plan(body=body, tenant=self._tenant(headers))

    async def plan(self, endpoint: ApiEndpoint, body: bytes, headers: Mapping[str, str]) -> Plan:
        """Plan a request. The caller must pass the plan to `end`."""
        began = time.perf_counter()
        plan = await self._make_plan(endpoint, body, headers)
        self._counts.count_plan(time.perf_counter() - began, is_changed=plan.body is not body)
        return plan

    async def _make_plan(
        self, endpoint: ApiEndpoint, body: bytes, headers: Mapping[str, str]
    ) -> Plan:
        conversation, tenant = None, self._tenant(headers)
        try:
            call = read_call(endpoint, body, headers)
            if call is None:
                return Plan(body=body, reason=UNMANAGED, tenant=tenant)
            identity = identify(call, headers, self._salt, apart=self._apart)
            if endpoint.is_count:
                known = self._conversations.peek(identity, call)
                return Plan(body=(known and known.prepare_count(call)) or body)
            at = self._conversations.clock()
            conversation = await self._conversations.find(identity, call)
            self._callers[conversation.id] = (call.model, identity.client)
            prepared = await conversation.prepare(call)
        except Exception as error:  # noqa: BLE001 - the client's request passes unchanged
            reason = _describe_error(error)
            self._note(type(error).__name__, reason, conversation)
            return Plan(body=body, reason=reason, tenant=tenant)
        return Plan(
            body=body if prepared.body is None else prepared.body,
            call=call,
            conversation=conversation,
            asked=prepared.asked,
            decisions=prepared.decisions,
            at=at,
            tenant=tenant,
        )

    def _tenant(self, headers: Mapping[str, str]) -> str:
        return tenant_of(headers, self._salt) if self._apart else ""

    def refused(self, plan: Plan, given: bytes, status: int) -> Plan:
        reason = f"the provider answered {status} to the managed request"
        self._note(reason, reason, plan.conversation)
        return Plan(body=given, reason=reason, tenant=plan.tenant)

    def record_answer(self, plan: Plan, given: bytes, answer: PassingAnswer) -> None:
        """Record a complete answer. An unreadable answer is noted and not recorded."""
        try:
            reply = answer.reply()
            if reply.usage is not None:
                model = plan.call.model if plan.call is not None else reply.model
                self._budgets.pay(plan.tenant, model, reply.usage)
            if plan.conversation is not None:
                plan.conversation.record_reply(reply, plan.asked)
        except Exception as error:  # noqa: BLE001 - the client has its answer
            self._note(type(error).__name__, _describe_error(error), plan.conversation)
            return
        if self._shadow is None or plan.call is None or plan.conversation is None:
            return
        if reply.usage:
            self._shadow.account(
                BilledCall(
                    session=plan.conversation.id,
                    model=plan.call.model,
                    endpoint=plan.call.endpoint,
                    given=given,
                    sent=plan.body,
                    usage=reply.usage,
                    betas=plan.call.betas,
                    decisions=plan.decisions,
                    at=plan.at,
                )
            )

    def end(self, plan: Plan) -> None:
        if plan.conversation is not None:
            plan.conversation.release()

    def let_go(self) -> None:
        self._conversations.let_go()

    def close(self) -> None:
        self._conversations.close()
        if self._shadow is not None:
            self._shadow.close()

    def stats(self) -> JsonObject:
        bills = self._bills()
        periods = self._shadow.periods() if self._shadow is not None else {}
        sessions = [
            {"id": id, **bill.to_json(), "decisions": [one.to_json() for one in periods[id]]}
            for id, bill in bills.items()
        ]
        return {
            "totals": sum(bills.values(), SessionBill()).to_json() if bills else {},
            "sessions": sessions,
            "failures": dict(self._counts.failures),
        }

    def metrics(self) -> str:
        total = sum(self._bills().values(), SessionBill())
        return _metrics_text(self._counts, total, self._conversations.open_count)

    def figures(self) -> dict[str, BilledFigures]:
        """Return cost and savings by session id; zero while the first answer is awaited."""
        if self._shadow is None:
            return {}
        bills = dict.fromkeys(self._callers, SessionBill()) | self._bills()
        periods = self._shadow.periods()
        return {
            id: BilledFigures(
                tally=bill.tally,
                saved_usd=bill.saved_usd,
                model=self._callers[id][0],
                agent=self._callers[id][1],
                decisions={
                    n: (round(one.predicted_usd, USD_DIGITS), round(one.saved_usd, USD_DIGITS))
                    for one in periods.get(id, ())
                    for n in one.entries
                },
            )
            for id, bill in bills.items()
        }

    async def undo(self, session: str, n: int) -> str:
        return self._conversations.undo(session, n)

    def _bills(self) -> dict[str, SessionBill]:
        return self._shadow.bills() if self._shadow is not None else {}

    def _note(self, kind: str, reason: str, conversation: Conversation | None) -> None:
        self._counts.failed(kind)
        if conversation is None:
            return
        try:
            conversation.fail("gateway", reason)
            self._conversations.forget(conversation.id)
        except Exception as error:  # noqa: BLE001 - the log may be what failed
            self._counts.failed(f"not in the log: {type(error).__name__}")


def _describe_error(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
