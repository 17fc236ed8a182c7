"""Runs an agent's hooks and passes on their output.

Messages for the user become notices. Added context reaches the model before its next call.
"""

import asyncio
from dataclasses import dataclass, field

from longhold.agent.hooks import HookContext, Hooks, HookVerdict
from longhold.agent.permissions import Gate
from longhold.agent.user_notices import Notices
from longhold.core.messages import JsonObject
from longhold.core.tools.context import ToolContext
from longhold.core.turn.abort import run_unless_aborted
from longhold.core.turn.engine import Engine


@dataclass(slots=True, kw_only=True)
class HookEvents:
    hooks: Hooks
    engine: Engine
    tool_context: ToolContext
    gate: Gate
    notices: Notices
    abort: asyncio.Event
    _asides: list[str] = field(default_factory=list)

    async def ask(self, event: str, fields: JsonObject) -> HookVerdict:
        """Run an event's hooks. An abort stops them and returns an empty verdict."""
        said = await run_unless_aborted(self.abort, self.hooks.fire(event, fields, self._context()))
        verdict = said or HookVerdict()
        self.notices.extend((*verdict.messages, *verdict.errors))
        return verdict

    async def fire(self, event: str, fields: JsonObject) -> HookVerdict:
        """Like `ask`, but also add the hooks' context before the next call."""
        verdict = await self.ask(event, fields)
        self._asides.extend(verdict.context)
        return verdict

    async def end(self, reason: str) -> None:
        """Run the SessionEnd hooks, even after an abort."""
        await self.hooks.fire("SessionEnd", {"reason": reason}, self._context())

    async def say_asides(self, engine: Engine) -> None:
        if self._asides:
            engine.say("\n\n".join(self._asides), hidden=True)
            self._asides.clear()

    def _context(self) -> HookContext:
        return HookContext(
            session=self.engine.log.header.session,
            transcript=self.engine.log.path,
            cwd=self.tool_context.directory,
            mode=self.gate.mode,
            scratch=self.tool_context.scratch,
            project=self.tool_context.root,
            variables=self.tool_context.variables,
        )
