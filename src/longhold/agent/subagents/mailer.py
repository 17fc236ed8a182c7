"""Routes and sends messages between agents and sessions. A sent message is in the mailbox."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct, structs

from longhold.agent.subagents.ledger import Mailbox, UnreadMail, agent_box
from longhold.agent.subagents.mail import (
    SUMMARY_CHARS,
    IdleNotice,
    Mail,
    MailBody,
    Note,
    PlanAnswer,
    PlanRequest,
    ShutdownAnswer,
    ShutdownRequest,
    asks,
)
from longhold.agent.subagents.names import MAIN, is_name, is_session
from longhold.agent.subagents.running import Order
from longhold.agent.subagents.supervisor import Known, Supervisor
from longhold.agent.subagents.tasks import team_tool
from longhold.core.log.protocol import StoredMail
from longhold.core.log.store import FileStore, new_id
from longhold.core.messages.text import one_line
from longhold.core.tools.context import ToolContext
from longhold.core.tools.protocol import Input, Outcome, Refused, Tool
from longhold.errors import LongholdError, StoreError

ALL = frozenset({"all", "*"})
SESSION_PREFIX = "session:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    id: str
    name: str = ""
    state: Literal["running", "stopped", "stopped_by_user"] = "running"
    """Completed, failed and interrupted agents count as stopped."""
    is_teammate: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    me: str
    peers: tuple[Peer, ...] = ()
    """Agents of this session except the sender, newest last."""
    has_main: bool = False
    """Whether the sender is a sub-agent, which may write to the main agent."""
    is_teammate: bool = False
    """Whether the sender is a teammate, which may answer the main agent's requests."""


class Unsent(Exception):
    """The message was not sent. The text is the reason."""


def route(to: str, body: MailBody, around: Around) -> tuple[str, ...]:
    """Return the recipients: ids of agents here, or `session:ID` for another session."""
    is_request = is_answer = False
    if to.startswith(SESSION_PREFIX):
        if not is_session(session := to.removeprefix(SESSION_PREFIX)):
            raise Unsent(f"{session!r} is not a session id.")
        found: tuple[str, ...] = (to,)
    elif to.casefold() in ALL:
        running = (peer.id for peer in around.peers if peer.state == "running")
        found = (*((MAIN,) if around.has_main else ()), *running)
        if not found:
            raise Unsent("No other agent is running.")
    elif to == MAIN and around.has_main:
        found, is_answer = (MAIN,), around.is_teammate
    else:
        peer = _find_peer(to, around)
        found, is_request = (peer.id,), peer.is_teammate and not around.has_main
    _check_structured(body, is_request=is_request, is_answer=is_answer)
    return found


def _find_peer(to: str, around: Around) -> Peer:
    """Find an agent by id, then by name. Running agents come first, then the newest stopped one."""
    if not is_name(to):
        raise Unsent(f"{to!r} is not an address.{_list_known(around)}")
    found = [peer for peer in around.peers if peer.id == to]
    found = found or [peer for peer in around.peers if peer.name == to]
    running = [peer for peer in found if peer.state == "running"]
    if len(running) > 1:
        ids = ", ".join(peer.id for peer in running)
        raise Unsent(f"Several running agents are called {to!r}; give an id: {ids}.")
    if not found:
        raise Unsent(f"No other agent here is called {to!r}.{_list_known(around)}")
    peer = running[0] if running else found[-1]
    if peer.state == "stopped_by_user":
        raise Unsent(f"The user stopped {peer.name or peer.id}; only the user starts it again.")
    return peer


def _check_structured(body: MailBody, *, is_request: bool, is_answer: bool) -> None:
    """Refuse a structured message unless the main agent and a teammate exchange it.

    The main agent requests shutdowns and answers plans (`is_request`). A teammate answers shutdowns
    and sends plans (`is_answer`).
    """
    match body:
        case Note():
            return
        case ShutdownAnswer(approve=False, reason="") | PlanAnswer(approve=False, feedback=""):
            raise Unsent("Say why not.")
        case ShutdownRequest() | PlanAnswer() if not is_request:
            raise Unsent(f"Only {MAIN} sends that to a teammate.")
        case ShutdownAnswer() | PlanRequest() | IdleNotice() if not is_answer:
            raise Unsent(f"Only a teammate sends that, to {MAIN}.")


