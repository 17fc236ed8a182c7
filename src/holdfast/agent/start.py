"""An agent's first moments: its frame, its stages, and who is asked on its behalf.

An agent that was put together comes in; one that can work goes out. The same for the agent a
user talks to and for those that it starts; what they are made of is `opening`'s and `hiring`'s.
"""

from pathlib import Path

from holdfast.agent.agent import Agent
from holdfast.log.entries import Section
from holdfast.request.frame import Framer, make_frame
from holdfast.request.instructions import Nearby, ground
from holdfast.request.prompt.sections import Volatile, servers_text
from holdfast.session import Session
from holdfast.tools.mcp import McpTools
from holdfast.tools.permissions import Answer, AskUser, Question, trusted


async def begin(
    agent: Agent, system: str, source: str, how: str, more: tuple[Section, ...] = ()
) -> None:
    """Give a session that has no frame its frame, and let hooks know that it begins."""
    engine = agent.engine
    agent.framer = _framer(agent, system, more)
    agent.nearby = Nearby(ground=agent.framer.ground, trusted=trusted())
    made = None
    if engine.view.frame is None:
        made = await make_frame(agent.framer, agent.definitions())
        agent.session.begin(agent.model.name, made.frame, source)
    agent.session.stages.notes.can_edit = agent.source == "main"
    clearing = agent.session.clearing
    clearing.describe, clearing.forget = agent.described, agent.mark_unread
    clearing.tell = agent.notify
    engine.stages = (
        agent.list_tools,
        *agent.inbox_stages,
        agent.say_asides,
        agent.bring_nearby,
        *engine.stages,
    )
    if agent.source == "main":
        await agent.start(how)
    if made is not None:
        await agent.tell_loaded(made.gathered, "startup")


def _framer(agent: Agent, system: str, more: tuple[Section, ...]) -> Framer:
    """Say where the frame of this agent's session is found."""
    settings, place, mcp = agent.engine.settings, agent.tool_context, agent.mcp
    pad = scratchpad_of(agent.session)
    roots = tuple(root for root in place.more_roots if root != pad)
    return Framer(
        ground=ground(place.root, more=roots, settings=settings.instructions),
        prompt=settings.prompt,
        skills=(place.root / ".holdfast" / "skills", place.home / "skills"),
        scratchpad=pad,
        memory=agent.memory,
        system=system,
        more=more,
        volatile=(_on_servers(mcp),) if mcp is not None else (),
    )


def _on_servers(mcp: McpTools) -> Volatile:
    return Volatile(
        name="mcp",
        reason="servers come and go; a tool that is gone must not be offered, nor a new one kept back",
        compute=lambda: servers_text(mcp.offers),
    )


def scratchpad_of(session: Session) -> Path:
    """Say where an agent may leave things for itself and those who work for it."""
    return session.engine.log.path.with_suffix("") / "scratchpad"


def remember_refusals(agent: Agent, ask: AskUser) -> AskUser:
    """Ask, and remember a no: it ends the turn."""

    async def asked(question: Question) -> Answer:
        answer = await ask(question)
        agent.was_refused = answer.choice == "no"
        return answer

    return asked
