"""Makes the agents that an agent starts, with no more than their parent may.

An order comes in; an agent on a log of its own goes out as a worker: the parent's tools less what
its definition leaves out, the parent's permissions at most, questions put to whom the parent asks,
calls paid from the parent's purse. A fork is the parent itself on a prefix of its own. `SubagentContext`
is what all agents of a session share, `attach_subagents` gives one of them its household, its mail and the
tools for both.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from holdfast.agent.agent import Agent
from holdfast.agent.compaction_hooks import AgentCompactionHooks, history_of
from holdfast.agent.start import begin, remember_refusals, scratchpad_of
from holdfast.agent.subagents import scopes
from holdfast.agent.subagents.agent_tool import agent_stop_tool, agent_tool
from holdfast.agent.subagents.briefing import briefing
from holdfast.agent.subagents.catalogue import Definitions
from holdfast.agent.subagents.child_budget import ChildBudget
from holdfast.agent.subagents.definition import Definition, mode_for, tools_for
from holdfast.agent.subagents.delivery import Delivery
from holdfast.agent.subagents.directory import AgentDirectory
from holdfast.agent.subagents.fork_worker import ForkWorker
from holdfast.agent.subagents.mailer import Mailer, agent_box
from holdfast.agent.subagents.names import LEAD, MAIN
from holdfast.agent.subagents.order import Order, ToolReach, Worker
from holdfast.agent.subagents.send_tool import send_tool
from holdfast.agent.subagents.supervisor import Slots, Supervisor
from holdfast.agent.subagents.task_tools import task_tools
from holdfast.agent.subagents.teammates import Teammates
from holdfast.agent.subagents.worker import AgentWorker, Borrowed
from holdfast.errors import HoldfastError
from holdfast.hooks import Hooks
from holdfast.log import Header, Log
from holdfast.memory.store import MemoryStore
from holdfast.messages import ToolUse
from holdfast.models.protocol import Model
from holdfast.session import Session
from holdfast.tools.context import ToolContext
from holdfast.tools.mcp import McpTools
from holdfast.tools.permissions import Answer, AskUser, Gate, Question
from holdfast.tools.protocol import Tool
from holdfast.tools.skill import skills_at
from holdfast.turn.fork import Forks
from holdfast.turn.round import Allowed, Denied

OWN_TOOLS = frozenset(
    {
        "Agent", "AgentStop", "EnterPlan", "ExitPlan", "History", "SendMessage", "TaskClaim",
        "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "memory",
    }
)  # fmt: skip
"""Tools that belong to one agent alone: each gets those of its own."""
NOT_IN_A_FORK = frozenset({"Agent", "AgentStop", "EnterPlan", "ExitPlan", "SendMessage"})
"""They would act in the parent's name: the fork lists them, as its prefix does, and may not."""


@dataclass(slots=True, kw_only=True)
class SubagentContext:
    """What all agents of a session share."""

    session: str
    directory: Path
    """What belongs to the session beside its log."""
    definitions: Definitions
    slots: Slots
    teammates: Teammates
    base: tuple[Tool, ...]
    """The tools there are, before anybody's are left out."""
    ask: AskUser | None
    open_model: Callable[[str], Model]
    mails: dict[str, Delivery] = field(default_factory=dict)


def attach_subagents(
    agent: Agent,
    shared: SubagentContext,
    *,
    order: Order | None = None,
    above: Supervisor | None = None,
    only_back: bool = False,
) -> tuple[Tool, ...]:
    """Give an agent its household, its mail, and the tools for both; these go out."""
    id, name = (order.id, order.called) if order else (MAIN, MAIN)
    hiring = AgentFactory(parent=agent, shared=shared)
    supervisor = Supervisor(
        engine=agent.engine,
        hire=hiring.hire,
        definitions=shared.definitions,
        root=agent.tool_context.root,
        scratch=agent.tool_context.scratch,
        fire=agent.ask_hooks,
        slots=shared.slots,
        teammates=shared.teammates,
        tell=agent.notify,
        depth=order.depth if order else 0,
    )
    near = AgentDirectory(
        id=order.id if order else "",
        name=order.name if order else "",
        own=supervisor,
        above=above,
        teammates=shared.teammates,
    )
    post = Mailer(
        session=shared.session,
        directory=shared.directory,
        around=near.around,
        resume=near.resume,
        team=lambda: shared.teammates.team,
        limit_chars=agent.engine.settings.agents.mail_chars,
    )
    mail = shared.mails[id] = Delivery(agent_box(shared.directory, id))
    agent.supervisor = supervisor
    agent.inbox_stages = (mail, supervisor.report)
    frozen = {str(tool.get("name")): tool for tool in agent.engine.frame.tools}
    said = str(frozen["Agent"].get("description", "")) if "Agent" in frozen else ""
    starts = supervisor.depth < agent.engine.settings.agents.depth
    return (
        *((agent_tool(supervisor, description=said, only_back=only_back),) if starts else ()),
        *((agent_stop_tool(supervisor),) if starts else ()),
        send_tool(post),
        *task_tools(shared.teammates.tasks, name, is_lead=order is None),
    )