def _list_known(around: Around) -> str:
    names = [peer.name or peer.id for peer in around.peers] + [MAIN] * around.has_main
    return f" There are: {', '.join(dict.fromkeys(names))}." if names else " There are none."


@dataclass(slots=True, kw_only=True)
class AgentDirectory:
    """The agents that one agent can reach: its own, its siblings, and the main agent."""

    order: Order | None
    own: Supervisor
    above: Supervisor | None

    def around(self) -> Around:
        id = self.order.id if self.order else MAIN
        supervisors = [one for one in (self.above, self.own) if one is not None]
        return Around(
            me=self.order.called if self.order else MAIN,
            peers=tuple(
                _peer(one, supervisor)
                for supervisor in supervisors
                for one in supervisor.registry.known.values()
                if one.id != id
            ),
            has_main=self.order is not None,
            is_teammate=self.order is not None and self.order.is_teammate,
        )

    async def resume(self, id: str) -> None:
        for supervisor in (self.own, self.above):
            if supervisor is not None and id in supervisor.registry.known:
                return await supervisor.resume(id)
        raise StoreError(f"there is no agent {id!r} here")


def _peer(one: Known, supervisor: Supervisor) -> Peer:
    by_user = one.ended is not None and one.ended.by_user
    stopped: Literal["stopped", "stopped_by_user"] = "stopped_by_user" if by_user else "stopped"
    return Peer(
        id=one.id,
        name=one.spawned.name,
        state="running" if one.id in supervisor.running else stopped,
        is_teammate=bool(one.spawned.team),
    )


MAIL_CHARS = 32_000
"""Longer texts belong in a file that the message names."""


@dataclass(slots=True, kw_only=True)
class Mailer:
    session: str
    directory: Path
    around: Callable[[], Around]
    resume: Callable[[str], Awaitable[None]]
    id: str = MAIN
    approve_plan: Callable[[str], None] = lambda _id: None
    stored: StoredMail | None = None
    is_outside: Callable[[], bool] = lambda: True
    find_session: Callable[[str], Path] = lambda session: FileStore().find(session).directory

    async def send(self, to: str, body: MailBody, *, id: str = "") -> str:
        """Send a message, but each id only once. Return a line about the outcome."""
        around = self.around()
        _check_length(body)
        recipients = route(to, body, around)
        await asyncio.to_thread(self._check_asked, to, body, around)
        id = id or secrets.token_hex(8)
        done: list[str] = []
        failed: list[str] = []
        for recipient in recipients:
            try:
                done.append(await self._send_to(recipient, around.me, body, id))
            except LongholdError as error:
                failed.append(f"not sent to {recipient.removeprefix(SESSION_PREFIX)}: {error}")
        if not done:
            raise Unsent("; ".join(failed))
        return "; ".join((*done, *failed))

    def _check_asked(self, to: str, body: MailBody, around: Around) -> None:
        """Refuse an answer to a request that is not in the sender's mailbox."""
        if not isinstance(body, ShutdownAnswer | PlanAnswer):
            return
        senders = {to, *(peer.name for peer in around.peers if peer.id == to)}
        letters = UnreadMail(agent_box(self.directory, self.id)).letters()
        if not any(asks(one.value, body, senders=senders) for one in letters if one.value):
            raise Unsent(f"{to} has not asked that with the request_id {body.request_id!r}.")

    async def _send_to(self, to: str, me: str, body: MailBody, id: str) -> str:
        is_here = not to.startswith(SESSION_PREFIX)
        mail = Mail(id=id, sender=me, to=to if is_here else MAIN, body=body, at=time.time())
        if not is_here:
            return await self._send_to_session(to.removeprefix(SESSION_PREFIX), mail)
        await asyncio.to_thread(Mailbox(agent_box(self.directory, to)).send, mail)
        if isinstance(body, PlanAnswer) and body.approve:
            self.approve_plan(to)
        # Look it up again, because the agent may have stopped meanwhile.
        if all(one.id != to or one.state != "stopped" for one in self.around().peers):
            return f"queued for {to}"
        await self.resume(to)
        return f"{to} had stopped and was resumed"

    async def _send_to_session(self, session: str, mail: Mail) -> str:
        is_outside = await asyncio.to_thread(self.is_outside)
        signed = structs.replace(mail, session=self.session, is_outside=is_outside)
        if session == self.session:
            raise StoreError("that is this session")
        await asyncio.to_thread(self._put_into, session, signed)
        return f"put into the mailbox of the session {session}"

    def _put_into(self, session: str, mail: Mail) -> None:
        if self.stored is not None:
            key = f"{mail.session}/{mail.sender}/{mail.id}"
            self.stored.send(session, key, msgspec.json.encode(mail))
            return
        directory = self.find_session(session)
        if directory.resolve() == self.directory.resolve():
            raise StoreError("that is this session")
        Mailbox(agent_box(directory, MAIN)).send(mail)


