"""Routes and sends messages between agents, teammates and sessions.

A message counts as sent once it is on disk or another session has accepted it.
"""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct, structs

from longhold.agent.subagents.ledger import Mailbox, UnreadMail
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
from longhold.agent.subagents.mail_socket import hand_over
from longhold.agent.subagents.names import LEAD, MAIN, is_name, is_session
from longhold.agent.subagents.registry import Known
from longhold.agent.subagents.supervisor import Supervisor
from longhold.agent.subagents.tasks import team_tool
from longhold.agent.subagents.teammates import Teammates
from longhold.core.log.protocol import StoredMail
from longhold.core.log.store import FileStore, new_id
from longhold.core.messages.text import one_line
from longhold.core.settings.private_files import private_directory
from longhold.core.tools.context import ToolContext
from longhold.core.tools.protocol import Input, Outcome, Refused, Tool
from longhold.errors import ConfigError, LongholdError, SessionNotFound, StoreError

ALL = frozenset({"all", "*"})
SESSION_PREFIX = "session:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    id: str
    name: str = ""
    state: Literal["running", "stopped", "stopped_by_user"] = "running"
    """Completed, failed and interrupted agents count as stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    me: str
    peers: tuple[Peer, ...] = ()
    """Agents of this session except the sender, newest last."""
    has_main: bool = False
    """The sender is a sub-agent, so it may write to the main agent."""
    teammates: tuple[str, ...] = ()
    is_lead: bool = False
    """The sender leads the team; its name alone does not prove that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToAgent:
    """To the mailbox of an agent here, delivered at its next round."""

    id: str
    must_resume: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToTeammate:
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToSession:
    """To another session, through its mail socket or the shared store."""

    session: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    why: str


Route: TypeAlias = ToAgent | ToTeammate | ToSession
Routes: TypeAlias = tuple[Route, ...] | Refusal


def route(to: str, body: MailBody, around: Around) -> Routes:
    if to.startswith(SESSION_PREFIX):
        return _route_to_session(to.removeprefix(SESSION_PREFIX), body)
    if to.casefold() in ALL:
        return _route_to_all(body, around)
    if not is_name(to):
        return Refusal(why=f"{to!r} is not an address.{_list_known(around)}")
    if to == MAIN and around.has_main:
        return _refuse_structured((ToAgent(id=MAIN),), body)
    agent = _agent(to, around.peers)
    if isinstance(agent, Peer):
        return _refuse_structured(_route_to_agent(agent), body)
    if isinstance(agent, Refusal):
        return agent
    if to in around.teammates:
        return _route_to_teammate(to, body, around)
    if to == around.me:
        return Refusal(why="That is yourself.")
    return Refusal(why=f"No agent here is called {to!r}.{_list_known(around)}")


def _route_to_session(session: str, body: MailBody) -> Routes:
    if not is_session(session):
        return Refusal(why=f"{session!r} is not a session id.")
    return _refuse_structured((ToSession(session=session),), body)


def _route_to_all(body: MailBody, around: Around) -> Routes:
    running = tuple(ToAgent(id=peer.id) for peer in around.peers if peer.state == "running")
    main = (ToAgent(id=MAIN),) if around.has_main else ()
    everyone = (*main, *running, *(ToTeammate(name=name) for name in around.teammates))
    if not everyone:
        return Refusal(why="No other agent is running.")
    return _refuse_structured(everyone, body)


def _agent(to: str, peers: tuple[Peer, ...]) -> Peer | Refusal | None:
    """Find an agent by id, then by name: a running one, else the newest stopped one."""
    for peer in peers:
        if peer.id == to:
            return peer
    named = [peer for peer in peers if peer.name and peer.name == to]
    running = [peer for peer in named if peer.state == "running"]
    if len(running) > 1:
        ids = ", ".join(peer.id for peer in running)
        return Refusal(why=f"Several running agents are called {to!r}; give an id: {ids}.")
    return next(iter(running or named[-1:]), None)