@dataclass(slots=True, kw_only=True)
class AgentFactory:
    """Makes the agents that one agent starts."""

    parent: Agent
    shared: SubagentContext
    _forks: Forks | None = None

    async def hire(self, order: Order) -> Worker:
        """Make the worker that an order asks for."""
        if order.is_teammate:
            self._open_team_box()
        return await (self._fork(order) if order.is_fork else self._agent(order))

    def _open_team_box(self) -> None:
        team = self.shared.teammates.team
        if team is not None:
            self.shared.mails[MAIN].also(team.box(LEAD))

    async def _agent(self, order: Order) -> AgentWorker:
        agent = self._put_together(order, self._session(order))
        try:
            return await self._opened(order, agent)
        except BaseException:
            await agent.close("agent")
            raise

    def _session(self, order: Order) -> Session:
        """Begin an agent's log under its parent's, or go on with it."""
        settings = self.parent.engine.settings
        turns = order.definition.turns or settings.loop.max_turns
        settings = replace(settings, loop=replace(settings.loop, max_turns=turns))
        if order.log.exists():
            session = Session(Log.open(order.log), settings)
            session.engine.repair()
            return session
        history = self.parent.engine.view.history
        header = Header(
            session=order.id,
            created=time.time(),
            directory=str(_root(order, self.parent)),
            parent=self.parent.session.id,
            parent_entry=history[-1].n if history else 0,
        )
        return Session(Log.create(order.log, header), settings)

    def _put_together(self, order: Order, session: Session) -> Agent:
        parent, definition = self.parent, order.definition
        agent = Agent(
            session=session,
            model=self._model(definition),
            tool_context=_tool_context(order, parent),
            gate=parent.gate,
            hooks=Hooks(hooks=(*parent.hooks.hooks, *definition.hooks)),
            budget=self._allowance(order),
            fallback=Borrowed(parent.fallback) if parent.fallback else None,
            listener=lambda line: parent.notify(f"{order.called}: {line}"),
            source=order.source,
        )
        agent.gate = self._gate(order, agent)
        if session.view.model and session.view.model != agent.model.name:
            session.engine.switch(agent.model.name, "the parent's model by now")
        return agent

    async def _opened(self, order: Order, agent: Agent) -> AgentWorker:
        parent, definition = self.parent, order.definition
        agent.mcp = await self._servers(order)
        store = self._memory(definition)
        own = attach_subagents(agent, self.shared, order=order, above=parent.supervisor)
        own = (*own, history_of(agent), *((scopes.tool_over(store),) if store else ()))
        agent.tools = _chosen(order, self.shared.base, own)
        AgentCompactionHooks(agent).attach()
        skills = [one for one in skills_at(agent.tool_context) if one.name in definition.skills]
        text = briefing(
            order,
            agent.tool_context.root,
            pad=scratchpad_of(parent.session),
            skills=skills,
            memory=scopes.section_over(store) if store else "",
        )
        await begin(agent, text, order.source, "startup")
        if order.prompt:
            agent.session.user(order.prompt)
        mail = self.shared.mails[order.id]
        team = self.shared.teammates.team
        if order.is_teammate and team is not None:
            mail.also(team.box(order.called))
        return AgentWorker(agent, mail, store.close if store else _nothing)

    def _model(self, definition: Definition) -> Model:
        """Open the model a definition names; the parent's answers if that cannot be had."""
        if definition.model and definition.model != self.parent.model.name:
            try:
                return self.shared.open_model(definition.model)
            except HoldfastError as error:
                self.parent.notify(f"{definition.name}: {error}; {self.parent.model.name} answers")
        return Borrowed(self.parent.model)

    def _allowance(self, order: Order) -> ChildBudget:
        parent = self.parent
        return ChildBudget(
            parent.budget.limits, above=lambda: (parent.budget, parent.engine), source=order.source
        )

    def _gate(self, order: Order, agent: Agent | None) -> Gate:
        """Let through what the parent's gate would at most; questions say who asks."""
        gate, ask = self.parent.gate, self.shared.ask
        if ask is not None:
            ask = prefixed(order.called, ask)
            ask = remember_refusals(agent, ask) if agent is not None else ask
        mode = gate.mode if order.is_fork else mode_for(order.definition, gate.mode)
        return Gate(rules=gate.rules, mode=order.reach.narrowed(mode), ask=ask, above=gate)

    async def _servers(self, order: Order) -> McpTools | None:
        """Reach the servers that are the agent's own; those of its parent it uses along."""
        definition = order.definition
        own = tuple(one for one in definition.own_servers if _had(order.reach, one.name))
        mcp = McpTools(own)
        for problem in await mcp.connect() if own else ():
            self.parent.notify(problem)
        theirs = self.parent.mcp
        if theirs is not None:
            names = [one for one in tools_for(definition, theirs.names) if order.reach.keeps(one)]
            kept = definition.servers
            mcp.share(
                theirs,
                [one for one in names if kept is None or one.split("__")[1] in kept],
            )
        return mcp if mcp.names else None

    def _memory(self, definition: Definition) -> MemoryStore | None:
        place = self.parent.tool_context
        return scopes.open_scope(
            definition, place.root, place.home, self.parent.engine.settings.memory
        )

    async def _fork(self, order: Order) -> ForkWorker:
        parent = self.parent
        if self._forks is None:
            self._forks = parent.forks(asyncio.Event())  # in the background they outlive an abort
        gate = self._gate(order, None)
        worker = ForkWorker(
            order,
            engine=parent.engine,
            forks=self._forks,
            permit=partial(self._pass_fork, gate),
            box=agent_box(self.shared.directory, order.id),
            reach=ToolReach(mode=gate.mode),
        )
        await worker.share()
        return worker

    async def _pass_fork(self, gate: Gate, use: ToolUse, tool: Tool) -> Allowed | Denied:
        if use.name in NOT_IN_A_FORK:
            return Denied(reason=f"A fork may not use {use.name}; do the work, then report.")
        return await self.parent.pass_at(gate, use, tool)


