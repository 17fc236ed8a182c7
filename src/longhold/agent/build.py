"""Builds the main agent for a directory, and its sub-agents."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from msgspec import structs

from longhold.agent.agent import Agent, Jobs
from longhold.agent.framing import Framer, Framing
from longhold.agent.hooks import Hooks, load_hooks
from longhold.agent.instructions.gathering import ground
from longhold.agent.instructions.nearby import Nearby
from longhold.agent.mcp import McpServer, McpTools, load_servers
from longhold.agent.parts import (
    AgentParts,
    Blueprint,
    Equipment,
    Toolkit,
    references_in,
    scratchpad_of,
)
from longhold.agent.permissions import (
    AskUser,
    Gate,
    Mode,
    Permissions,
    Places,
    SettingsSection,
    denies_reading,
    load_permissions,
    load_trusted,
)
from longhold.agent.restoring import compaction_hooks
from longhold.agent.subagents.factory import equip_main
from longhold.agent.tool_guard import HookEvents, ToolGuard
from longhold.agent.tools.plan import ENTER_PLAN, EXIT_PLAN, plan_file
from longhold.agent.tools.skills import skills_at
from longhold.agent.tools.standard import STANDARD
from longhold.agent.user_notices import Notices, RoomWarning
from longhold.core.log.entries import Ran, Replied
from longhold.core.log.spending import Budget, sum_spending
from longhold.core.log.store import Store
from longhold.core.log.stores import default_store
from longhold.core.memory.session_memory import MemoryJobs
from longhold.core.messages import ToolUse
from longhold.core.models.capabilities import is_simulated
from longhold.core.models.limits import describe_guess, find_window
from longhold.core.models.protocol import Model
from longhold.core.request.lifetime import lifetime_for, lifetime_seconds
from longhold.core.request.tool_references import is_deferred
from longhold.core.settings import Settings, home, load_settings
from longhold.core.settings.private_files import private_directory
from longhold.core.stages.layers import Layers, build_layers
from longhold.core.stages.spill.spill import Spill
from longhold.core.tools.context import PlanMode, ToolContext
from longhold.core.tools.describe import MEMORY
from longhold.core.tools.environment import shell_variables
from longhold.core.tools.protocol import CALL_TOOL, Tool
from longhold.core.turn.answering import Models
from longhold.core.turn.background import Background, background_of, watch_forks
from longhold.core.turn.engine import Engine
from longhold.core.turn.fork.asking import AskFork
from longhold.core.turn.loop import Loop
from longhold.core.turn.round import Toolbox
from longhold.core.turn.telemetry import Telemetry
from longhold.core.view.window import window_for
from longhold.session.own_tools import history_over
from longhold.session.session import Session

CORE = frozenset({"Bash", "Edit", "Glob", "Grep", "Read", "Write"})


async def _fit_window(
    models: Models, settings: Settings, tools: tuple[Tool, ...]
) -> tuple[Settings, tuple[Tool, ...], dict[str, int], tuple[str, ...]]:
    """Find the models' context windows, and adapt the session to the first model's window.

    A window below `prompt.full_tokens` has no space for agents, memory and most tools.
    """
    windows, said = await _find_windows(models, settings)
    model = models.current().name
    if not settings.window.limit_tokens:
        window = replace(settings.window, limit_tokens=windows[model])
        settings = replace(settings, window=window)
    limit, full = window_for(model, settings.window).limit_tokens, settings.prompt.full_tokens
    if limit >= full:
        return settings, tools, windows, said
    small = (
        f"a window of {limit:,} tokens is small: this session has no agents, no memory and only"
        f" the core tools (prompt.full_tokens is {full:,})"
    )
    plain = replace(
        settings,
        agents=replace(settings.agents, on=False),
        memory=replace(settings.memory, on=False),
    )
    core = tuple(tool for tool in tools if tool.name in CORE)
    return plain, core, windows, (*said, small)


async def _find_windows(
    models: Models, settings: Settings
) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return each model's window (0 means the built-in table), and a line about each guess."""
    if settings.window.limit_tokens:  # the user has set it, so no request is needed
        return {}, ()
    both = filter(None, (models.current(), models.fallback))
    found = {model.name: await find_window(model, model.name) for model in both}
    guesses = [name for name, one in found.items() if not one.why]
    said = tuple(map(describe_guess, guesses))
    return {name: one.tokens for name, one in found.items()}, said