def _route_to_agent(peer: Peer) -> Routes:
    match peer.state:
        case "running":
            return (ToAgent(id=peer.id),)
        case "stopped":
            return (ToAgent(id=peer.id, must_resume=True),)
        case "stopped_by_user":
            return Refusal(
                why=f"The user stopped {peer.name or peer.id}; only the user starts it again."
            )


def _route_to_teammate(to: str, body: MailBody, around: Around) -> Routes:
    """Only the lead requests shutdowns and answers plans; only teammates do the converse."""
    match body:
        case Note():
            pass
        case ShutdownRequest() | PlanAnswer() if not around.is_lead:
            return Refusal(why="Only the lead sends that.")
        case ShutdownAnswer() | PlanRequest() | IdleNotice() if to != LEAD:
            return Refusal(why=f"That goes to the lead, {LEAD}.")
        case ShutdownAnswer(approve=False, reason="") | PlanAnswer(approve=False, feedback=""):
            return Refusal(why="Say why not.")
    return (ToTeammate(name=to),)


def _refuse_structured(routes: Routes, body: MailBody) -> Routes:
    if isinstance(routes, Refusal) or isinstance(body, Note):
        return routes
    return Refusal(why="Structured messages go to one teammate; write plain words instead.")


def _list_known(around: Around) -> str:
    names = [peer.name or peer.id for peer in around.peers] + list(around.teammates)
    names += [MAIN] if around.has_main else []
    return f" There are: {', '.join(dict.fromkeys(names))}." if names else " There are none."


class Unsent(Exception):
    """The message was not sent; the text is the reason."""


def agent_box(session_directory: Path, agent: str) -> Path:
    if not is_name(agent):
        raise ConfigError(f"{agent!r} is not an agent id")
    return private_directory(session_directory / "mail") / f"{agent}.jsonl"


@dataclass(slots=True, kw_only=True)
class AgentDirectory:
    """The agents that one agent can reach: its own, its siblings, and the lead."""

    id: str
    """"" for the main agent."""
    name: str
    own: Supervisor
    above: Supervisor | None
    teammates: Teammates

    @property
    def me(self) -> str:
        if self.id:
            return self.name or self.id
        return LEAD if self.teammates.team is not None else MAIN

    def around(self) -> Around:
        return Around(
            me=self.me,
            peers=tuple(self._peers()),
            has_main=bool(self.id),
            teammates=self.teammates.others(self.me),
            is_lead=self.teammates.team is not None and not self.id,
        )

    def _peers(self) -> list[Peer]:
        supervisors = [one for one in (self.above, self.own) if one is not None]
        return [
            _peer(one, supervisor)
            for supervisor in supervisors
            for one in supervisor.registry.known.values()
            if one.id != self.id and not (one.spawned.team and one.id in supervisor.running)
        ]

    async def resume(self, id: str) -> None:
        for supervisor in (self.own, self.above):
            if supervisor is not None and id in supervisor.registry.known:
                return await supervisor.resume(id)
        raise StoreError(f"there is no agent {id!r} here")


def _peer(one: Known, supervisor: Supervisor) -> Peer:
    if one.id in supervisor.running:
        return Peer(id=one.id, name=one.spawned.name)
    by_user = one.ended is not None and one.ended.by_user
    return Peer(id=one.id, name=one.spawned.name, state="stopped_by_user" if by_user else "stopped")


MAIL_CHARS = 32_000
"""Longer texts belong in a file that the message names."""


