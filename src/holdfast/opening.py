"""Opening an agent: a session for a directory, with everything an agent needs, put together.

Settings, permissions, hooks, MCP servers, instructions and tools are found and handed to the
agent; nothing here runs after that.
"""

from importlib.resources import files
from pathlib import Path

from holdfast.agent import Agent
from holdfast.entries import Ran, Replied, Section
from holdfast.hooks import Hooks, load_hooks
from holdfast.messages import ToolUse
from holdfast.models.protocol import Model
from holdfast.permissions import Answer, Ask, Gate, Mode, Question, load_permissions
from holdfast.session import Session
from holdfast.settings import Settings, home, load_settings
from holdfast.spending import Purse, spent_in
from holdfast.store import FileStore, Store
from holdfast.tools.mcp import McpTools, load_servers
from holdfast.tools.plan import ENTER_PLAN, EXIT_PLAN, plan_file
from holdfast.tools.protocol import Tool
from holdfast.tools.skills import find_skills, listing
from holdfast.tools.standard import STANDARD
from holdfast.tools.workplace import Plan, Workplace


async def open_agent(
    model: Model,
    *,
    directory: Path | None = None,
    resume: str = "",
    mode: Mode | None = None,
    ask: Ask | None = None,
    fallback: Model | None = None,
    tools: tuple[Tool, ...] = STANDARD,
    store: Store | None = None,
    settings: Settings | None = None,
) -> Agent:
    """Begin a session for a directory, or go on with one, with everything an agent needs."""
    store = store or FileStore()
    directory = (directory or Path.cwd()).resolve()
    settings = settings or load_settings(directory)
    session = _session(model.name, resume, directory, tools, store, settings)
    permissions, plan, servers = (
        load_permissions(directory),
        load_hooks(directory),
        load_servers(directory),
    )
    agent = Agent(
        session=session,
        model=model,
        workplace=_workplace(session, directory, permissions.directories),
        gate=Gate(rules=permissions.rules, mode=mode or permissions.mode),
        hooks=Hooks(hooks=plan.hooks),
        purse=Purse(settings.budget, session=spent_in(session.view.history)),
        tools=tools,
        fallback=fallback,
        notices=[
            f"{section.file} is not trusted yet and not used; `holdfast trust` shows it"
            for section in (*permissions.untrusted, *plan.untrusted, *servers.untrusted)
        ],
    )
    if ask is not None:
        agent.gate = Gate(rules=permissions.rules, mode=agent.gate.mode, ask=_noting(agent, ask))
    if servers.servers:
        agent.mcp = McpTools(servers.servers)
        agent.notices.extend(await agent.mcp.connect())
    session.engine.stages = (agent.list_tools, agent.say_asides, *session.engine.stages)
    await agent.start("resume" if resume else "startup")
    return agent


def _session(
    model: str,
    resume: str,
    directory: Path,
    tools: tuple[Tool, ...],
    store: Store,
    settings: Settings,
) -> Session:
    if resume:
        session = Session.resume(resume, store=store, settings=settings)
        if session.view.model != model:
            session.engine.switch(model, "chosen on resume")
        return session
    prompt = (files("holdfast.cache") / "prompts" / "agent.md").read_text(encoding="utf-8").strip()
    where = f"The working directory is {directory}."
    return Session.open(
        model=model,
        system=(
            Section(name="agent", text=prompt),
            Section(name="environment", text=where),
            Section(name="skills", text=_skills(directory)),
        ),
        tools=[tool.definition() for tool in tools],
        directory=directory,
        store=store,
        settings=settings,
    )


def _skills(directory: Path) -> str:
    """Name the skills there are, as they are when the session begins."""
    known = listing(find_skills((directory / ".holdfast" / "skills", home() / "skills")))
    return f"Skills that the Skill tool brings in:\n{known}" if known else ""


def _workplace(session: Session, directory: Path, more: tuple[Path, ...]) -> Workplace:
    workplace = Workplace(
        root=directory,
        home=home(),
        scratch=session.engine.log.path.with_suffix("") / "scratch",
        session=session.id,
        more_roots=more,
    )
    if _was_planning(session):
        workplace.plan = Plan(is_on=True, file=plan_file(workplace))
    return workplace


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


def _noting(agent: Agent, ask: Ask) -> Ask:
    """Ask, and remember a no: it ends the turn."""

    async def asked(question: Question) -> Answer:
        answer = await ask(question)
        agent.was_refused = answer.choice == "no"
        return answer

    return asked
