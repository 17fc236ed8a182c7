"""Gives the agent a user talks to its household: who may work for it, its mail, its door.

An agent that was put together comes in; its tools, its stages and its household are completed.
Whether there are agents at all is decided once, when a session begins, because their tools are
part of every request's prefix; a resumed session keeps what it has. What a killed process left
is put in order: worktrees nobody works in, agents nobody runs, the team they were in.
"""

import asyncio
from contextlib import suppress
from pathlib import Path

from holdfast.agent.agent import Agent
from holdfast.agent.subagents.catalogue import Definitions, load_definitions
from holdfast.agent.subagents.factory import SubagentContext, attach_subagents
from holdfast.agent.subagents.mail_socket import MailSocket
from holdfast.agent.subagents.mailbox import Mailbox
from holdfast.agent.subagents.mailer import agent_box
from holdfast.agent.subagents.names import LEAD, MAIN
from holdfast.agent.subagents.supervisor import Slots
from holdfast.agent.subagents.task_tools import told
from holdfast.agent.subagents.tasks import TaskList
from holdfast.agent.subagents.teammates import Teammates
from holdfast.agent.subagents.worktree import sweep
from holdfast.errors import StoreError
from holdfast.log.entries import Section
from holdfast.models import open_model
from holdfast.tools.permissions import AskUser
from holdfast.tools.protocol import Tool

COORDINATES = frozenset(
    {
        "Agent", "AgentStop", "History", "SendMessage", "Skill", "TaskClaim", "TaskCreate",
        "TaskGet", "TaskList", "TaskUpdate", "TodoWrite",
    }
)  # fmt: skip
"""What one that only directs others has; the rest is theirs."""


async def house(agent: Agent, ask: AskUser | None) -> tuple[Section, ...]:
    """Give an agent its household, if it is to have one; what its prompt must say goes out."""
    frame, settings = agent.engine.view.frame, agent.engine.settings.agents
    listed = {str(tool.get("name")) for tool in frame.tools} if frame else None
    if not (settings.on if listed is None else "Agent" in listed):
        return ()
    only_back = settings.coordinator if listed is None else listed <= COORDINATES
    definitions = await asyncio.to_thread(_definitions, agent)
    shared = _shared(agent, definitions, ask)
    own = attach_subagents(agent, shared, only_back=only_back)
    tools = (*agent.tools, *own)
    agent.tools = _sorted(tools if not only_back else _directing(tools))
    await _put_in_order(agent, shared)
    if settings.sessions_mail:
        await _open_door(agent, shared.directory)
    return (Section(name="coordinator", text=told("coordinator")),) if only_back else ()


def _definitions(agent: Agent) -> Definitions:
    found = load_definitions(agent.tool_context.root)
    agent.notices.extend(
        f"{section.file} is not trusted yet and only used in part; `holdfast trust` shows it"
        for section in found.untrusted
    )
    agent.notices.extend(found.skipped)
    return found


def _shared(agent: Agent, definitions: Definitions, ask: AskUser | None) -> SubagentContext:
    directory = agent.engine.log.path.with_suffix("")
    return SubagentContext(
        session=agent.session.id,
        directory=directory,
        definitions=definitions,
        slots=Slots(agent.engine.settings.agents.at_once),
        teammates=Teammates(session=agent.session.id, tasks=TaskList(directory / "tasks.jsonl")),
        base=agent.tools,
        ask=ask,
        open_model=open_model,
    )


def _sorted(tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
    return tuple(sorted(tools, key=lambda tool: tool.name))


def _directing(tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
    return tuple(tool for tool in tools if tool.name in COORDINATES)


async def _put_in_order(agent: Agent, shared: SubagentContext) -> None:
    """Find what a killed process left: agents nobody runs, their team, their worktrees."""
    assert agent.supervisor is not None
    agent.supervisor.reconcile()
    with suppress(StoreError):  # a team that cannot be read is left as it is
        team = await asyncio.to_thread(shared.teammates.recover)
        if team is not None:
            shared.mails[MAIN].also(team.box(LEAD))
    with suppress(StoreError):  # no repository, no worktrees
        for kept in await asyncio.to_thread(sweep, agent.tool_context.root):
            agent.notices.append(
                f"an agent's work is in {kept.path} on the branch {kept.branch}: {kept.why}"
            )


async def _open_door(agent: Agent, directory: Path) -> None:
    """Let other sessions leave mail; a session that cannot be reached works all the same."""
    assert agent.supervisor is not None
    box = Mailbox(agent_box(directory, MAIN))
    door = MailSocket(directory, box.send)
    try:
        await door.open()
    except (StoreError, OSError) as error:
        agent.notices.append(f"other sessions cannot write to this one: {error}")
        return
    agent.supervisor.door = door
