"""What an agent adds to its session's compactions: its hooks, its frame, and who is told.

Before one, PreCompact hooks may add instructions, tell the user something, or say no. After it
the session begins anew: SessionStart hooks speak to the model, prompt and instructions are read
again, files and plans are shown again, and PostCompact hooks hear of it. What hooks say stands
with what is restored, so that an undo takes it back with the rest.
"""

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from holdfast.agent.agent import Agent
from holdfast.errors import ModelError
from holdfast.log.entries import Compacted, Framed, SpokenContent
from holdfast.messages import JsonObject, Text, text_of
from holdfast.stages.collapse.collapse import open_span
from holdfast.stages.compact.hooks import Before, CompactionHooks, Trigger
from holdfast.stages.compact.restore import Restoring
from holdfast.tools.history.history import History
from holdfast.tools.history.tool import history_tool
from holdfast.tools.permissions import Places
from holdfast.tools.protocol import Tool
from holdfast.tools.read import READ


@dataclass(slots=True)
class AgentCompactionHooks:
    """One agent's part in its compactions."""

    agent: Agent
    restoring: Restoring = field(init=False)

    def __post_init__(self) -> None:
        self.restoring = restoring_of(self.agent)

    def attach(self) -> None:
        """Put the agent's part into its session's stage, and the stage into its loop."""
        agent, stage = self.agent, self.agent.session.compaction
        self.restoring.resume()
        stage.around = CompactionHooks(
            before=self.before,
            restore=self.restoring,
            greet=self.greet,
            renew=self.renew,
            after=self.after,
            tell=agent.notify,
            progress=self.progress,
        )
        agent.recover = self.recover

    async def recover(self, error: ModelError) -> bool:
        """Make room because the provider says there is none."""
        return await self.agent.session.compaction.recover(self.agent.engine, error)

    async def before(self, trigger: Trigger, focus: str) -> Before:
        """Ask PreCompact hooks."""
        fields: JsonObject = {"trigger": _shown(trigger), "custom_instructions": focus}
        verdict = await self.agent.ask_hooks("PreCompact", fields)
        blocked = verdict.reason if verdict.is_blocked else ""
        if verdict.should_stop:
            blocked = verdict.stop_reason or "a hook ended it"
        return Before(focus=verdict.context, blocked=blocked)

    async def greet(self) -> SpokenContent:
        """Let SessionStart hooks speak to a session that begins anew."""
        verdict = await self.agent.ask_hooks("SessionStart", {"source": "compact"})
        return tuple(Text(text=said) for said in verdict.context)

    async def renew(self) -> Framed:
        """Read prompt and instructions again."""
        return await self.agent.renewed_frame()

    async def after(self, entry: Compacted) -> None:
        """Let the tools know which files are before the model, and tell PostCompact hooks."""
        self.restoring.mark_shown(entry)
        fields: JsonObject = {
            "trigger": _shown(entry.trigger),
            "compact_summary": text_of(entry.summary),
        }
        await self.agent.ask_hooks("PostCompact", fields)

    def progress(self, line: str) -> None:
        """Say that it still runs; of no use to somebody who reads it later."""
        if self.agent.listener is not None:
            self.agent.listener(line)


def restoring_of(agent: Agent) -> Restoring:
    """Make what brings an agent's files, skills, plan and todos back."""
    engine, tool_context = agent.engine, agent.tool_context

    def may_read(path: Path) -> bool:
        places = Places(roots=tool_context.roots, cwd=tool_context.directory)
        return agent.gate.judge(READ, {"file_path": str(path)}, places).outcome == "allow"

    return Restoring(
        tool_context=tool_context,
        view=lambda: engine.view,
        settings=engine.settings.compact,
        window_tokens=lambda: engine.fullness().window.limit_tokens,
        may_read=may_read,
        agents=lambda: agent.supervisor.lines() if agent.supervisor else (),
    )


def history_of(agent: Agent) -> Tool:
    """Make the tool by which the model looks up what left its view."""
    engine = agent.engine
    history = History(
        lambda: engine.view.history,
        directory=engine.log.path.with_suffix(""),
        session=agent.session.id,
        settings=engine.settings.history,
        shows=lambda n: engine.view.item_of(n) is not None,
    )
    return history_tool(
        history,
        window_tokens=lambda: engine.fullness().window.limit_tokens,
        reopen=partial(open_span, engine),
    )


def _shown(trigger: Trigger) -> str:
    """Name a trigger as hooks written for other programs know it."""
    return "manual" if trigger == "manual" else "auto"
