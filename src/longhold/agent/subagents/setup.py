"""Sets up the main agent's sub-agents, mailbox and mail socket, and cleans up after a kill.

Agents are enabled once per session, because their tools are part of the cached prefix.
"""

import asyncio
from contextlib import suppress
from dataclasses import replace

from longhold.agent.parts import AgentParts, Assemble, Equipment
from longhold.agent.permissions import AskUser
from longhold.agent.subagents.definition_files import Definitions, load_definitions
from longhold.agent.subagents.factory import Place, SubagentContext, attach_subagents
from longhold.agent.subagents.ledger import Mailbox
from longhold.agent.subagents.mail_socket import MailSocket
from longhold.agent.subagents.mailer import agent_box
from longhold.agent.subagents.names import LEAD, MAIN
from longhold.agent.subagents.supervisor import Slots
from longhold.agent.subagents.tasks import TaskList, prompt_text
from longhold.agent.subagents.teammates import Teammates
from longhold.agent.subagents.worktree import sweep
from longhold.core.log.entries import Section
from longhold.core.log.protocol import StoredMail
from longhold.core.memory.untrusted_input import watch_session
from longhold.core.models import open_model
from longhold.core.tools.protocol import Tool
from longhold.core.turn.engine import Engine
from longhold.errors import StoreError

COORDINATES = frozenset(
    {
        "Agent", "AgentStop", "History", "SendMessage", "Skill", "TaskClaim", "TaskCreate",
        "TaskGet", "TaskList", "TaskUpdate", "TodoWrite",
    }
)  # fmt: skip


async def equip_main(
    parts: AgentParts,
    tools: tuple[Tool, ...],
    *,
    assemble: Assemble,
    ask: AskUser | None,
    system: str,
) -> Equipment:
    """Complete the main agent's tools, with agents and mail if enabled."""
    frame, settings = parts.engine.view.frame, parts.engine.settings.agents
    listed = {str(tool.get("name")) for tool in frame.tools} if frame else None
    if not (settings.on if listed is None else "Agent" in listed):
        return Equipment(tools=tools, system=system)
    only_back = settings.coordinator if listed is None else listed <= COORDINATES
    definitions = await asyncio.to_thread(_definitions, parts)
    shared = _make_context(parts, definitions, tools, ask, assemble)
    attached = attach_subagents(
        parts,
        shared,
        Place(only_back=only_back, mail_socket=_mail_socket(parts)),
    )
    await _recover(parts, attached, shared)
    own = [t for t in (*tools, *attached.tools) if not only_back or t.name in COORDINATES]
    return replace(
        attached,
        tools=tuple(sorted(own, key=lambda tool: tool.name)),
        system=system,
        sections=(Section(name="coordinator", text=prompt_text("coordinator")),)
        if only_back
        else (),
    )


def _definitions(parts: AgentParts) -> Definitions:
    found = load_definitions(parts.tool_context.root)
    parts.notices.extend(
        f"{section.file} is not trusted yet and only used in part; `longhold trust` shows it"
        for section in found.untrusted
    )
    parts.notices.extend(found.skipped)
    return found


def _make_context(
    parts: AgentParts,
    definitions: Definitions,
    tools: tuple[Tool, ...],
    ask: AskUser | None,
    assemble: Assemble,
) -> SubagentContext:
    directory = parts.engine.directory
    return SubagentContext(
        session=parts.session,
        directory=directory,
        definitions=definitions,
        slots=Slots(parts.engine.settings.agents.at_once),
        teammates=Teammates(session=parts.session, tasks=TaskList(directory / "tasks.jsonl")),
        base=tools,
        ask=ask,
        open_model=open_model,
        assemble=assemble,
        is_outside=watch_session(parts.engine),
        stored_mail=_stored_mail(parts.engine),
    )


def _stored_mail(engine: Engine) -> StoredMail | None:
    return engine.log.mail if engine.settings.agents.sessions_mail else None


def _mail_socket(parts: AgentParts) -> MailSocket | None:
    if not parts.engine.settings.agents.sessions_mail or _stored_mail(parts.engine) is not None:
        return None
    directory = parts.engine.directory
    return MailSocket(directory, Mailbox(agent_box(directory, MAIN)).send)


async def _recover(parts: AgentParts, attached: Equipment, shared: SubagentContext) -> None:
    """Clean up after a killed process and open the mail socket; a socket failure is only reported."""
    assert attached.supervisor is not None
    attached.supervisor.reconcile()
    with suppress(StoreError):  # an unreadable team is left alone
        team = await asyncio.to_thread(shared.teammates.recover)
        if team is not None:
            shared.mails[MAIN].also(team.box(LEAD))
    with suppress(StoreError):  # no repository, no worktrees
        for kept in await asyncio.to_thread(sweep, parts.tool_context.root):
            parts.notices.add(
                f"an agent's work is in {kept.path} on the branch {kept.branch}: {kept.why}"
            )
    try:
        await attached.supervisor.open_mail_socket()
    except (StoreError, OSError) as error:
        parts.notices.add(f"other sessions cannot write to this one: {error}")
