"""The sub-agents in another agent's session, by the calls that started them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from longhold.core.log.entries import AnyEntry, Ran, Replied
from longhold.core.messages import ToolUse, text_of

AGENT_TOOLS = ("Agent", "Task")
"""Names of the tool that starts a sub-agent; the second is the older one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignAgent:
    n: int
    """Number of the answer that started it."""
    at: float
    id: str
    kind: str
    task: str
    state: str
    seconds: float
    """Run time; 0 if unknown."""
    report: str


def foreign_agents(history: Sequence[AnyEntry]) -> Iterator[ForeignAgent]:
    results = {entry.tool_use_id: entry for entry in history if isinstance(entry, Ran)}
    for entry in (entry for entry in history if isinstance(entry, Replied)):
        for use in entry.content:
            if isinstance(use, ToolUse) and use.name in AGENT_TOOLS:
                yield _agent(entry, use, results.get(use.id))


def _agent(entry: Replied, use: ToolUse, ran: Ran | None) -> ForeignAgent:
    given = use.input
    return ForeignAgent(
        n=entry.n,
        at=entry.at,
        id=use.id,
        kind=str(given.get("subagent_type", "")),
        task=str(given.get("description") or given.get("prompt") or ""),
        state="no result" if ran is None else "failed" if ran.is_error else "completed",
        seconds=max(0.0, ran.at - entry.at) if ran and ran.at else 0.0,
        report=text_of(ran.content) if ran else "",
    )
