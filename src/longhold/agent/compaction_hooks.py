"""An agent's part in compactions: hooks before and after, a new frame, notices.

SessionStart output is stored with the restored content, so an undo removes both. PostCompact output
becomes a hidden message after it.
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
"""Runs an event's hooks; the implementation shows their messages to the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionEvents:
    """The hooks around a compaction, used by an agent's session and the command line."""

    ask: AskHooks
    say: Callable[[str], object]

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
    """Build the hooks for an agent; `agents` lists those running or with unread reports."""
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
    """Return the trigger's name as hooks written for other programs expect it."""
    return "manual" if trigger == "manual" else "auto"
