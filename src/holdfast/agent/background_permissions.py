"""What a session itself lets pass without asking anyone, for forks that work beside it.

Hooks speak first, as before every tool; then the user's rules decide, in the narrowest mode
whatever the session's is: a user who lets the agent do anything still watches it, and nobody
watches these. What would have to be asked is denied. What passes has the input hooks left it.
"""

from pathlib import Path

from holdfast.agent.agent import Agent
from holdfast.messages import JsonObject, ToolUse
from holdfast.tools.permissions import Gate, Places
from holdfast.tools.permissions.gate import combine
from holdfast.tools.protocol import Tool
from holdfast.turn.fork import Permit
from holdfast.turn.round import Allowed, Denied


def judged_by(agent: Agent, readable: tuple[Path, ...] = ()) -> Permit:
    """Make a permit of what an agent may do unasked; `readable` may be read besides."""

    async def judged(use: ToolUse, tool: Tool) -> Allowed | Denied:
        fields: JsonObject = {
            "tool_name": use.name,
            "tool_input": use.input,
            "tool_use_id": use.id,
        }
        said = await agent.ask_hooks("PreToolUse", fields)
        if said.should_stop:
            return Denied(reason=said.stop_reason or "a hook says no")
        given = use.input if said.updated_input is None else said.updated_input
        gate = Gate(rules=agent.gate.rules, mode="plan", above=agent.gate)
        ours = gate.judge(tool, given, _places(agent, readable))
        decision = combine(ours, said.decision())
        if decision.outcome != "allow":
            return Denied(reason=f"Not allowed here: {decision.reason}.")
        return Allowed(input=given)

    return judged


def _places(agent: Agent, readable: tuple[Path, ...]) -> Places:
    """Say where a fork may look: where the session may, and in what is handed to it."""
    place, engine = agent.tool_context, agent.engine
    results = engine.results.readable(engine.view.history)
    return Places(
        roots=place.roots, cwd=place.directory, readable=(place.scratch, *results, *readable)
    )