@dataclass(slots=True, kw_only=True)
class Mailer:
    session: str
    directory: Path
    around: Callable[[], Around]
    resume: Callable[[str], Awaitable[None]]
    team: Callable[[], Teammates | None] = lambda: None
    approve_plan: Callable[[str], None] = lambda _name: None
    stored: StoredMail | None = None
    find_session: Callable[[str], Path] = lambda session: FileStore().find(session).directory

    async def send(self, to: str, body: MailBody, *, id: str = "") -> str:
        """Send a message and return a line on the outcome; a repeated id is sent only once."""
        around = self.around()
        self._check_length(body)
        routes = route(to, body, around)
        if isinstance(routes, Refusal):
            raise Unsent(routes.why)
        await asyncio.to_thread(self._check_asked, to, body, around.me)
        id = id or secrets.token_hex(8)
        done: list[str] = []
        failed: list[str] = []
        for way in routes:
            try:
                done.append(await self._follow(way, around.me, body, id))
            except LongholdError as error:
                failed.append(f"not sent to {_name(way)}: {error}")
        if not done:
            raise Unsent("; ".join(failed))
        return "; ".join((*done, *failed))

    def _check_length(self, body: MailBody) -> None:
        text = body.text if isinstance(body, Note) else ""
        text = body.plan if isinstance(body, PlanRequest) else text
        if len(text) > MAIL_CHARS:
            raise Unsent(
                f"{len(text):,} characters are more than the {MAIL_CHARS:,} a message may "
                "have; write it to a file and send its path."
            )
        if isinstance(body, Note) and not text.strip():
            raise Unsent("The message is empty.")

    def _check_asked(self, to: str, body: MailBody, me: str) -> None:
        if not isinstance(body, ShutdownAnswer | PlanAnswer):
            return
        team = self.team()
        letters = UnreadMail(team.box(me)).letters() if team is not None else ()
        if not any(asks(letter.value, body, sender=to) for letter in letters if letter.value):
            raise Unsent(f"{to} has not asked that with the request_id {body.request_id!r}.")

    async def _follow(self, way: Route, me: str, body: MailBody, id: str) -> str:
        to = MAIN if isinstance(way, ToSession) else _name(way)
        mail = Mail(id=id, sender=me, to=to, body=body, at=time.time())
        match way:
            case ToAgent(id=agent, must_resume=must_resume):
                await asyncio.to_thread(Mailbox(agent_box(self.directory, agent)).send, mail)
                stopped = {one.id for one in self.around().peers if one.state == "stopped"}
                if not must_resume and agent not in stopped:  # the agent may have stopped meanwhile
                    return f"queued for {agent}"
                await self.resume(agent)
                return f"{agent} had stopped and was resumed"
            case ToTeammate(name=name):
                team = self.team()
                assert team is not None, "teammates are known from a team"
                await asyncio.to_thread(Mailbox(team.box(name)).send, mail)
                if isinstance(body, PlanAnswer) and body.approve:
                    self.approve_plan(name)
                return f"put into the mailbox of {name}"
            case ToSession(session=session):
                return await self._send_to_session(session, mail)

    async def _send_to_session(self, session: str, mail: Mail) -> str:
        signed = structs.replace(mail, session=self.session)
        if self.stored is not None:
            return await self._send_to_stored(session, signed, self.stored)
        try:
            directory = await asyncio.to_thread(self.find_session, session)
        except SessionNotFound as error:
            raise StoreError(str(error)) from error
        if directory.resolve() == self.directory.resolve():
            raise StoreError("that is this session")
        await hand_over(directory, signed)
        return f"accepted by the session {session}"

    async def _send_to_stored(self, session: str, mail: Mail, stored: StoredMail) -> str:
        if session == self.session:
            raise StoreError("that is this session")
        key, body = f"{mail.session}/{mail.sender}/{mail.id}", msgspec.json.encode(mail)
        try:
            await asyncio.to_thread(stored.send, session, key, body)
        except SessionNotFound as error:
            raise StoreError(str(error)) from error
        return f"put into the mailbox of the session {session}"


def _name(way: Route) -> str:
    match way:
        case ToAgent(id=name) | ToTeammate(name=name) | ToSession(session=name):
            return name


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
        case Structured(type="shutdown_answer") as answer:
            return _answer(answer, ShutdownAnswer)
        case Structured() as answer:
            return _answer(answer, PlanAnswer)


def _answer(
    given: Structured, kind: type[ShutdownAnswer] | type[PlanAnswer]
) -> ShutdownAnswer | PlanAnswer:
    if given.approve is None or not given.request_id:
        raise Refused("An answer needs the request_id of the request, and approve.")
    words = "feedback" if kind is PlanAnswer else "reason"
    fields = {"request_id": given.request_id, "approve": given.approve, words: given.reason}
    try:
        return msgspec.convert({"type": kind.__struct_config__.tag, **fields}, kind)
    except msgspec.ValidationError as error:
        raise Refused(f"Invalid answer: {error}.") from None
