"""Plans what to send for a request, and records the answer.

If planning fails, the client's bytes go upstream unchanged, and a response header gives the reason.
"""

import asyncio
import time
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn
from weakref import WeakValueDictionary

import msgspec
from starlette.datastructures import Headers

from longhold.core.log.spending import BilledFigures
from longhold.core.messages import JsonObject, Usage
from longhold.core.messages.text import cut
from longhold.core.models.capabilities import capabilities
from longhold.core.models.prices import price_call, prices
from longhold.gateway.answer import CHARS_A_TOKEN, PassingAnswer
from longhold.gateway.conversation import Conversation
from longhold.gateway.conversations import (
    Conversations,
    credentials_in,
    identify,
    tenant_of,
)
from longhold.gateway.decisions import PricedDecision
from longhold.gateway.endpoints import ApiEndpoint, Call, read_call
from longhold.gateway.shadow import EARLIER, MOST_SESSIONS, BilledCall, SessionBill, Shadow
from longhold.gateway.tenants import OverBudget, TenantBudgets

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

    def count_refusal(self) -> None:
        self.over_budget += 1

    def count_failure(self, kind: str) -> None:
        """Count a failure by its kind, without its text, because every tenant reads the counts."""
        self.failures[kind] = self.failures.get(kind, 0) + 1


def _metric_lines(counts: GatewayCounts, total: SessionBill, open_sessions: int) -> Iterator[str]:
    """Yield the Prometheus metrics. To limit the series, sessions and reasons are not labels."""
    yield from _metric("requests_total", "Requests with a conversation.", counts.requests)
    yield from _metric("changed_total", "Requests that the gateway changed.", counts.changed)
    failures = sum(counts.failures.values())
    yield from _metric("failures_total", "Requests forwarded unchanged.", failures)
    yield from _metric("over_budget_total", "Requests refused by a budget.", counts.over_budget)
    yield from _metric("sessions_open", "Sessions in memory.", open_sessions, kind="gauge")
    yield from _metric("billed_usd_total", "Amount billed by the provider.", total.tally.usd)
    why = "Estimated bill for the clients' own requests."
    yield from _metric("shadow_usd_total", why, total.shadow_usd)
    read = total.tally.cache_read_tokens
    tokens = {"read": read, "other": total.tally.prompt_tokens - read}
    labelled = {f'{{cache="{key}"}}': count for key, count in tokens.items()}
    yield from _metric("prompt_tokens_total", "Prompt tokens, by use of the cache.", labelled)
    yield from _histogram(counts)


def _metric(
    name: str, why: str, value: float | Mapping[str, float], kind: str = "counter"
) -> Iterable[str]:
    yield f"# HELP {PREFIX}{name} {why}"
    yield f"# TYPE {PREFIX}{name} {kind}"
    for label, count in value.items() if isinstance(value, Mapping) else (("", value),):
        yield f"{PREFIX}{name}{label} {count:.10g}"


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
UNMANAGED = "it contains no complete conversation"
LATE = "planning took too long"
BUSY = "too many simultaneous requests with new credentials"
PLAN_SECONDS = 10.0
"""After this time, the client's own bytes are sent. Reading a full window's log takes less."""
THREADS, TENANT_THREADS = 32, 4
LARGE_BYTES = 256 << 10
"""Larger requests can take seconds of CPU time, so other work runs in other threads."""
LARGE_THREADS, TENANT_LARGE_THREADS = 4, 2
NEW_SECONDS = 3.0
"""How long a request with new credentials waits for a thread before its own bytes are sent."""
MOST_ACCEPTED = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    body: bytes
    reason: str = ""
    """Why the gateway passed a request unchanged."""
    call: Call | None = None
    conversation: Conversation | None = None
    asked: int = 0
    decisions: tuple[PricedDecision, ...] = ()
    at: float = 0.0
    tenant: str = ""


class _Caller(NamedTuple):
    model: str
    client: str
    tenant: str