async def build_agent(
    model: Model,
    *,
    directory: Path | None = None,
    resume: str = "",
    mode: Mode | None = None,
    ask: AskUser | None = None,
    fallback: Model | None = None,
    tools: tuple[Tool, ...] = STANDARD,
    store: Store | None = None,
    settings: Settings | None = None,
    system: str = "",
    source: str = "run",
    clock: Callable[[], float] = time.time,
) -> Agent:
    """Begin or resume a session for a directory, with everything an agent needs.

    `system` replaces a new session's prompt. `source` (`chat` or `run`) selects the cache lifetime.
    """
    store, directory = store or default_store(), (directory or Path.cwd()).resolve()
    models, settings = Models(model, fallback), settings or load_settings(directory)
    settings, tools, windows, said = await _fit_window(models, settings, tools)
    servers, hooks = load_servers(directory), load_hooks(directory)
    permissions = load_permissions(directory)
    untrusted = (*permissions.untrusted, *hooks.untrusted, *servers.untrusted)
    notices, spill = Notices(kept=(*_warn_untrusted(untrusted), *hooks.skipped, *said)), Spill()
    log = store.open(resume) if resume else store.create(directory=directory)
    with log.close_on_failure():
        engine = Engine(log, settings, on_result=spill.arrive, clock=clock, windows=windows)
        notices.extend(_resume(engine, model.name, source) if resume else ())
        context = _tool_context(engine, directory, permissions, notices)
        mcp = await _connect(servers.servers, engine, notices)
    plan = Blueprint(
        engine=engine,
        spill=spill,
        models=models,
        tool_context=context,
        gate=Gate(rules=permissions.rules, mode=mode or permissions.mode, ask=ask),
        hooks=Hooks(hooks=hooks.hooks),
        budget=_budget(engine),
        notices=notices,
        tools=tools,
        mcp=mcp,
        equip=partial(equip_main, assemble=assemble, ask=ask, system=system),
        caller=source,
        begins="resume" if resume else "startup",
        is_strict=bool(untrusted),
        has_memory=settings.memory.on and all(tool.name != MEMORY for tool in tools),
    )
    return await assemble(plan)


def _budget(engine: Engine) -> Budget:
    return Budget(
        engine.settings.budget,
        session=sum_spending(engine.view.history),
        ledger=engine.log.shared.ledger,
        is_simulated=lambda: is_simulated(engine.model),
    )


def _resume(engine: Engine, model: str, source: str) -> list[str]:
    told = engine.resume()
    asked, frame, now = engine.view.asked, engine.view.frame, engine.monitor.clock()
    if asked is not None and frame is not None:
        lives = lifetime_seconds(engine.model, frame.lifetime)
        lifetime = lifetime_for(source, engine.settings.cache)
        # Once the provider's cache has expired, another lifetime costs nothing.
        if now - asked.at > lives and frame.lifetime != lifetime:
            engine.record(structs.replace(frame, n=0, at=0.0, lifetime=lifetime, rests_on=()))
    if engine.model != model:
        engine.switch(model, "chosen on resume")
    return told


def _warn_untrusted(sections: Iterable[SettingsSection]) -> Iterator[str]:
    for section in sections:
        yield f"{section.file} is not used until you trust it; `longhold trust` shows it"


async def assemble(plan: Blueprint) -> Agent:
    """Build an agent, frame a new session and run SessionStart hooks. On failure, close it."""
    try:
        return await _assemble_agent(plan)
    except BaseException:
        await plan.abandon()
        raise


async def _assemble_agent(plan: Blueprint) -> Agent:
    engine, settings = plan.engine, plan.engine.settings
    parts = _parts(plan)
    ask = watch_forks(parts.forks().ask)
    background = background_of(engine)
    memory = _memory(plan, parts, ask, background) if plan.has_memory else None
    tools = (*plan.tools, history_over(engine), *((memory.tool(),) if memory else ()))
    equipment = await plan.equip(parts, tools)
    toolkit = Toolkit(tools=equipment.tools, parts=parts)
    toolkit.fill_toolbox()  # because jobs of a resumed session fork before its first turn
    framing = _framing(parts, toolkit, equipment, memory)
    layers = _layers(plan, framing, equipment, ask, background, memory)
    stages = (
        framing.say_changes,
        *equipment.inbox,
        parts.hooks.say_asides,
        framing.bring_nearby,
        *layers.stages,
    )
    loop = Loop(
        engine=engine,
        models=plan.models,
        toolbox=parts.toolbox,
        settings=settings.loop,
        budget=plan.budget,
        stages=stages,
        after_turn=(
            *layers.after_turn,
            *((RoomWarning(parts.notices.add),) if plan.is_main else ()),
        ),
        recover=partial(layers.compact.recover, engine),
        on_stop=partial(parts.hooks.stop, plan.source),
        abort=plan.abort,
        source=plan.source,
    )
    agent = Agent(
        session=Session(engine, layers, ask=ask),
        loop=loop,
        parts=parts,
        toolkit=toolkit,
        background=background,
        abort=plan.abort,
        memory=memory,
        equipment=equipment,
        jobs=Jobs(background=background, supervisor=equipment.supervisor),
    )
    await _begin(agent, framing, plan)
    return agent


