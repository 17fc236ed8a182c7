"""Equips agents with sub-agents, which have at most their parent's permissions."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from longhold.agent.hooks import Hooks
from longhold.agent.mcp import McpTools
from longhold.agent.parts import AgentParts, Assemble, Blueprint, Equipment, references_in
from longhold.agent.permissions import Answer, AskUser, Gate, Question
from longhold.agent.subagents.agent_tool import agent_stop_tool, agent_tool
from longhold.agent.subagents.definition import (
    Definition,
    Definitions,
    load_definitions,
    mode_for,
    tools_for,
)
from longhold.agent.subagents.ledger import Delivery, agent_box
from longhold.agent.subagents.mailer import AgentDirectory, Mailer, send_tool
from longhold.agent.subagents.memory_scopes import OwnMemory, open_scope
from longhold.agent.subagents.names import MAIN
from longhold.agent.subagents.running import Order, ToolReach, Worker
from longhold.agent.subagents.supervisor import Supervisor
from longhold.agent.subagents.tasks import TaskList, prompt_text, task_tools
from longhold.agent.subagents.worker import AgentWorker, ChildBudget, ForkWorker
from longhold.agent.subagents.worktree import sweep
from longhold.agent.tools.skills import Skill, skills_at
from longhold.agent.user_notices import Notices
from longhold.core.log.cursor import last_n
from longhold.core.log.entries import Section
from longhold.core.log.protocol import StoredMail
from longhold.core.memory.memory import retry_while_busy
from longhold.core.memory.paths import agents_home
from longhold.core.memory.untrusted_input import watch_session
from longhold.core.messages import ToolUse
from longhold.core.models import open_model
from longhold.core.models.limits import find_window
from longhold.core.models.protocol import Model
from longhold.core.stages.spill.spill import Spill
from longhold.core.tools.context import ToolContext
from longhold.core.tools.describe import MEMORY
from longhold.core.tools.protocol import Tool
from longhold.core.turn.answering import Models
from longhold.core.turn.engine import Engine
from longhold.core.turn.fork.run import Forks
from longhold.core.turn.round import Allowed, Denied
from longhold.errors import LongholdError, StoreError


def briefing(
    order: Order,
    root: Path,
    *,
    pad: Path,
    skills: Sequence[Skill] = (),
    memory: str = "",
    is_planning: bool = False,
) -> str:
    parts = (
        order.definition.prompt,
        _place(order, root, pad),
        _TEAM.format(name=order.called) if order.is_teammate else "",
        _PLAN if order.is_teammate and is_planning else "",
        *(f"# {skill.name}\n\n{skill.body}" for skill in skills),
        memory,
    )
    return "\n\n".join(part.strip() for part in parts if part.strip())


def _place(order: Order, root: Path, pad: Path) -> str:
    lines = [
        "# Where you work",
        "",
        f"Your directory is {root}. Notes and other files that do not belong to the project, also "
        f"those that other agents should find, go to {pad}.",
    ]
    if order.tree is not None:
        lines.append(
            f"It is a git worktree of your own, on the branch {order.tree.record.branch}. Paths you are "
            f"given in {order.tree.record.repository} mean the same files here. Change nothing there. "
            "Commit here what is to be kept."
        )
    return "\n".join(lines)


_TEAM = (
    "# Your team\n\nYou are {name}, in a team that 'main' leads. Your answer goes "
    "nowhere by itself: tell the others what they need with SendMessage. When you have "
    "answered you wait for mail; shared tasks are found with TaskList. Asked to shut down, "
    "agree with SendMessage as soon as nothing is left half done."
)
_PLAN = (
    "# Your plan\n\nYou are in plan mode: you can read and search, and change nothing. Work out "
    "a plan, send it to 'main' with SendMessage and a message of type plan_request, and end "
    "your answer. Begin once it is approved; if it is not, change it and send it again."
)


OWN_TOOLS = frozenset(
    {
        "Agent", "AgentStop", "EnterPlan", "ExitPlan", "History", "SendMessage", "TaskClaim",
        "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "memory",
    }
)  # fmt: skip
NOT_IN_A_FORK = frozenset({"Agent", "AgentStop", "EnterPlan", "ExitPlan", "SendMessage"})
"""Tools in a fork's prefix that the fork may not use, because it would act in the parent's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentContext:
    session: str
    directory: Path
    definitions: Definitions
    slots: asyncio.Semaphore
    tasks: TaskList
    base: tuple[Tool, ...]
    ask: AskUser | None
    assemble: Assemble
    is_outside: Callable[[], bool]
    stored_mail: StoredMail | None = None
    """Mail between sessions in one store. None means mailboxes on this machine."""


