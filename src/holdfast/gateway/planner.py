"""Management around one request: what is sent instead, and what is learnt from its answer.

Whatever goes wrong in here, the client's own bytes go upstream, with the reason beside the answer.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.gateway.answer import PassingAnswer
from holdfast.gateway.conversation import Conversation
from holdfast.gateway.conversations import Conversations
from holdfast.gateway.decisions import PricedDecision
from holdfast.gateway.endpoints import ApiEndpoint, Call, read_call
from holdfast.gateway.identity import identify, tenant_of
from holdfast.gateway.metrics import GatewayCounts, metrics_text
from holdfast.gateway.shadow import BilledCall, SessionBill, Shadow
from holdfast.gateway.tenants import TenantBudgets
from holdfast.messages import JsonObject
from holdfast.pages.followed import BilledFigures

USD_DIGITS = 6
UNMANAGED = "no whole conversation in it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to send for a client's request."""

    body: bytes
    reason: str = ""
    """Why it is the client's own, where management was wanted."""
    call: Call | None = None
    conversation: Conversation | None = None
    asked: int = 0
    decisions: tuple[PricedDecision, ...] = ()
    at: float = 0.0
    tenant: str = ""


class Planner:
    """Decides what goes upstream for a request, and never raises."""

    def __init__(
        self,
        conversations: Conversations,
        *,
        salt: bytes,
        budgets: TenantBudgets,
        shadow: Shadow | None = None,
        apart: bool = True,
    ) -> None:
        """`apart` keeps credentials apart; off where only one client can reach the gateway."""
        self._conversations, self._budgets = conversations, budgets
        self._salt, self._apart = salt, apart
        self._shadow = shadow
        self._counts = GatewayCounts()
        self._callers: dict[str, tuple[str, str]] = {}
        """The model of each session, and what its client calls itself."""

    def refusal(self, headers: Mapping[str, str]) -> str:
        """Say why a client may make no more requests today; '' if it may."""
        reason = self._budgets.refusal(self._tenant(headers))
        if reason:
            self._counts.refused()
        return reason

    def unmanaged(self, body: bytes, headers: Mapping[str, str]) -> Plan:
        """Return the client's own request, whose answer is only paid for."""
        return Plan(body=body, tenant=self._tenant(headers))

    async def plan(self, endpoint: ApiEndpoint, body: bytes, headers: Mapping[str, str]) -> Plan:
        """Say what to send; the caller ends a plan with `end`."""
        began = time.perf_counter()
        plan = await self._planned(endpoint, body, headers)
        self._counts.planned(time.perf_counter() - began, is_changed=plan.body is not body)
        return plan

    async def _planned(
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
                return Plan(body=(known and known.counted(call)) or body)
            at = self._conversations.clock()
            conversation = await self._conversations.find(identity, call)
            self._callers[conversation.id] = (call.model, identity.client)
            prepared = await conversation.prepare(call)
        except Exception as error:  # noqa: BLE001 - the client's request goes on without us
            reason = _said(error)
            self._note(reason, conversation)
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
        """Fall back to the client's own bytes: the provider refused what we made of them."""
        reason = f"the provider answered {status} to the managed request"
        self._note(reason, plan.conversation)
        return Plan(body=given, reason=reason, tenant=plan.tenant)

    def record_answer(self, plan: Plan, given: bytes, answer: PassingAnswer) -> None:
        """Record a whole answer; one that cannot be read was the client's alone."""
        try:
            reply = answer.reply()
            if reply.usage is not None:
                model = plan.call.model if plan.call is not None else reply.model
                self._budgets.pay(plan.tenant, model, reply.usage)
            if plan.conversation is not None:
                plan.conversation.record_reply(reply, plan.asked)
        except Exception as error:  # noqa: BLE001 - the client has its answer
            self._note(_said(error), plan.conversation)
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
        """The answer to a plan is over, however it ended."""
        if plan.conversation is not None:
            plan.conversation.release()

    def let_go(self) -> None:
        """Close the sessions that nobody uses, or that another process wants to write to."""
        self._conversations.let_go()

    def close(self) -> None:
        self._conversations.close()
        if self._shadow is not None:
            self._shadow.close()

    def stats(self) -> JsonObject:
        """Report every session's bill since the gateway started, and what failed."""
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
        """Write the counts for Prometheus."""
        total = sum(self._bills().values(), SessionBill())
        return metrics_text(self._counts, total, self._conversations.open_count)

    def figures(self) -> dict[str, BilledFigures]:
        """Return what each session cost and saved, by its id, for a list of them.

        One whose first answer is still awaited has cost nothing yet.
        """
        if self._shadow is None:
            return {}
        bills = dict.fromkeys(self._callers, SessionBill()) | self._bills()
        periods = self._shadow.periods()
        return {
            id: BilledFigures(
                calls=bill.calls,
                usd=bill.billed_usd,
                hit_share=bill.hit_share,
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

    def _note(self, reason: str, conversation: Conversation | None) -> None:
        """Count a failure and write it down, where that is still possible."""
        self._counts.failed(reason)
        if conversation is None:
            return
        try:
            conversation.fail("gateway", reason)
            self._conversations.forget(conversation.id)
        except Exception as error:  # noqa: BLE001 - the log may be what failed
            self._counts.failed(f"not in the log: {_said(error)}")


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