def _parts(plan: Blueprint) -> AgentParts:
    engine, context, settings = plan.engine, plan.tool_context, plan.engine.settings
    hooks = HookEvents(
        hooks=plan.hooks,
        engine=engine,
        tool_context=context,
        gate=plan.gate,
        notices=plan.notices,
        abort=plan.abort,
    )
    roots = tuple(root for root in context.more_roots if root != scratchpad_of(engine))
    place = ground(context.root, more=roots, settings=settings.instructions)
    nearby = Nearby(ground=place, trusted=load_trusted())
    known: dict[str, Tool] = {}
    guard = ToolGuard(
        gate=plan.gate, hooks=hooks, engine=engine, tool_context=context, nearby=nearby, known=known
    )
    toolbox = Toolbox(
        tools=known,
        tool_context=context,
        gate=guard.check,
        after=guard.after,
        parallel=settings.loop.parallel_tools,
    )
    return AgentParts(
        engine=engine,
        models=plan.models,
        tool_context=context,
        guard=guard,
        hooks=hooks,
        budget=plan.budget,
        notices=plan.notices,
        mcp=plan.mcp,
        known=known,
        nearby=nearby,
        toolbox=toolbox,
        is_strict=plan.is_strict,
    )


def _memory(plan: Blueprint, parts: AgentParts, ask: AskFork, background: Background) -> MemoryJobs:
    return MemoryJobs(
        engine=parts.engine,
        root=parts.tool_context.root,
        home=parts.tool_context.home,
        ask=ask,
        unasked=parts.guard.permit_unasked,
        background=background,
        notify=parts.notices.add,
        caller=plan.caller,
        is_strict=parts.is_strict,
    )


def _framing(
    parts: AgentParts, toolkit: Toolkit, equipment: Equipment, memory: MemoryJobs | None
) -> Framing:
    context, has_tool = parts.tool_context, any(tool.name == MEMORY for tool in equipment.tools)
    framer = Framer(
        ground=parts.nearby.ground,
        prompt=parts.engine.settings.prompt,
        skills=partial(skills_at, context),
        scratchpad=parts.scratchpad,
        memory=memory.section if memory and has_tool else str,
        system=equipment.system,
        more=equipment.sections,
        servers=lambda: parts.mcp.offers if parts.mcp else (),
    )
    return Framing(framer=framer, toolkit=toolkit, parts=parts)


def _layers(
    plan: Blueprint,
    framing: Framing,
    equipment: Equipment,
    ask: AskFork,
    background: Background,
    memory: MemoryJobs | None,
) -> Layers:
    parts, context, supervisor = framing.parts, plan.tool_context, equipment.supervisor
    agents = supervisor.lines if supervisor else tuple
    return build_layers(
        plan.spill,
        ask=ask,
        hooks=compaction_hooks(parts, framing, agents, is_autonomous=plan.caller != "chat"),
        background=background,
        describe=framing.toolkit.describe,
        on_cleared=lambda path: context.files.disarm(context.resolve(path)),
        notify=parts.notices.add,
        recall=memory.stage if memory else None,
        learn=memory.after_turn if memory else None,
        telemetry=Telemetry(plan.engine),
        is_main=plan.is_main,
        edits_notes=plan.is_main,
        use=plan.engine.settings.plugins.use,
    )


async def _begin(agent: Agent, framing: Framing, plan: Blueprint) -> None:
    made = None
    if agent.engine.view.frame is None:
        made = await framing.make()
        agent.session._begin(agent.model.name, made.frame, plan.caller)
    if plan.is_main:
        await agent.hooks.fire("SessionStart", {"source": plan.begins})
        if agent.memory is not None and plan.caller == "chat":
            agent.memory.remind()
    if made is not None:
        await framing.announce(made.gathered, "startup")


async def _connect(
    servers: tuple[McpServer, ...], engine: Engine, notices: Notices
) -> McpTools | None:
    """Connect to MCP servers. A session keeps its MCP tools even if its servers were removed."""
    names = {str(tool.get("name")) for tool in engine.frame.tools if not is_deferred(tool)}
    if not servers and CALL_TOOL.name not in names:
        return None
    mcp = McpTools(servers, can_refer=references_in(engine))
    notices.extend(await mcp.connect())
    mcp.load(names)
    return mcp


def _tool_context(
    engine: Engine, directory: Path, permissions: Permissions, notices: Notices
) -> ToolContext:
    pad = private_directory(scratchpad_of(engine))
    places = Places(roots=(directory, *permissions.directories), cwd=directory)
    context = ToolContext(
        root=directory,
        home=home(),
        scratch=engine.directory / "scratch",
        session=engine.log.header.session,
        more_roots=(*permissions.directories, pad),
        variables=shell_variables(os.environ, engine.settings.shell.passed),
        report=notices.tool_output,
        window_tokens=lambda: engine.fullness().window.limit_tokens,
        is_hidden=lambda path: denies_reading(permissions.rules, path, places),
    )
    if _was_planning(engine):
        return replace(context, plan=PlanMode(is_on=True, file=plan_file(context)))
    return context


def _was_planning(engine: Engine) -> bool:
    """Return whether the log ends in plan mode. A resumed session then continues planning."""
    names: dict[str, str] = {}
    is_planning = False
    for entry in engine.view.history:
        if isinstance(entry, Replied):
            names |= {block.id: block.name for block in entry.content if isinstance(block, ToolUse)}
        elif isinstance(entry, Ran) and not entry.is_error:
            name = names.get(entry.tool_use_id, "")
            is_planning = name == ENTER_PLAN.name or (is_planning and name != EXIT_PLAN.name)
    return is_planning