def attach_subagents(
    parts: AgentParts,
    shared: SubagentContext,
    order: Order | None = None,
    above: Supervisor | None = None,
    *,
    only_back: bool = False,
) -> Equipment:
    """Give an agent its supervisor, mail and tools. Without an order it is the main agent."""
    settings = parts.engine.settings.agents
    id, name = (order.id, order.called) if order else (MAIN, MAIN)
    supervisor = Supervisor(
        engine=parts.engine,
        create=AgentFactory(parent=parts, shared=shared).create,
        definitions=shared.definitions,
        root=parts.tool_context.root,
        scratch=parts.tool_context.scratch,
        fire=parts.hooks.ask,
        slots=shared.slots,
        tasks=shared.tasks,
        tell=parts.notices.add,
        depth=order.depth if order else 0,
    )
    near = AgentDirectory(order=order, own=supervisor, above=above)
    mailer = Mailer(
        session=shared.session,
        directory=shared.directory,
        around=near.around,
        resume=near.resume,
        id=id,
        approve_plan=supervisor.approve_plan,
        stored=shared.stored_mail,
        is_outside=shared.is_outside,
    )
    stored = shared.stored_mail if id == MAIN else None
    mail = Delivery(
        agent_box(shared.directory, id), stored=stored, takes_sessions=settings.sessions_mail
    )
    frozen = {str(tool.get("name")): tool for tool in parts.engine.frame.tools}
    said = str(frozen["Agent"].get("description", "")) if "Agent" in frozen else ""
    starts = supervisor.depth < settings.depth
    tools = (
        *((agent_tool(supervisor, description=said, only_back=only_back),) if starts else ()),
        *((agent_stop_tool(supervisor),) if starts else ()),
        send_tool(mailer),
        *task_tools(shared.tasks, name, is_lead=order is None),
    )
    return Equipment(tools=tools, supervisor=supervisor, inbox=(mail, supervisor.report), mail=mail)


