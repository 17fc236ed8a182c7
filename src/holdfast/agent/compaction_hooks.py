"""What an agent adds to its session's compactions: its hooks, its frame, and its notices.

Before one, PreCompact hooks may add instructions, tell the user something, or refuse. After it
the session begins anew: SessionStart hooks speak to the model, prompt and instructions are read
again, files and plans are shown again, and PostCompact hooks run. What hooks say stands with what
is restored, so that an undo takes it back with the rest.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from holdfast.agent.framing import Framing
from holdfast.agent.hook_events import HookEvents
from holdfast.agent.notices import Notices
from holdfast.agent.tool_guard import ToolGuard
from holdfast.log.entries import Compacted, Framed, SpokenContent
from holdfast.messages import JsonObject, Text, text_of
from holdfast.stages.compact.hooks import Before, CompactionHooks, Trigger
from holdfast.stages.compact.restore import Restoring
from holdfast.tools.context import ToolContext
from holdfast.tools.read import READ
from holdfast.turn.engine import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCompactionHooks:
    """One agent's part in its compactions."""

    engine: Engine
    hooks: HookEvents
    framing: Framing
    restoring: Restoring

    async def before(self, trigger: Trigger, focus: str) -> Before:
        """Ask PreCompact hooks."""
        fields: JsonObject = {"trigger": _shown(trigger), "custom_instructions": focus}
        verdict = await self.hooks.ask("PreCompact", fields)
        blocked = verdict.reason if verdict.is_blocked else ""
        if verdict.should_stop:
            blocked = verdict.stop_reason or "a hook ended it"
        return Before(focus=verdict.context, blocked=blocked)

    async def greet(self) -> SpokenContent:
        """Let SessionStart hooks speak to a session that begins anew."""
        verdict = await self.hooks.ask("SessionStart", {"source": "compact"})
        return tuple(Text(text=said) for said in verdict.context)

    async def renew(self) -> Framed:
        return await self.framing.renew(self.engine)

    async def after(self, entry: Compacted) -> None:
        """Let the tools know which files the model still sees, and run PostCompact hooks."""
        self.restoring.mark_shown(entry)
        fields: JsonObject = {
            "trigger": _shown(entry.trigger),
            "compact_summary": text_of(entry.summary),
        }
        await self.hooks.ask("PostCompact", fields)


def compaction_hooks(
    engine: Engine,
    *,
    hooks: HookEvents,
    framing: Framing,
    guard: ToolGuard,
    tool_context: ToolContext,
    notices: Notices,
    agents: Callable[[], Iterable[str]],
) -> CompactionHooks:
    """Build an agent's part in its compactions; `agents` lists those that run or wait to be read."""

    def may_read(path: Path) -> bool:
        return guard.may_read(READ, path)

    restoring = Restoring(
        tool_context=tool_context,
        view=lambda: engine.view,
        settings=engine.settings.compact,
        window_tokens=lambda: engine.fullness().window.limit_tokens,
        may_read=may_read,
        agents=agents,
    )
    restoring.resume()
    part = AgentCompactionHooks(engine=engine, hooks=hooks, framing=framing, restoring=restoring)
    return CompactionHooks(
        before=part.before,
        restore=restoring,
        greet=part.greet,
        renew=part.renew,
        after=part.after,
        tell=notices.add,
        progress=notices.progress,
    )


def _shown(trigger: Trigger) -> str:
    """Name a trigger as hooks written for other programs know it."""
    return "manual" if trigger == "manual" else "auto"
