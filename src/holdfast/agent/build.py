"""Opening an agent: a session for a directory, with everything an agent needs, put together.

Settings, permissions, hooks, MCP servers, instructions and tools are found and handed to the
agent; nothing here runs after that.
"""

from pathlib import Path

from holdfast.agent.agent import Agent
from holdfast.agent.compaction_hooks import AgentCompactionHooks, history_of
from holdfast.agent.memory_jobs import remember
from holdfast.agent.start import begin, remember_refusals, scratchpad_of
from holdfast.agent.subagents.setup import house
from holdfast.hooks import Hooks, load_hooks
from holdfast.log.entries import Ran, Replied
from holdfast.log.spending import Budget, spent_in
from holdfast.log.store import FileStore, Store
from holdfast.messages import ToolUse
from holdfast.models.protocol import Model
from holdfast.session import Session
from holdfast.settings import Settings, home, load_settings
from holdfast.tools.context import PlanMode, ToolContext
from holdfast.tools.mcp import McpServer, McpTools, load_servers
from holdfast.tools.permissions import AskUser, Gate, Mode, load_permissions
from holdfast.tools.plan import ENTER_PLAN, EXIT_PLAN, plan_file
from holdfast.tools.protocol import Tool
from holdfast.tools.standard import STANDARD


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
) -> Agent:
    """Begin a session for a directory, or go on with one, with everything an agent needs.

    `system` replaces the whole system prompt of a new session; `source` says who asks, `chat`
    or `run`, which decides how long the provider is to keep the prompt.
    """
    store = store or FileStore()
    directory = (directory or Path.cwd()).resolve()
    settings = settings or load_settings(directory)
    permissions, plan = load_permissions(directory), load_hooks(directory)
    servers = load_servers(directory)
    session = _session(model.name, resume, directory, store, settings)
    agent = Agent(
        session=session,
        model=model,
        tool_context=_tool_context(session, directory, permissions.directories),
        gate=Gate(rules=permissions.rules, mode=mode or permissions.mode),
        hooks=Hooks(hooks=plan.hooks),
        budget=Budget(settings.budget, session=spent_in(session.view.history)),
        tools=tools,
        fallback=fallback,
        notices=[
            f"{section.file} is not trusted yet and not used; `holdfast trust` shows it"
            for section in (*permissions.untrusted, *plan.untrusted, *servers.untrusted)
        ],
    )
    if ask is not None:
        agent.gate = Gate(
            rules=permissions.rules, mode=agent.gate.mode, ask=remember_refusals(agent, ask)
        )
    agent.tools = (*agent.tools, history_of(agent))
    remember(agent, source)
    AgentCompactionHooks(agent).attach()
    await _connect(agent, servers.servers)
    how = "resume" if resume else "startup"
    await begin(agent, system, source, how, await house(agent, ask))
    return agent


async def _connect(agent: Agent, servers: tuple[McpServer, ...]) -> None:
    """Reach the MCP servers; tools that the session had loaded are loaded again."""
    if servers:
        agent.mcp = McpTools(servers)
        agent.notices.extend(await agent.mcp.connect())
        agent.mcp.load(str(tool.get("name")) for tool in agent.engine.frame.tools)


def _session(model: str, resume: str, directory: Path, store: Store, settings: Settings) -> Session:
    """Open a session's log; a new one gets its frame once everything in it is known."""
    if not resume:
        return Session(store.create(directory=directory), settings)
    session = Session.resume(resume, store=store, settings=settings)
    if session.view.model != model:
        session.engine.switch(model, "chosen on resume")
    return session


def _tool_context(session: Session, directory: Path, more: tuple[Path, ...]) -> ToolContext:
    pad = scratchpad_of(session)
    pad.mkdir(parents=True, exist_ok=True, mode=0o700)
    tool_context = ToolContext(
        root=directory,
        home=home(),
        scratch=session.engine.log.path.with_suffix("") / "scratch",
        session=session.id,
        more_roots=(*more, pad),
    )
    if _was_planning(session):
        tool_context.plan = PlanMode(is_on=True, file=plan_file(tool_context))
    return tool_context


def _was_planning(session: Session) -> bool:
    """Say whether the log ends inside a plan: a session resumed there goes on planning."""
    names: dict[str, str] = {}
    is_planning = False
    for entry in session.view.history:
        if isinstance(entry, Replied):
            names |= {block.id: block.name for block in entry.content if isinstance(block, ToolUse)}
        elif isinstance(entry, Ran) and not entry.is_error:
            name = names.get(entry.tool_use_id, "")
            is_planning = name == ENTER_PLAN.name or (is_planning and name != EXIT_PLAN.name)
    return is_planning
