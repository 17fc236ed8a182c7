"""What an agent adds to its session's compactions: its hooks, its frame, and its notices.

Before one, PreCompact hooks may add instructions, tell the user something, or refuse. After it
the session begins anew: SessionStart hooks speak to the model, prompt and instructions are read
again, files and plans are shown again, and PostCompact hooks run. What hooks say stands with what
is restored, so that an undo takes it back with the rest.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from holdfast.agent.framing import Framing
from holdfast.agent.parts import AgentParts
from holdfast.log.entries import Compacted, Framed, SpokenContent
from holdfast.messages import JsonObject, Text, text_of
from holdfast.stages.compact.hooks import Before, CompactionHooks, Trigger
from holdfast.stages.compact.restore import Restoring
from holdfast.tools.read import READ


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCompactionHooks:
    """One agent's part in its compactions."""

    parts: AgentParts
    framing: Framing
    restoring: Restoring

    async def before(self, trigger: Trigger, focus: str) -> Before:
        fields: JsonObject = {"trigger": _shown(trigger), "custom_instructions": focus}
        verdict = await self.parts.hooks.ask("PreCompact", fields)
        blocked = verdict.reason if verdict.is_blocked else ""
        if verdict.should_stop:
            blocked = verdict.stop_reason or "a hook ended it"
        return Before(focus=verdict.context, blocked=blocked)

    async def greet(self) -> SpokenContent:
        """Let SessionStart hooks speak to a session that begins anew."""
        verdict = await self.parts.hooks.ask("SessionStart", {"source": "compact"})
        return tuple(Text(text=said) for said in verdict.context)

    async def renew(self) -> Framed:
        return await self.framing.renew(self.parts.engine)

    async def after(self, entry: Compacted) -> None:
        """Let the tools know which files the model still sees, and run PostCompact hooks."""
        self.restoring.mark_shown(entry)
        fields: JsonObject = {
            "trigger": _shown(entry.trigger),
            "compact_summary": text_of(entry.summary),
        }
        await self.parts.hooks.ask("PostCompact", fields)


def compaction_hooks(
    parts: AgentParts, framing: Framing, agents: Callable[[], Iterable[str]]
) -> CompactionHooks:
    """Build an agent's part in its compactions; `agents` lists those that run or wait to be read."""
    engine, notices = parts.engine, parts.notices
    restoring = Restoring(
        tool_context=parts.tool_context,
        view=lambda: engine.view,
        settings=engine.settings.compact,
        window_tokens=lambda: engine.fullness().window.limit_tokens,
        may_read=lambda path: parts.guard.may_read(READ, path),
        agents=agents,
    )
    restoring.resume()
    part = AgentCompactionHooks(parts=parts, framing=framing, restoring=restoring)
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
