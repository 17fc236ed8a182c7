"""An agent's hooks: run at an event, heard by the user, and passed on to the model.

What hooks print for the user becomes a notice; what they add to the context is said to the model
before its next call.
"""

import asyncio

from holdfast.agent.notices import Notices
from holdfast.hooks import HookContext, Hooks, HookVerdict
from holdfast.messages import JsonObject
from holdfast.tools.context import ToolContext
from holdfast.tools.permissions import Gate
from holdfast.turn.abort import unless
from holdfast.turn.engine import Engine


class HookEvents:
    """Fires the hooks of one agent."""

    def __init__(
        self,
        hooks: Hooks,
        *,
        engine: Engine,
        tool_context: ToolContext,
        gate: Gate,
        notices: Notices,
        abort: asyncio.Event,
    ) -> None:
        self.hooks = hooks
        self._engine = engine
        self._tool_context = tool_context
        self._gate = gate
        self._notices = notices
        self._abort = abort
        self._asides: list[str] = []
        """What hooks want the model to know, said before the next call."""

    async def ask(self, event: str, fields: JsonObject) -> HookVerdict:
        """Run an event's hooks; an abort ends them, and their verdict is then empty."""
        said = await unless(self._abort, self.hooks.fire(event, fields, self._context()))
        verdict = said or HookVerdict()
        self._notices.extend((*verdict.messages, *verdict.errors))
        return verdict

    async def fire(self, event: str, fields: JsonObject) -> HookVerdict:
        """Run an event's hooks; what they add to the context is said before the next call."""
        verdict = await self.ask(event, fields)
        self._asides.extend(verdict.context)
        return verdict

    async def end(self, reason: str) -> None:
        """Run the SessionEnd hooks, aborted or not."""
        await self.hooks.fire("SessionEnd", {"reason": reason}, self._context())

    async def say_asides(self, engine: Engine) -> None:
        """A stage: say what hooks want the model to know."""
        if self._asides:
            engine.say("\n\n".join(self._asides), hidden=True)
            self._asides.clear()

    def _context(self) -> HookContext:
        return HookContext(
            session=self._engine.log.header.session,
            transcript=self._engine.log.path,
            cwd=self._tool_context.directory,
            mode=self._gate.mode,
            scratch=self._tool_context.scratch,
            project=self._tool_context.root,
        )
