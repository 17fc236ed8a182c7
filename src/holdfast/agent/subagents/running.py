"""One agent's life: it works, perhaps waits for mail and works again, stops, and clears up.

An order and a worker come in; a `Finish` comes out, whatever happens on the way: what fails is
the agent's end, never its parent's. Who is told of it, and where it is written, is left to the
household.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from holdfast.agent.subagents.order import Finish, Order, Worker
from holdfast.agent.subagents.progress import progress_line
from holdfast.agent.subagents.teammates import Teammates
from holdfast.agent.subagents.worktree import KeptWorktree, finish
from holdfast.messages import ToolUse
from holdfast.turn.loop import LoopEvent
from holdfast.turn.round import ToolBegan, ToolRan

STOP_SECONDS = 5.0
"""An agent that was asked to stop closes its tools in less; then it is cancelled."""

AgentEnd: TypeAlias = Literal["stopped", "interrupted"]


@dataclass(slots=True, kw_only=True, eq=False)
class RunningAgent:
    """One agent at work."""

    order: Order
    worker: Worker
    teammates: Teammates
    poll_seconds: float
    """How often an idle teammate looks for mail."""
    on_news: Callable[[], None]
    """Told when it is free."""
    life: "asyncio.Task[Finish] | None" = None
    kept: KeptWorktree | None = None
    """Its worktree, if something was left in it."""
    is_background: bool = False
    is_idle: bool = False
    """A teammate that waits for mail."""
    by_user: bool = False
    """The user stopped it."""
    sent_back: asyncio.Event = field(default_factory=asyncio.Event)
    doing: str = ""
    _last_use: ToolUse | None = None
    _stops_as: AgentEnd | None = None
    _is_leaving: bool = False
    """A teammate that agreed to stop."""

    def start(self, ended: Callable[["RunningAgent", Finish], Finish]) -> None:
        """Let it live in a task of its own; `ended` writes its end down."""
        self.life = asyncio.create_task(self.live(ended), name=f"agent {self.order.id}")

    def send_to_background(self) -> None:
        self.is_background = True

    async def live(self, ended: Callable[["RunningAgent", Finish], Finish]) -> Finish:
        """Work to the end and clear up; `ended` writes that down, whatever happened."""
        try:
            done = await self._worked()
        except asyncio.CancelledError:
            done = Finish(state="stopped", detail="it was stopped")
        except Exception as error:  # noqa: BLE001 - what fails is the agent's end, never its parent's
            done = Finish(state="failed", detail=f"{type(error).__name__}: {error}")
        try:
            await self._clear_up()
        except Exception as error:  # noqa: BLE001 - likewise
            done = replace(done, detail=f"{done.detail} clearing up failed: {error}".strip())
        finally:
            if self._stops_as is not None and done.state != "completed":
                done = replace(done, state=self._stops_as)
            done = ended(self, done)
        return done

    async def _worked(self) -> Finish:
        while True:
            done = await self.worker.work(self.see)
            if self._stops_as is not None or done.state != "completed":
                return done
            if self.worker.has_mail():
                continue
            if not self.order.is_teammate or self._is_leaving:
                return done
            await self._wait_for_mail(done)

    async def _wait_for_mail(self, done: Finish) -> None:
        """Tell the lead that a teammate is free, until somebody writes to it."""
        self.teammates.report_idle(self.order, done)
        self.is_idle = True
        self.on_news()
        while not self.worker.has_mail():  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(self.poll_seconds)
        self.is_idle = False

    async def _clear_up(self) -> None:
        """Close what the agent held, its worktree and its place in a team."""
        try:
            await self.worker.close()
        finally:
            if self.order.tree is not None:
                self.kept = await asyncio.to_thread(finish, self.order.tree)
            if self.order.is_teammate:
                self.teammates.leave(self.order)

    def see(self, event: LoopEvent) -> None:
        """Take note of what it does."""
        match event:
            case ToolBegan(use=use):
                self._last_use = use
            case ToolRan(use=use, outcome=outcome) if not outcome.is_error:
                # An answer is sent only to a request that is there, so this one was asked.
                self._is_leaving = self._is_leaving or _agrees_to_stop(use)
            case _:
                pass

    async def first(self, seconds: float) -> Finish | None:
        """Wait for the end; nothing if that takes too long or it is sent to the background."""
        assert self.life is not None, "it has begun"
        asked = asyncio.create_task(self.sent_back.wait())
        try:
            await asyncio.wait(
                {self.life, asked}, timeout=seconds or None, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            asked.cancel()
        return self.life.result() if self.life.done() else None

    async def stop(self, how: AgentEnd = "stopped", *, by_user: bool = False) -> None:
        """Ask it to stop, and cancel it if it does not."""
        assert self.life is not None, "it has begun"
        self.by_user = self.by_user or by_user
        self._stops_as = how
        self.worker.stop()
        if self.is_idle:
            self.life.cancel()
        done, _ = await asyncio.wait({self.life}, timeout=STOP_SECONDS)
        if not done:
            self.life.cancel()
            await asyncio.wait({self.life})

    async def look(self, asks_model: bool) -> str:
        """Say what it does just now, and remember that."""
        line = await self.worker.progress() if asks_model else ""
        self.doing = line or progress_line(self._last_use)
        return self.doing


def _agrees_to_stop(use: ToolUse) -> bool:
    match use.input.get("message"):
        case {"type": "shutdown_answer", "approve": True}:
            return use.name == "SendMessage"
        case _:
            return False
