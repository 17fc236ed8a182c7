"""Management around one request: what is sent instead, and what is learnt from its answer.

Whatever goes wrong in here, the client's own bytes go upstream, with the reason beside the answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.gateway.answer import PassingAnswer
from holdfast.gateway.conversation import Conversation
from holdfast.gateway.conversations import Conversations
from holdfast.gateway.endpoints import ApiEndpoint, Call, read_call
from holdfast.gateway.identity import identify
from holdfast.gateway.shadow import BilledCall, Shadow
from holdfast.messages import JsonObject

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
    at: float = 0.0


class Planner:
    """Decides what goes upstream for a request, and never raises."""

    def __init__(
        self,
        conversations: Conversations,
        *,
        salt: bytes,
        shadow: Shadow | None = None,
        apart: bool = True,
    ) -> None:
        """`apart` keeps credentials apart; off where only one client can reach the gateway."""
        self._conversations = conversations
        self._salt, self._apart = salt, apart
        self._shadow = shadow
        self._failures: dict[str, int] = {}

    async def plan(self, endpoint: ApiEndpoint, body: bytes, headers: Mapping[str, str]) -> Plan:
        """Say what to send; the caller ends a plan with `end`."""
        conversation = None
        try:
            call = read_call(endpoint, body, headers)
            if call is None:
                return Plan(body=body, reason=UNMANAGED)
            identity = identify(call, headers, self._salt, apart=self._apart)
            if endpoint.is_count:
                known = self._conversations.peek(identity, call)
                return Plan(body=(known and known.counted(call)) or body)
            at = self._conversations.clock()
            conversation = self._conversations.find(identity, call)
            prepared = await conversation.prepare(call)
        except Exception as error:  # noqa: BLE001 - the client's request goes on without us
            return self._failed(body, error, conversation)
        return Plan(
            body=body if prepared.body is None else prepared.body,
            call=call,
            conversation=conversation,
            asked=prepared.asked,
            at=at,
        )

    def refused(self, plan: Plan, given: bytes, status: int) -> Plan:
        """Fall back to the client's own bytes: the provider refused what we made of them."""
        reason = f"the provider answered {status} to the managed request"
        if plan.conversation is not None:
            plan.conversation.release()
        self._note(reason, plan.conversation)
        return Plan(body=given, reason=reason)

    def record_answer(self, plan: Plan, given: bytes, answer: PassingAnswer) -> None:
        """Record a whole answer; one that cannot be read was the client's alone."""
        if plan.conversation is None or plan.call is None:
            return
        try:
            reply = answer.reply()
            plan.conversation.record_reply(reply, plan.asked)
        except Exception as error:  # noqa: BLE001 - the client has its answer
            self._note(_said(error), plan.conversation)
            return
        if self._shadow is not None and plan.call.endpoint.dialect == "anthropic" and reply.usage:
            self._shadow.account(
                BilledCall(
                    session=plan.conversation.id,
                    model=plan.call.model,
                    given=given,
                    sent=plan.body,
                    usage=reply.usage,
                    betas=plan.call.betas,
                    at=plan.at,
                )
            )

    def end(self, plan: Plan) -> None:
        """The answer to a plan is over, however it ended."""
        if plan.conversation is not None:
            plan.conversation.release()

    def close_idle(self) -> None:
        self._conversations.close_idle()

    def close(self) -> None:
        self._conversations.close()
        if self._shadow is not None:
            self._shadow.close()

    def stats(self) -> JsonObject:
        """Report every session's bill since the gateway started, and what failed."""
        bills = self._shadow.bills() if self._shadow is not None else {}
        sessions = [{"id": id, **bill.to_json()} for id, bill in bills.items()]
        total = sum(list(bills.values())[1:], next(iter(bills.values()))) if bills else None
        return {
            "totals": total.to_json() if total else {},
            "sessions": sessions,
            "failures": dict(self._failures),
        }

    def _failed(self, body: bytes, error: Exception, conversation: Conversation | None) -> Plan:
        reason = _said(error)
        self._note(reason, conversation)
        return Plan(body=body, reason=reason)

    def _note(self, reason: str, conversation: Conversation | None) -> None:
        """Count a failure and write it down, where that is still possible."""
        self._failures[reason] = self._failures.get(reason, 0) + 1
        if conversation is None:
            return
        try:
            conversation.fail("gateway", reason)
            self._conversations.forget(conversation.id)
        except Exception as error:  # noqa: BLE001 - the log may be what failed
            second = f"not in the log: {_said(error)}"
            self._failures[second] = self._failures.get(second, 0) + 1


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
