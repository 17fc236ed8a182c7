"""A subagent with a session of its own, as its supervisor sees it, and what its parent lends it.

It works until nothing is left to do, including what it sent to the background. The model it
borrows stays open when it closes. It spends its parent's budget: each payment is made from that
and recorded in the parent's log, so that limits hold for all agents together, and `cost` and
resumed sessions know of every call, even of agents that were killed.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass

from holdfast.agent.agent import Agent
from holdfast.agent.subagents.delivery import Delivery
from holdfast.agent.subagents.memory_scopes import OwnMemory
from holdfast.agent.subagents.order import Finish, Seen, ToolReach, finished
from holdfast.agent.subagents.progress import ASK, taken
from holdfast.errors import StoreError
from holdfast.log.entries import Forked
from holdfast.log.spending import Budget, Spent
from holdfast.messages import Usage
from holdfast.models.capabilities import Capabilities
from holdfast.models.protocol import Event, Model, Request
from holdfast.tools.permissions import Mode
from holdfast.turn.abort import unless
from holdfast.turn.engine import Engine
from holdfast.turn.fork import ForkRequest
from holdfast.turn.loop import Stopped


@dataclass(slots=True, eq=False)
class AgentWorker:
    agent: Agent
    mail: Delivery
    memory: OwnMemory | None
    """Its own, opened for it."""
    mode_after_plan: Callable[[], Mode] = lambda: "plan"
    """Returns its parent's mode."""
    is_stopped: bool = False

    @property
    def reach(self) -> ToolReach:
        """Its tools, including those it could still load, and its mode."""
        return ToolReach(tools=self.agent.toolkit.names, mode=self.agent.gate.mode)

    async def work(self, seen: Seen) -> Finish:
        engine, end = self.agent.engine, Stopped(reason="aborted_streaming")
        began = len(engine.view.history)
        if not self.is_stopped:
            async for event in self.agent.work():
                seen(event)
                if isinstance(event, Stopped):
                    end = event
        return finished(end, engine.view.history, since=began)

    def has_mail(self) -> bool:
        return self.mail.is_waiting(self.agent.engine)

    def stop(self) -> None:
        """Abort its work, including the agents it waits for."""
        self.is_stopped = True
        self.agent.abort.set()

    def approve_plan(self) -> None:
        """End plan mode; from here on it may do what its parent may, and never more."""
        if self.agent.gate.mode == "plan":
            self.agent.gate.switch_mode(self.mode_after_plan())

    async def progress(self) -> str:
        """Ask the model, on a fork without tools; '' if it gives no valid line."""
        try:
            asking = self.agent.ask(ForkRequest(say=ASK, source="progress", is_wanted=False))
            reply = await unless(self.agent.abort, asking)
        except Exception:  # noqa: BLE001 - progress is optional
            return ""
        return taken(reply.text) if reply is not None else ""

    async def close(self) -> None:
        try:
            await self.agent.close("agent")
        finally:
            if self.memory is not None:
                self.memory.close()


@dataclass(frozen=True, slots=True)
class Borrowed:
    """The model of another agent, which closes it."""

    lender: Model

    @property
    def name(self) -> str:
        return self.lender.name

    @property
    def capabilities(self) -> Capabilities:
        return self.lender.capabilities

    def stream(self, request: Request) -> AsyncIterator[Event]:
        return self.lender.stream(request)

    async def count(self, request: Request) -> int | None:
        return await self.lender.count(request)

    async def close(self) -> None:
        """Leave it open."""


@dataclass(slots=True, kw_only=True)
class ChildBudget(Budget):
    """A budget that draws on the parent's."""

    above: Budget
    engine: Engine
    """The parent's."""
    source: str

    def pay(self, model: str, usage: Usage) -> Spent:
        spent = self.above.pay(model, usage)
        self.session = self.session + spent
        with suppress(StoreError):  # a disk that takes no entry keeps no agent from working
            self.engine.report(Forked(source=self.source, model=model, usage=usage))
        return spent

    def exhausted(self) -> str:
        return self.above.exhausted()
