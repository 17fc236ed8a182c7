"""The Agent and AgentStop tools. A session keeps their cached description on resume."""

import secrets
from typing import Annotated, Literal

from msgspec import Meta

from longhold.agent.subagents.definition import FORK, listing
from longhold.agent.subagents.names import check_agent_name
from longhold.agent.subagents.running import Order
from longhold.agent.subagents.supervisor import Supervisor
from longhold.agent.subagents.tasks import prompt_text, team_tool
from longhold.core.messages.text import one_line
from longhold.core.tools.context import ToolContext
from longhold.core.tools.protocol import Input, Outcome, Refused, Tool, make_tool
from longhold.core.turn.fork.asking import check_may_fork
from longhold.core.turn.round import running_call
from longhold.errors import ConfigError

TASK_CHARS = 200


class AgentInput(Input, frozen=True, kw_only=True):
    description: Annotated[str, Meta(description="The task in three to five words.")]
    prompt: Annotated[str, Meta(description="The task, with all the agent must know.")]
    agent: Annotated[str, Meta(description="Which one, as listed, or 'fork'.")] = "general"
    name: Annotated[str, Meta(description="What to call it in messages.")] = ""
    run_in_background: bool = False
    isolation: Literal["", "worktree"] = ""
    teammate: Annotated[bool, Meta(description="Keep it for further tasks; needs a name.")] = False


class AgentStopInput(Input, frozen=True, kw_only=True):
    agent: Annotated[str, Meta(description="Its id or name.")]


def agent_tool(supervisor: Supervisor, *, description: str = "", only_back: bool = False) -> Tool:
    """Make the Agent tool. With `only_back`, agents run only in the background."""

    async def start(given: AgentInput, tool_context: ToolContext) -> Outcome:
        order = _make_order(given, supervisor, only_back=only_back)
        if order.is_fork:
            check_may_fork(tool_context)
            if given.isolation == "worktree" or only_back:
                raise Refused("A coordinator cannot fork, and a fork has no worktree.")
        isolation = given.isolation or ("" if order.is_fork else order.definition.isolation)
        return await supervisor.start(order, running_call(), is_isolated=isolation == "worktree")

    known = listing(supervisor.definitions.known)
    return make_tool(
        "Agent",
        AgentInput,
        start,
        kind="other",
        is_read_only=True,  # several may run in parallel, each with its own permission checks
        limit_chars=supervisor.limits.output_chars,
        description=description or f"{prompt_text('Agent')}\n\nAgents:\n{known}",
    )


def agent_stop_tool(supervisor: Supervisor) -> Tool:
    async def stop(given: AgentStopInput, _tool_context: ToolContext) -> Outcome:
        running = ", ".join(supervisor.running) or "none"
        if not await supervisor.stop(given.agent):
            raise Refused(f"{given.agent!r} is not a running agent; running: {running}.")
        return Outcome(content=f"{given.agent} was stopped.", note=f"{given.agent} stopped")

    return team_tool("AgentStop", AgentStopInput, stop)


def _make_order(given: AgentInput, supervisor: Supervisor, *, only_back: bool = False) -> Order:
    is_fork = given.agent.casefold() == FORK
    definition = supervisor.definitions.find("general" if is_fork else given.agent)
    if definition is None:
        known = ", ".join(one.name for one in supervisor.definitions.known)
        raise Refused(f"There is no agent {given.agent!r}; there are {known} and {FORK}.")
    if not given.prompt.strip():
        raise Refused("The prompt is empty; an agent knows only what is in it.")
    name = _free_name(given.name, supervisor) if given.name else ""
    if given.teammate and (not name or is_fork or supervisor.depth):
        raise Refused(
            "A teammate needs a name, cannot be a fork, and is started by the main agent only."
        )
    kind = FORK if is_fork else definition.name
    id = f"{kind}-{secrets.token_hex(3)}"
    return Order(
        id=id,
        definition=definition,
        prompt=given.prompt,
        log=supervisor.log_of(id),
        task=one_line(given.description)[:TASK_CHARS],
        name=name,
        depth=supervisor.depth + 1,
        is_background=given.run_in_background
        or given.teammate
        or only_back
        or (definition.is_background and not is_fork),
        is_fork=is_fork,
        is_teammate=given.teammate,
    )


def _free_name(name: str, supervisor: Supervisor) -> str:
    try:
        check_agent_name(name, "an agent")
    except ConfigError as error:
        raise Refused(f"{error}.") from None
    orders = (one.order for one in supervisor.running.values())
    if name.casefold() in {called.casefold() for one in orders for called in (one.id, one.name)}:
        raise Refused(f"Another agent is called {name!r}; choose another name.")
    return name
