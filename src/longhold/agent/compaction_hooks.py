"""What an agent adds to its session's compactions: its hooks, its frame, and its notices.

Before one, PreCompact hooks may add instructions, tell the user something, or refuse. After it
the session begins anew: SessionStart hooks speak to the model, prompt and instructions are read
again, files and plans are shown again, and PostCompact hooks run. What SessionStart hooks say stands
with what is restored, so that an undo takes it back with the rest; what PostCompact hooks add is a
hidden message behind it.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from longhold.agent.framing import Framing
from longhold.agent.hooks import HookVerdict
from longhold.agent.parts import AgentParts
from longhold.agent.restoring import restoring_over
from longhold.agent.tools.read import READ
from longhold.core.log.entries import Compacted, SpokenContent
from longhold.core.messages import JsonObject, Text, text_of
from longhold.core.stages.compact.owner import Before, CompactionHooks, Trigger

AskHooks: TypeAlias = Callable[[str, JsonObject], Awaitable[HookVerdict]]
"""Runs the hooks of an event; what they print for the user is shown by whoever gives this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionEvents:
    """The hooks that run around a compaction, in an agent's session or from the command line."""

    ask: AskHooks
    say: Callable[[str], object]
    """Tells the model something, behind the summary."""

    async def before(self, trigger: Trigger, focus: str) -> Before:
        fields: JsonObject = {"trigger": _name_trigger(trigger), "custom_instructions": focus}
        verdict = await self.ask("PreCompact", fields)
        blocked = verdict.reason if verdict.is_blocked else ""
        if verdict.should_stop:
            blocked = verdict.stop_reason or "a hook ended it"
        return Before(focus=verdict.context, blocked=blocked)

    async def greet(self) -> SpokenContent:
        verdict = await self.ask("SessionStart", {"source": "compact"})
        return tuple(Text(text=said) for said in verdict.context)

    async def after(self, entry: Compacted) -> None:
        """Run PostCompact hooks; what they add to the context is said to the model."""
        fields: JsonObject = {
            "trigger": _name_trigger(entry.trigger),
            "compact_summary": text_of(entry.summary),
        }
        verdict = await self.ask("PostCompact", fields)
        if verdict.context:
            self.say("\n\n".join(verdict.context))


def compaction_hooks(
    parts: AgentParts,
    framing: Framing,
    agents: Callable[[], Iterable[str]],
    *,
    is_autonomous: bool,
) -> CompactionHooks:
    """Build an agent's part in its compactions; `agents` lists those that run or wait to be read."""
    engine, notices = parts.engine, parts.notices
    may_read = partial(parts.guard.may_read, READ)
    restoring = restoring_over(engine, parts.tool_context, may_read, agents)
    restoring.resume()
    events = CompactionEvents(ask=parts.hooks.ask, say=partial(engine.say, hidden=True))

    async def after(entry: Compacted) -> None:
        restoring.mark_shown(entry)  # tools know which files the model still sees
        await events.after(entry)

    return CompactionHooks(
        before=events.before,
        restore=restoring,
        greet=events.greet,
        renew=lambda: framing.renew(engine),
        after=after,
        tell=notices.add,
        progress=notices.progress,
        is_autonomous=is_autonomous,
    )


def _name_trigger(trigger: Trigger) -> str:
    """Name a trigger as hooks written for other programs know it."""
    return "manual" if trigger == "manual" else "auto"