def prefixed(name: str, ask: AskUser) -> AskUser:
    """Ask in an agent's name, so that the person knows whom they answer."""

    async def asked(question: Question) -> Answer:
        return await ask(replace(question, reason=f"the agent {name} asks: {question.reason}"))

    return asked


def _had(reach: ToolReach, server: str) -> bool:
    """Say whether an agent used a server of its own when it was started."""
    return reach.tools is None or any(one.startswith(f"mcp__{server}__") for one in reach.tools)


def _chosen(order: Order, base: tuple[Tool, ...], own: tuple[Tool, ...]) -> tuple[Tool, ...]:
    """Choose an agent's tools, sorted as requests list them."""
    there = {tool.name: tool for tool in base if tool.name not in OWN_TOOLS}
    there |= {tool.name: tool for tool in own}
    names = sorted(tools_for(order.definition, there))
    return tuple(there[name] for name in names if order.reach.keeps(name))


def _root(order: Order, parent: Agent) -> Path:
    return order.tree.path if order.tree is not None else parent.tool_context.root


def _tool_context(order: Order, parent: Agent) -> ToolContext:
    """Say where an agent works: with its parent, or in its worktree, on commands of its own."""
    place = parent.tool_context
    return ToolContext(
        root=_root(order, parent),
        home=place.home,
        scratch=order.log.with_suffix("") / "scratch",
        session=order.id,
        directory=order.tree.path if order.tree is not None else place.directory,
        more_roots=place.more_roots,
        variables=place.variables,
    )


def _nothing() -> None:
    """Let nothing go."""
