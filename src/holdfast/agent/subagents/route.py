"""Where a message goes: decided from its address and who is there, without doing anything.

An address is an agent's id or name, a teammate's name, `all`, or `session:<id>`. Agents of this
session take precedence over teammates of the same name. Structured messages are exchanged between
a lead and its teammates only, never with all or with another session.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from holdfast.agent.subagents.mail import (
    IdleNotice,
    MailBody,
    Note,
    PlanAnswer,
    PlanRequest,
    ShutdownAnswer,
    ShutdownRequest,
)
from holdfast.agent.subagents.names import LEAD, MAIN, is_name, is_session

ALL = frozenset({"all", "*"})
SESSION_PREFIX = "session:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """An agent of this session, as the sender sees it."""

    id: str
    name: str = ""
    state: Literal["running", "stopped", "stopped_by_user"] = "running"
    """Completed, failed and interrupted agents count as stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """Who can be reached when a message is sent."""

    me: str
    """The name of the sender."""
    peers: tuple[Peer, ...] = ()
    """Agents of this session without the sender, newest last."""
    has_main: bool = False
    """The sender is a sub-agent and may write to the main agent."""
    teammates: tuple[str, ...] = ()
    """Without the sender."""
    is_lead: bool = False
    """The sender leads the team; its name alone proves nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToAgent:
    """Into the mailbox of an agent here; it is delivered at its next round."""

    id: str
    must_resume: bool = False
    """The agent has stopped and is started again from its log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToTeammate:
    """Into a mailbox of the team."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToSession:
    """Through the mail socket of another session on this machine, or the store of both."""

    session: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Nowhere, and why."""

    why: str


Route: TypeAlias = ToAgent | ToTeammate | ToSession
Routes: TypeAlias = tuple[Route, ...] | Refusal


def route(to: str, body: MailBody, around: Around) -> Routes:
    if to.startswith(SESSION_PREFIX):
        return _to_session(to.removeprefix(SESSION_PREFIX), body)
    if to.casefold() in ALL:
        return _to_all(body, around)
    if not is_name(to):
        return Refusal(why=f"{to!r} is not an address.{_known(around)}")
    if to == MAIN and around.has_main:
        return _unless_structured((ToAgent(id=MAIN),), body)
    agent = _agent(to, around.peers)
    if isinstance(agent, Peer):
        return _unless_structured(_to_agent(agent), body)
    if isinstance(agent, Refusal):
        return agent
    if to in around.teammates:
        return _to_teammate(to, body, around)
    if to == around.me:
        return Refusal(why="That is yourself.")
    return Refusal(why=f"No agent here is called {to!r}.{_known(around)}")


def _to_session(session: str, body: MailBody) -> Routes:
    if not is_session(session):
        return Refusal(why=f"{session!r} is not a session id.")
    return _unless_structured((ToSession(session=session),), body)


def _to_all(body: MailBody, around: Around) -> Routes:
    running = tuple(ToAgent(id=peer.id) for peer in around.peers if peer.state == "running")
    main = (ToAgent(id=MAIN),) if around.has_main else ()
    everyone = (*main, *running, *(ToTeammate(name=name) for name in around.teammates))
    if not everyone:
        return Refusal(why="No other agent is running.")
    return _unless_structured(everyone, body)


def _agent(to: str, peers: tuple[Peer, ...]) -> Peer | Refusal | None:
    """Find an agent by id, else by name: a running one before the newest that stopped."""
    for peer in peers:
        if peer.id == to:
            return peer
    named = [peer for peer in peers if peer.name and peer.name == to]
    running = [peer for peer in named if peer.state == "running"]
    if len(running) > 1:
        ids = ", ".join(peer.id for peer in running)
        return Refusal(why=f"Several running agents are called {to!r}; give an id: {ids}.")
    return next(iter(running or named[-1:]), None)


def _to_agent(peer: Peer) -> Routes:
    match peer.state:
        case "running":
            return (ToAgent(id=peer.id),)
        case "stopped":
            return (ToAgent(id=peer.id, must_resume=True),)
        case "stopped_by_user":
            return Refusal(
                why=f"The user stopped {peer.name or peer.id}; only the user starts it again."
            )


def _to_teammate(to: str, body: MailBody, around: Around) -> Routes:
    """Let the lead request shutdowns and answer plans, and teammates do the converse."""
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


def _unless_structured(routes: Routes, body: MailBody) -> Routes:
    if isinstance(routes, Refusal) or isinstance(body, Note):
        return routes
    return Refusal(why="Structured messages go to one teammate; write plain words instead.")


def _known(around: Around) -> str:
    names = [peer.name or peer.id for peer in around.peers] + list(around.teammates)
    names += [MAIN] if around.has_main else []
    return f" There are: {', '.join(dict.fromkeys(names))}." if names else " There are none."