def _check_length(body: MailBody) -> None:
    match body:
        case Note(text=text) if not text.strip():
            raise Unsent("The message is empty.")
        case Note(text=text) | PlanRequest(plan=text) if len(text) > MAIL_CHARS:
            raise Unsent(
                f"{len(text):,} characters are more than the {MAIL_CHARS:,} a message may "
                "have; write it to a file and send its path."
            )


class Structured(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    type: Literal["shutdown_request", "shutdown_answer", "plan_request", "plan_answer"]
    request_id: Annotated[str, Meta(description="Of the request you answer.")] = ""
    approve: bool | None = None
    reason: Annotated[str, Meta(description="Needed when you do not agree.")] = ""
    plan: Annotated[str, Meta(description="What you would do, for main to agree to.")] = ""


class SendMessageInput(Input, frozen=True, kw_only=True):
    to: Annotated[str, Meta(description="A name or id, 'all', or 'session:<id>'.")]
    message: str | Structured
    summary: Annotated[str, Meta(description="Five to ten words; needed with plain words.")] = ""


def send_tool(mailer: Mailer) -> Tool:
    async def send(given: SendMessageInput, _context: ToolContext) -> Outcome:
        body = _body_of(given)
        try:
            said = await mailer.send(given.to, body)
        except Unsent as error:
            raise Refused(f"Not sent: {error}") from None
        kind = str(body.__struct_config__.tag).replace("_", " ")
        about = body.summary if isinstance(body, Note) else kind
        return Outcome(content=f"Sent: {said}.", note=f"to {given.to}: {about}")

    return team_tool("SendMessage", SendMessageInput, send)


def _body_of(given: SendMessageInput) -> MailBody:
    match given.message:
        case str(text):
            summary = one_line(given.summary)[:SUMMARY_CHARS]
            if not summary:
                raise Refused("Give a summary of five to ten words with the message.")
            return Note(text=text, summary=summary)
        case Structured(type="shutdown_request", reason=reason):
            return ShutdownRequest(request_id=new_id(), reason=reason)
        case Structured(type="plan_request", plan=plan):
            if not plan.strip():
                raise Refused("Say in plan what you would do.")
            return PlanRequest(request_id=new_id(), plan=plan)
        case Structured(type=type, request_id=id, approve=bool(approve), reason=reason) if id:
            if type == "shutdown_answer":
                return ShutdownAnswer(request_id=id, approve=approve, reason=reason)
            return PlanAnswer(request_id=id, approve=approve, feedback=reason)
        case _:
            raise Refused("An answer needs the request_id of the request, and approve.")
