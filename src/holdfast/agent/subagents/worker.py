"""An agent that another one started, as its household sees it: a worker.

An opened `Agent` comes in; it works until nothing is left to do, what it sent to the background
included, and what the end of its loop means for the one who waits goes out. What it borrowed of
its parent, the model above all, is left open when it closes.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from holdfast.agent.agent import Agent
from holdfast.agent.subagents.delivery import Delivery
from holdfast.agent.subagents.order import Finish, Seen, ToolReach, finished
from holdfast.agent.subagents.progress import ASK, taken
from holdfast.agent.subagents.recovery import last_text
from holdfast.log.answers import usage_of
from holdfast.models.capabilities import Capabilities
from holdfast.models.protocol import Event, Model, Request
from holdfast.turn.fork import ForkRequest
from holdfast.turn.loop import Stopped


@dataclass(slots=True, eq=False)
class AgentWorker:
    """An agent with a session of its own."""

    agent: Agent
    mail: Delivery
    on_close: Callable[[], None]
    """Lets go what was opened for it beside the agent."""
    is_stopped: bool = False

    @property
    def reach(self) -> ToolReach:
        """The tools it has, those it could still load included, and its mode."""
        return ToolReach(tools=self.agent.toolkit.names, mode=self.agent.gate.mode)

    async def work(self, seen: Seen) -> Finish:
        """Work until nothing is left to do."""
        engine, end = self.agent.engine, Stopped(reason="aborted_streaming")
        began = len(engine.view.history)
        if not self.is_stopped:
            async for event in self.agent.work():
                seen(event)
                if isinstance(event, Stopped):
                    end = event
        history = engine.view.history
        return finished(end, last_text(engine.view), usage_of(history[began:]))

    def has_mail(self) -> bool:
        """Say whether mail waits that it has not read."""
        return self.mail.is_waiting(self.agent.engine)

    def stop(self) -> None:
        """Abort what it does, with everybody it waits for."""
        self.is_stopped = True
        self.agent.abort.set()

    async def progress(self) -> str:
        """Ask the model, on a fork without tools; nothing if it gives no line."""
        try:
            reply = await self.agent.ask(ForkRequest(say=ASK, source="progress"))
        except Exception:  # noqa: BLE001 - a line that cannot be had stops nobody
            return ""
        return taken(reply.text)

    async def close(self) -> None:
        """End whatever it runs, and let its log go."""
        try:
            await self.agent.close("agent")
        finally:
            self.on_close()


@dataclass(frozen=True, slots=True)
class Borrowed:
    """Somebody else's model: it is used here, and closed there."""

    lender: Model

    @property
    def name(self) -> str:
        return self.lender.name

    @property
    def capabilities(self) -> Capabilities:
        return self.lender.capabilities

    def stream(self, request: Request) -> AsyncIterator[Event]:
        """Answer as the lender does."""
        return self.lender.stream(request)

    async def count(self, request: Request) -> int | None:
        """Count as the lender does."""
        return await self.lender.count(request)

    async def close(self) -> None:
        """Leave it open: it is not ours."""