class Planner:
    """Decides what to send for a request. If planning fails, the client's own bytes are sent."""

    def __init__(
        self,
        conversations: Conversations,
        *,
        salt: bytes,
        budgets: TenantBudgets,
        shadow: Shadow | None = None,
        apart: bool = True,
        plan_seconds: float = PLAN_SECONDS,
        is_local: bool = True,
    ) -> None:
        """`is_local` means that clients run on this machine and may see its paths in reasons."""
        self._conversations, self._budgets = conversations, budgets
        self._salt, self._apart = salt, apart
        self._shadow = shadow
        self._counts = GatewayCounts()
        self._callers: dict[str, _Caller] = {}
        """Callers by session id, newest last."""
        self._plan_seconds, self._is_local = plan_seconds, is_local
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="longhold-plan")
        self._large = ThreadPoolExecutor(LARGE_THREADS, thread_name_prefix="longhold-plan-large")
        self._slots: WeakValueDictionary[tuple[str | None, bool], asyncio.Semaphore] = (
            WeakValueDictionary()
        )
        """Slots by tenant and by whether they are for large requests."""
        self._accepted: dict[str, None] = {}
        """Tenants that the provider has answered, newest last."""
        self._late: set[asyncio.Task[Plan]] = set()

    def check_budget(self, headers: Headers, *, is_counted: bool) -> None:
        """Raise `OverBudget` if the budget is spent or the request's cost cannot be counted."""
        if not self._budgets.is_set:
            return
        if not is_counted:
            self._refuse("a budget is set, and the cost of requests to this path is unknown")
        if len(credentials_in(headers)) > 1:
            self._refuse("a budget is set for each credential; send exactly one credential")
        try:
            self._budgets.check(self.name_tenant(headers))
        except OverBudget as error:
            self._refuse(str(error))

    @asynccontextmanager
    async def reserve(
        self, endpoint: ApiEndpoint, body: bytes, headers: Headers
    ) -> AsyncIterator[None]:
        """Reserve the maximum cost of a request. Raise `OverBudget` if the cost is unknown."""
        if not self._budgets.is_set or endpoint.is_count:
            yield
            return
        asked = read_asked(body)
        if asked.background:
            self._refuse("a budget is set, and the usage of background requests is unknown")
        if not prices(asked.model):
            name = cut(asked.model, 80)
            self._refuse(f"a budget is set, and the model {name!r} has no known price")
        async with self._budgets.reserve(self.name_tenant(headers), asked.expected_usd(body)):
            yield

    def _refuse(self, reason: str) -> NoReturn:
        self._counts.count_refusal()
        raise OverBudget(reason)

    def pass_through(self, body: bytes, headers: Headers, reason: str = "") -> Plan:
        return Plan(body=body, reason=reason, tenant=self.name_tenant(headers))

    def count_failure(self, kind: str) -> None:
        self._counts.count_failure(kind)

    async def plan(self, endpoint: ApiEndpoint, body: bytes, headers: Headers) -> Plan:
        """Plan a request in a thread, up to a deadline. The caller must pass the plan to `end`."""
        began = time.perf_counter()
        deadline = time.monotonic() + self._plan_seconds
        tenant = self.name_tenant(headers)
        planning = asyncio.create_task(self._plan_in_thread(endpoint, body, headers, deadline))
        done, _ = await asyncio.wait({planning}, timeout=self._plan_seconds)
        if done:
            plan = planning.result()
        else:  # the thread cannot be stopped, and the next request finds its decisions in the log
            self._late.add(planning)
            planning.add_done_callback(self._drop)
            self._counts.count_failure(LATE)
            plan = Plan(body=body, reason=LATE, tenant=tenant)
        self._counts.count_plan(time.perf_counter() - began, is_changed=plan.body is not body)
        return plan

    async def _plan_in_thread(
        self, endpoint: ApiEndpoint, body: bytes, headers: Headers, deadline: float
    ) -> Plan:
        tenant, is_large = self.name_tenant(headers), len(body) > LARGE_BYTES
        is_known = not self._apart or tenant in self._accepted
        slots = self._slots_of(tenant if is_known else None, is_large=is_large)
        try:
            async with asyncio.timeout(None if is_known else NEW_SECONDS):
                await slots.acquire()
        except TimeoutError:
            self._counts.count_failure(BUSY)
            return Plan(body=body, reason=BUSY, tenant=tenant)
        try:
            threads = self._large if is_large else self._threads
            return await asyncio.get_running_loop().run_in_executor(
                threads, self._make_plan, endpoint, body, headers, deadline
            )
        finally:
            slots.release()

    def _slots_of(self, tenant: str | None, *, is_large: bool = False) -> asyncio.Semaphore:
        """Return a tenant's slots. Each tenant has few, so that other tenants never wait for a
        thread. Credentials that no provider has accepted (None) share slots, because anybody can
        invent them.
        """
        count = TENANT_LARGE_THREADS if is_large else TENANT_THREADS
        return self._slots.setdefault((tenant, is_large), asyncio.Semaphore(count))

    async def _record(self, tenant: str, work: Callable[..., None], *given: object) -> None:
        async with self._slots_of(tenant):
            await asyncio.get_running_loop().run_in_executor(self._threads, work, *given)

    def _drop(self, planning: "asyncio.Task[Plan]") -> None:
        self._late.discard(planning)
        if not planning.cancelled():
            self.end(planning.result())

    def _make_plan(
        self, endpoint: ApiEndpoint, body: bytes, headers: Headers, deadline: float
    ) -> Plan:
        conversation, tenant = None, self.name_tenant(headers)
        if time.monotonic() > deadline:
            return Plan(body=body, reason=LATE, tenant=tenant)
        try:
            call = read_call(endpoint, body, headers)
            if call is None:
                return Plan(body=body, reason=UNMANAGED, tenant=tenant)
            identity = identify(call, headers, self._salt, apart=self._apart)
            with self._conversations.turn(f"{identity.name}-"):
                if endpoint.is_count:
                    known = self._conversations.peek(identity, call)
                    return Plan(body=(known and known.prepare_count(call)) or body)
                at = self._conversations.clock()
                conversation = self._conversations.find(identity, call)
                self._callers.pop(conversation.id, None)
                self._callers[conversation.id] = _Caller(call.model, identity.client, tenant)
                if len(self._callers) > MOST_SESSIONS:
                    self._callers.pop(next(iter(self._callers)), None)
                prepared = conversation.prepare(call)
        except Exception as error:  # noqa: BLE001 - the client's request passes unchanged
            reason = _describe_error(error)
            self._note(type(error).__name__, reason, conversation)
            shown = reason if self._is_local else type(error).__name__
            return Plan(body=body, reason=shown, tenant=tenant)
        return Plan(
            body=body if prepared.body is None else prepared.body,
            call=call,
            conversation=conversation,
            asked=prepared.asked,
            decisions=prepared.decisions,
            at=at,
            tenant=tenant,
        )

    def name_tenant(self, headers: Headers) -> str:
        return tenant_of(headers, self._salt) if self._apart else ""

    def fall_back(self, plan: Plan, given: bytes, status: int) -> Plan:
        reason = f"the provider answered {status} to the managed request"
        self._note(reason, reason, plan.conversation)
        return Plan(body=given, reason=reason, tenant=plan.tenant)

    async def record_answer(self, plan: Plan, given: bytes, answer: PassingAnswer) -> None:
        """Record a complete answer. An unreadable answer counts as a failure."""
        self._accepted.pop(plan.tenant, None)
        self._accepted[plan.tenant] = None
        if len(self._accepted) > MOST_ACCEPTED:
            del self._accepted[next(iter(self._accepted))]
        await self._record(plan.tenant, self._record_answer, plan, given, answer)

    async def pay_unfinished(self, plan: Plan, answer: PassingAnswer) -> None:
        """Charge a request whose answer was cut off."""
        if self._budgets.is_set and not answer.is_recorded:
            await self._record(plan.tenant, self._pay, plan, answer, None)

    def _pay(self, plan: Plan, answer: PassingAnswer, usage: Usage | None) -> None:
        answer.finish()
        model = plan.call.model if plan.call is not None else read_asked(plan.body).model
        if model and (usage is not None or self._budgets.is_set):
            self._budgets.pay(plan.tenant, model, usage or answer.usage_so_far(plan.body))

    def _record_answer(self, plan: Plan, given: bytes, answer: PassingAnswer) -> None:
        answer.finish()
        try:
            reply = answer.reply()
        except Exception as error:  # noqa: BLE001 - the client has its answer
            self._note(type(error).__name__, _describe_error(error), plan.conversation)
            self._pay(plan, answer, None)
            return
        try:
            self._pay(plan, answer, reply.usage)
            if plan.conversation is not None:
                with self._conversations.turn(plan.conversation.id):
                    plan.conversation.record_reply(
                        reply, plan.asked, is_simulated=answer.is_simulated
                    )
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

    def let_go(self, *, is_draining: bool = False) -> None:
        self._conversations.let_go(0.0 if is_draining else None)

    def close(self) -> None:
        for threads in (self._large, self._threads):
            threads.shutdown(wait=True, cancel_futures=True)
        self._conversations.close()
        if self._shadow is not None:
            self._shadow.close()

    def stats(self, headers: Headers | None = None) -> JsonObject:
        """Return the figures of the tenant with these headers, or of all tenants."""
        tenant = self.name_tenant(headers) if headers is not None else None
        bills = {
            id: bill
            for id, bill in self._bills().items()
            if tenant is None or (id in self._callers and self._callers[id].tenant == tenant)
        }
        periods = self._shadow.periods() if self._shadow is not None else {}
        sessions = [
            {"id": id, **bill.to_json(), "decisions": [one.to_json() for one in periods[id]]}
            for id, bill in bills.items()
            if id != EARLIER
        ]
        return {
            "totals": sum(bills.values(), SessionBill()).to_json() if bills else {},
            "sessions": sessions,
            "requests": self._counts.requests if tenant is None else None,
            "failures": dict(self._counts.failures) if tenant is None else {},
        }

    def metrics(self) -> str:
        total = sum(self._bills().values(), SessionBill())
        lines = _metric_lines(self._counts, total, self._conversations.open_count)
        return "\n".join(lines) + "\n"

    def figures(self) -> dict[str, BilledFigures]:
        """Return cost and savings by session id. Both are zero until the first answer."""
        if self._shadow is None:
            return {}
        bills = dict.fromkeys(self._callers, SessionBill()) | self._bills()
        periods = self._shadow.periods()
        return {
            id: BilledFigures(
                tally=bill.tally,
                saved_usd=bill.saved_usd,
                model=self._callers[id].model,
                agent=self._callers[id].client,
                decisions={
                    n: (round(one.predicted_usd, USD_DIGITS), round(one.saved_usd, USD_DIGITS))
                    for one in periods.get(id, ())
                    for n in one.entries
                },
            )
            for id, bill in bills.items()
            if id in self._callers
        }

    async def undo(self, session: str, n: int) -> str:
        return self._conversations.undo(session, n)

    def _bills(self) -> dict[str, SessionBill]:
        return self._shadow.bills() if self._shadow is not None else {}

    def _note(self, kind: str, reason: str, conversation: Conversation | None) -> None:
        self._counts.count_failure(kind)
        if conversation is None:
            return
        try:
            with self._conversations.turn(conversation.id):
                conversation.fail("gateway", reason)
                self._conversations.forget(conversation.id)
        except Exception as error:  # noqa: BLE001 - the log may be what failed
            self._counts.count_failure(f"not in the log: {type(error).__name__}")


MOST_EXPECTED_TOKENS = 100_000_000
"""More tokens than any provider generates. A client may request any number."""


class _Asked(msgspec.Struct):
    model: str = ""
    background: object = None
    n: object = 1
    max_tokens: object = None
    max_completion_tokens: object = None
    max_output_tokens: object = None

    def expected_usd(self, body: bytes) -> float:
        """Return an upper estimate of the cost of a request, from its length."""
        limits = (self.max_tokens, self.max_completion_tokens, self.max_output_tokens)
        most = max((limit for limit in limits if isinstance(limit, int)), default=0)
        output = most if most > 0 else capabilities(self.model).max_output_tokens
        answers = max(1, self.n) if isinstance(self.n, int) else 1
        usage = Usage(
            input_tokens=len(body) // CHARS_A_TOKEN,
            output_tokens=min(answers * output, MOST_EXPECTED_TOKENS),
        )
        return price_call(self.model, usage).usd


def read_asked(body: bytes) -> _Asked:
    """Read some fields of a request. Skipping the others takes little time."""
    try:
        return msgspec.json.decode(body, type=_Asked)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _Asked()


def _describe_error(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
