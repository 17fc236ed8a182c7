"""SendMessage: how a model writes to other agents. The permissions decide whether to ask first."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from holdfast.agent.subagents.mail import (
    SUMMARY_CHARS,
    MailBody,
    Note,
    PlanAnswer,
    PlanRequest,
    ShutdownAnswer,
    ShutdownRequest,
)
from holdfast.agent.subagents.mailer import Mailer, Unsent
from holdfast.agent.subagents.task_tools import team_tool
from holdfast.log.store import new_id
from holdfast.tools.context import ToolContext
from holdfast.tools.protocol import Input, Outcome, Refused, Tool


class Structured(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    type: Literal["shutdown_request", "shutdown_answer", "plan_request", "plan_answer"]
    request_id: Annotated[str, Meta(description="Of the request you answer.")] = ""
    approve: bool | None = None
    reason: Annotated[str, Meta(description="Needed when you do not agree.")] = ""
    plan: Annotated[str, Meta(description="What you would do, for the lead to agree to.")] = ""


class SendMessageInput(Input, frozen=True, kw_only=True):
    to: Annotated[str, Meta(description="A name or id, 'all', or 'session:<id>'.")]
    message: str | Structured
    summary: Annotated[str, Meta(description="Five to ten words; needed with plain words.")] = ""


def send_tool(mailer: Mailer) -> Tool:
    async def send(given: SendMessageInput, _context: ToolContext) -> Outcome:
        body = body_of(given)
        try:
            said = await mailer.send(given.to, body)
        except Unsent as error:
            raise Refused(f"Not sent: {error}") from None
        kind = str(body.__struct_config__.tag).replace("_", " ")
        about = body.summary if isinstance(body, Note) else kind
        return Outcome(content=f"Sent: {said}.", note=f"to {given.to}: {about}")

    return team_tool("SendMessage", SendMessageInput, send)


def body_of(given: SendMessageInput) -> MailBody:
    """Convert a model's input to a mail body, or say what is missing."""
    match given.message:
        case str(text):
            summary = " ".join(given.summary.split())[:SUMMARY_CHARS]
            if not summary:
                raise Refused("Give a summary of five to ten words with the message.")
            return Note(text=text, summary=summary)
        case Structured(type="shutdown_request", reason=reason):
            return ShutdownRequest(request_id=new_id(), reason=reason)
        case Structured(type="plan_request", plan=plan):
            if not plan.strip():
                raise Refused("Say in plan what you would do.")
            return PlanRequest(request_id=new_id(), plan=plan)
        case Structured(type="shutdown_answer") as answer:
            return _answer(answer, ShutdownAnswer)
        case Structured() as answer:
            return _answer(answer, PlanAnswer)


def _answer(
    given: Structured, kind: type[ShutdownAnswer] | type[PlanAnswer]
) -> ShutdownAnswer | PlanAnswer:
    """Make an answer; validates the request id."""
    if given.approve is None or not given.request_id:
        raise Refused("An answer needs the request_id of the request, and approve.")
    words = "feedback" if kind is PlanAnswer else "reason"
    fields = {"request_id": given.request_id, "approve": given.approve, words: given.reason}
    try:
        return msgspec.convert({"type": kind.__struct_config__.tag, **fields}, kind)
    except msgspec.ValidationError as error:
        raise Refused(f"Invalid answer: {error}.") from None
