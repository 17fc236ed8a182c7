"""Sends messages: follows the routes that `route` decided on.

Whatever the way, a message is on a disk before it counts as sent: in the mailbox of an agent of
this session, in a team's mailbox, or in the mailbox of another session that took it at its door.
Who is around and how a stopped agent is started again is known to whoever starts agents, and
given as callables. What could not be sent raises `Unsent` with the reason.
"""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from holdfast.agent.subagents.mail import (
    Mail,
    MailBody,
    Note,
    PlanAnswer,
    PlanRequest,
    ShutdownAnswer,
    asks,
)
from holdfast.agent.subagents.mail_socket import hand_over
from holdfast.agent.subagents.mailbox import Mailbox, UnreadMail
from holdfast.agent.subagents.names import MAIN, is_name
from holdfast.agent.subagents.route import (
    Around,
    Refusal,
    Route,
    ToAgent,
    ToSession,
    ToTeammate,
    route,
)
from holdfast.agent.subagents.team import AgentTeam
from holdfast.errors import ConfigError, HoldfastError, SessionNotFound, StoreError
from holdfast.log.store import FileStore
from holdfast.settings.files import private_directory


class Unsent(Exception):
    """The message went nowhere; the words say why."""


def agent_box(session_directory: Path, agent: str) -> Path:
    """Say where the mail of an agent of a session lies; `main` is the one the user talks to."""
    if not is_name(agent):
        raise ConfigError(f"{agent!r} is no agent's id")
    return private_directory(session_directory / "mail") / f"{agent}.jsonl"


def session_directory(session: str) -> Path:
    """Find where another session keeps what belongs to it."""
    return FileStore().find(session).directory


@dataclass(slots=True, kw_only=True)
class Mailer:
    """How one agent of a session writes to others."""

    session: str
    directory: Path
    """What belongs to the session beside its log."""
    around: Callable[[], Around]
    """Who is there now, as the agent that writes sees it."""
    resume: Callable[[str], Awaitable[None]] | None = None
    """Starts a stopped agent again from its log; it finds its mail in its mailbox."""
    team: Callable[[], AgentTeam | None] = lambda: None
    """The team it is in, if there is one by now."""
    limit_chars: int = 32_000
    """The setting `agents.mail_chars`."""
    find_session: Callable[[str], Path] = session_directory

    async def send(self, to: str, body: MailBody, *, id: str = "") -> str:
        """Send a message and say in a line what became of it; the same id is sent only once."""
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
            except HoldfastError as error:
                failed.append(f"not sent to {_name(way)}: {error}")
        if not done:
            raise Unsent("; ".join(failed))
        return "; ".join((*done, *failed))

    def _check_length(self, body: MailBody) -> None:
        text = body.text if isinstance(body, Note) else ""
        text = body.plan if isinstance(body, PlanRequest) else text
        if len(text) > self.limit_chars:
            raise Unsent(
                f"{len(text):,} characters are more than the {self.limit_chars:,} a message may "
                "have; write it to a file and say where that is."
            )
        if isinstance(body, Note) and not text.strip():
            raise Unsent("The message says nothing.")

    def _check_asked(self, to: str, body: MailBody, me: str) -> None:
        """Refuse an answer to what the addressee never asked the one who answers."""
        if not isinstance(body, ShutdownAnswer | PlanAnswer):
            return
        team = self.team()
        letters = UnreadMail(team.box(me)).unread() if team is not None else ()
        if not any(asks(letter.mail, body, sender=to) for letter in letters if letter.mail):
            raise Unsent(f"{to} has not asked that with the request_id {body.request_id!r}.")

    async def _follow(self, way: Route, me: str, body: MailBody, id: str) -> str:
        mail = Mail(id=id, sender=me, to=_addressee(way), body=body, at=time.time())
        match way:
            case ToAgent(id=agent, must_resume=must_resume):
                await asyncio.to_thread(Mailbox(agent_box(self.directory, agent)).send, mail)
                must_resume = must_resume or self._has_stopped(agent)  # while it was written
                return await self._resumed(agent) if must_resume else f"queued for {agent}"
            case ToTeammate(name=name):
                team = self.team()
                assert team is not None, "teammates are known from a team"
                await asyncio.to_thread(Mailbox(team.box(name)).send, mail)
                return f"put into the mailbox of {name}"
            case ToSession(session=session):
                return await self._to_session(session, mail)

    def _has_stopped(self, agent: str) -> bool:
        return any(one.id == agent and one.state == "stopped" for one in self.around().peers)

    async def _resumed(self, agent: str) -> str:
        if self.resume is None:
            raise StoreError("it has stopped and cannot be started again here")
        await self.resume(agent)
        return f"{agent} had stopped and goes on with it"

    async def _to_session(self, session: str, mail: Mail) -> str:
        try:
            directory = await asyncio.to_thread(self.find_session, session)
        except SessionNotFound as error:
            raise StoreError(str(error)) from error
        if directory.resolve() == self.directory.resolve():
            raise StoreError("that is this very session")
        signed = Mail(
            id=mail.id,
            sender=mail.sender,
            to=MAIN,
            body=mail.body,
            at=mail.at,
            session=self.session,
        )
        await hand_over(directory, signed)
        return f"taken by the session {session}"


def _addressee(way: Route) -> str:
    match way:
        case ToAgent(id=id):
            return id
        case ToTeammate(name=name):
            return name
        case ToSession():
            return MAIN


def _name(way: Route) -> str:
    return way.session if isinstance(way, ToSession) else _addressee(way)