@dataclass(slots=True, kw_only=True)
class AgentFactory:
    parent: AgentParts
    shared: SubagentContext
    _forks: Forks | None = None

    async def create(self, order: Order, above: Supervisor) -> Worker:
        return await (self._fork(order) if order.is_fork else self._agent(order, above))

    async def _agent(self, order: Order, above: Supervisor) -> AgentWorker:
        memory = await self._own_memory(order.definition)
        try:
            agent = await self.shared.assemble(await self._blueprint(order, above, memory))
        except BaseException:
            if memory is not None:
                memory.close()
            raise
        if order.prompt:
            agent.session.user(order.prompt)
        return AgentWorker(agent, memory, lambda: self.parent.gate.mode)

    async def _own_memory(self, definition: Definition) -> OwnMemory | None:
        place, shared = self.parent.tool_context, self.shared
        limits = self.parent.engine.settings.memory
        home = agents_home(self.parent.engine.log.shared.memory, place.home)
        opening = partial(open_scope, definition, place.root, home, limits)
        store = await retry_while_busy(opening)
        if store is None:
            return None
        return OwnMemory(store, definition, session=shared.session, is_outside=shared.is_outside)

    async def _blueprint(
        self, order: Order, above: Supervisor, memory: OwnMemory | None
    ) -> Blueprint:
        parent, definition = self.parent, order.definition
        spill, model = Spill(), self._model(definition)
        known = self.parent.engine.windows
        if model.name not in known:
            known[model.name] = (await find_window(model, model.name)).tokens
        engine = self._engine(order, spill, model.name)
        if engine.model and engine.model != model.name:
            engine.switch(model.name, "the parent's model by now")
        fallback = parent.models.fallback
        lent = (parent.models.current(), fallback)
        try:
            mcp = await self._servers(order, engine)
        except BaseException:
            engine.close()
            raise
        return Blueprint(
            engine=engine,
            spill=spill,
            models=Models(model, fallback, lent=[one for one in lent if one]),
            tool_context=_tool_context(order, parent, engine),
            gate=self._gate(order),
            hooks=Hooks(hooks=(*parent.hooks.hooks.hooks, *definition.hooks)),
            budget=ChildBudget(
                limits=parent.budget.limits,
                above=parent.budget,
                engine=parent.engine,
                source=order.source,
            ),
            notices=Notices(lambda line: parent.notices.add(f"{order.called}: {line}")),
            mcp=mcp,
            equip=partial(self._equip, order=order, above=above, memory=memory),
            source=order.source,
            caller=order.source,
        )

    async def _equip(
        self,
        parts: AgentParts,
        tools: tuple[Tool, ...],
        *,
        order: Order,
        above: Supervisor,
        memory: OwnMemory | None,
    ) -> Equipment:
        attached = attach_subagents(parts, self.shared, order, above)
        root, wanted = parts.tool_context.root, order.definition.skills
        remembers = (memory.tool(parts.engine, root),) if memory else ()
        chosen = _choose_tools(order, self.shared.base, (*attached.tools, *tools, *remembers))
        has_tool = any(tool.name == MEMORY for tool in chosen)
        system = briefing(
            order,
            root,
            pad=self.parent.scratchpad,
            skills=[one for one in skills_at(parts.tool_context) if one.name in wanted],
            memory=memory.describe() if memory and has_tool else "",
            is_planning=parts.gate.mode == "plan",
        )
        return replace(attached, tools=chosen, system=system)

    def _engine(self, order: Order, spill: Spill, model: str) -> Engine:
        settings = self.parent.engine.settings_for(model)
        turns = order.definition.turns or settings.loop.max_turns
        settings = replace(settings, loop=replace(settings.loop, max_turns=turns))
        parent, begins = self.parent.engine, not order.log.exists()
        log = order.log.open(
            parent.log.header,
            directory=str(_root(order, self.parent)),
            at=last_n(parent.view.history),
        )
        engine = Engine(log, settings, on_result=spill.arrive, windows=parent.windows)
        if not begins:
            engine.resume()
        return engine

    def _model(self, definition: Definition) -> Model:
        parents = self.parent.models.current()
        if definition.model and definition.model != parents.name:
            try:
                return open_model(definition.model)
            except LongholdError as error:
                self.parent.notices.add(f"{definition.name}: {error}; {parents.name} answers")
        return parents

    def _gate(self, order: Order) -> Gate:
        """Allow at most the calls that the parent's gate allows. Prompts name the agent."""
        gate, ask = self.parent.gate, self.shared.ask
        mode = gate.mode if order.is_fork else mode_for(order.definition, gate.mode)
        return Gate(
            rules=gate.rules,
            mode=order.reach.narrow(mode),
            ask=partial(_ask_as, order.called, ask) if ask is not None else None,
            above=gate,
        )

    async def _servers(self, order: Order, engine: Engine) -> McpTools | None:
        definition, used = order.definition, order.reach.tools
        own = tuple(
            one
            for one in definition.own_servers
            if used is None or any(name.startswith(f"mcp__{one.name}__") for name in used)
        )
        mcp = McpTools(own, can_refer=references_in(engine))
        self.parent.notices.extend(await mcp.connect() if own else ())
        theirs = self.parent.mcp
        if theirs is not None:
            names = [one for one in tools_for(definition, theirs.names) if order.reach.keeps(one)]
            kept = definition.servers
            mcp.share(theirs, [one for one in names if kept is None or one.split("__")[1] in kept])
        return mcp if mcp.names else None

    async def _fork(self, order: Order) -> ForkWorker:
        parent = self.parent
        if self._forks is None:
            self._forks = parent.forks()
        gate = self._gate(order)
        worker = ForkWorker(
            order,
            engine=parent.engine,
            forks=self._forks,
            permit=partial(self._check_fork, gate),
            box=agent_box(self.shared.directory, order.id),
            reach=ToolReach(mode=gate.mode),
        )
        await worker.share()
        return worker

    async def _check_fork(self, gate: Gate, use: ToolUse, tool: Tool) -> Allowed | Denied:
        if use.name in NOT_IN_A_FORK:
            return Denied(reason=f"A fork may not use {use.name}; do the work, then report.")
        return await self.parent.guard.check_at(gate, use, tool)


async def _ask_as(name: str, ask: AskUser, question: Question) -> Answer:
    return await ask(replace(question, reason=f"the agent {name} asks: {question.reason}"))


def _choose_tools(order: Order, base: tuple[Tool, ...], own: tuple[Tool, ...]) -> tuple[Tool, ...]:
    """Choose an agent's tools, sorted by name. Agents with their own memory get the memory tool."""
    there = {tool.name: tool for tool in base if tool.name not in OWN_TOOLS}
    there |= {tool.name: tool for tool in own}
    definition = order.definition
    if definition.tools is not None and MEMORY in there:
        definition = replace(definition, tools=(*definition.tools, MEMORY))
    names = sorted(tools_for(definition, there))
    return tuple(there[name] for name in names if order.reach.keeps(name))


def _root(order: Order, parent: AgentParts) -> Path:
    return order.tree.path if order.tree is not None else parent.tool_context.root


def _tool_context(order: Order, parent: AgentParts, engine: Engine) -> ToolContext:
    place = parent.tool_context
    return ToolContext(
        root=_root(order, parent),
        home=place.home,
        scratch=order.log.directory / "scratch",
        session=order.id,
        directory=order.tree.path if order.tree is not None else place.directory,
        more_roots=place.more_roots,
        variables=place.variables,
        is_hidden=place.is_hidden,
        window_tokens=lambda: engine.fullness().window.limit_tokens,
    )


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
    frame, settings = parts.engine.view.frame, parts.engine.settings.agents
    listed = {str(tool.get("name")) for tool in frame.tools} if frame else None
    if not (settings.on if listed is None else "Agent" in listed):
        return Equipment(tools=tools, system=system)
    only_back = settings.coordinator if listed is None else listed <= COORDINATES
    directory = parts.engine.directory
    shared = SubagentContext(
        session=parts.session,
        directory=directory,
        definitions=await asyncio.to_thread(_definitions, parts),
        slots=asyncio.Semaphore(settings.at_once),
        tasks=TaskList(directory / "tasks.jsonl"),
        base=tools,
        ask=ask,
        assemble=assemble,
        is_outside=watch_session(parts.engine, is_strict=parts.is_strict),
        stored_mail=parts.engine.log.mail if settings.sessions_mail else None,
    )
    attached = attach_subagents(parts, shared, only_back=only_back)
    await _recover(parts, attached)
    own = sorted((*tools, *attached.tools), key=lambda tool: tool.name)
    if not only_back:
        return replace(attached, tools=tuple(own), system=system)
    return replace(
        attached,
        tools=tuple(tool for tool in own if tool.name in COORDINATES),
        system=system,
        sections=(Section(name="coordinator", text=prompt_text("coordinator")),),
    )


def _definitions(parts: AgentParts) -> Definitions:
    found = load_definitions(parts.tool_context.root)
    parts.notices.extend(
        f"{section.file} is used only in part until you trust it; `longhold trust` shows it"
        for section in found.untrusted
    )
    parts.notices.extend(found.skipped)
    return found


async def _recover(parts: AgentParts, attached: Equipment) -> None:
    assert attached.supervisor is not None
    attached.supervisor.reconcile()
    with suppress(StoreError):  # because without a repository there are no worktrees
        for kept in await asyncio.to_thread(sweep, parts.tool_context.root):
            parts.notices.add(
                f"an agent's work is in {kept.path} on the branch {kept.branch}: {kept.why}"
            )
