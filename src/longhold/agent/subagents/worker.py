"""A worker is a sub-agent with its own session or a fork of the parent's conversation. Its calls
count against the parent's budget and are recorded in the parent's log. So limits cover all agents,
and a killed worker's costs are known.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from longhold.agent.agent import Agent
from longhold.agent.permissions import Mode
from longhold.agent.subagents.ledger import UnreadMail, cursors_in
from longhold.agent.subagents.mail import render
from longhold.agent.subagents.memory_scopes import OwnMemory
from longhold.agent.subagents.running import (
    ASK,
    STATES,
    Finish,
    Order,
    Seen,
    ToolReach,
    accept_line,
    make_finish,
)
from longhold.core.log.entries import AnyEntry, Forked, Framed, Replied, Spawned
from longhold.core.log.spending import Budget
from longhold.core.messages import ToolUse, Usage
from longhold.core.messages.usage import Tally
from longhold.core.request.request import Wire, first_messages
from longhold.core.turn.abort import run_unless_aborted, stop
from longhold.core.turn.engine import Engine
from longhold.core.turn.fork.asking import ForkReply, ForkRequest, Permit
from longhold.core.turn.fork.prefix import Prefix
from longhold.core.turn.fork.run import Forks
from longhold.core.turn.loop import Stopped
from longhold.core.view import fold
from longhold.errors import StoreError


@dataclass(slots=True, eq=False)
class AgentWorker:
    agent: Agent
    memory: OwnMemory | None
    mode_after_plan: Callable[[], Mode] = lambda: "plan"
    is_stopped: bool = False

    @property
    def reach(self) -> ToolReach:
        return ToolReach(tools=self.agent.toolkit.names, mode=self.agent.gate.mode)

    async def work(self, seen: Seen) -> Finish:
        engine, end = self.agent.engine, Stopped(reason="aborted_streaming")
        began = len(engine.view.history)
        if not self.is_stopped:
            async for event in self.agent.work():
                seen(event)
                if isinstance(event, Stopped):
                    end = event
        return make_finish(end, engine.view.history, since=began)

    def has_mail(self) -> bool:
        mail = self.agent.equipment.mail
        return mail is not None and bool(mail.waiting_lines(self.agent.engine))

    def stop(self) -> None:
        """Abort the work, including the agents that this worker waits for."""
        self.is_stopped = True
        self.agent.abort.set()

    def approve_plan(self) -> None:
        """End plan mode. The agent then has at most its parent's mode."""
        if self.agent.gate.mode == "plan":
            self.agent.gate.switch_mode(self.mode_after_plan())

    async def progress(self) -> str:
        try:
            asking = self.agent.ask(ForkRequest(say=ASK, source="progress", is_wanted=False))
            reply = await run_unless_aborted(self.agent.abort, asking)
        except Exception:  # noqa: BLE001 - progress is optional
            return ""
        return accept_line(reply.text) if reply is not None else ""

    async def close(self) -> None:
        try:
            await self.agent.close("agent")
        finally:
            if self.memory is not None:
                self.memory.close()


@dataclass(slots=True, kw_only=True)
class ChildBudget(Budget):
    above: Budget
    engine: Engine
    source: str

    def pay(self, model: str, usage: Usage) -> Tally:
        spent = self.above.pay(model, usage)
        self.session = self.session + spent
        with suppress(StoreError):  # because a full disk must not stop the agent
            self.engine.report(Forked(source=self.source, model=model, usage=usage))
        return spent

    def describe_limit(self) -> str:
        return self.above.describe_limit()


DIRECTIVE = """You are now a fork of this conversation, with a task of your own, given below. What \
was said before is what you know; the requests in it are being dealt with elsewhere, so work on \
this task only. Start no agents, ask nobody, and use tools without commenting on them. When you \
are done answer once: begin with what you were to do, then what you found or changed, with paths.

Task: """
GO_ON = "You were interrupted. Go on with your task from where you were."
TURNS = 200
"""Default round limit of a fork, which cannot compact its history."""
WHOLE_SECONDS = 0.02


class ForkWorker:
    def __init__(
        self,
        order: Order,
        *,
        engine: Engine,
        forks: Forks,
        permit: Permit,
        box: Path,
        reach: ToolReach,
    ) -> None:
        self.reach = reach
        self._order = order
        self._engine = engine
        self._forks = forks
        self._permit = permit
        cursors = cursors_in(order.log.load().entries) if order.log.exists() else {}
        self._inbox = UnreadMail(box, cursors)
        self._task: asyncio.Task[ForkReply] | None = None
        self._prefix: Prefix | None = None
        self._is_stopped = False
        if not order.prompt and not order.log.exists():
            raise StoreError(f"{order.id} had not begun, so it cannot go on")

    async def work(self, seen: Seen) -> Finish:
        begins = not self._order.log.exists()
        letters = [] if begins else self._inbox.letters()
        mail = "\n\n".join(render(letter.value) for letter in letters if letter.value)
        words = f"{DIRECTIVE}{self._order.prompt}" if begins else mail or GO_ON
        if self._is_stopped:
            return Finish(state="stopped", detail="it was stopped")
        assert self._prefix is not None, "it shares a prefix before it works"
        request = ForkRequest(
            say=words,
            source=self._order.source,
            turns=self._order.definition.turns or TURNS,
            permit=self._permit,
            writes_cache=True,
            keeps_log=self._order.log,
            on_event=seen,
            prefix=self._prefix,
            mail=letters[-1].cursor if letters else "",
        )
        self._task = asyncio.create_task(self._forks.ask(request))
        try:
            reply = await self._task
        except asyncio.CancelledError:
            await stop(self._task)
            if not self._is_stopped:
                raise
            return Finish(state="stopped", detail="it was stopped")
        for letter in letters:
            self._inbox.mark_delivered(letter)
        detail = "" if reply.reason == "completed" else reply.reason.replace("_", " ")
        # The text up to the output limit is the answer.
        state = "completed" if reply.reason == "cut_off" else STATES.get(reply.reason, "failed")
        return Finish(state=state, text=reply.text, detail=detail, usage=reply.usage)

    async def share(self) -> None:
        """Take the prefix that ends with the answer that starts this fork.

        The parent's next request waits while the starting call runs, so the prefix has not grown
        yet.
        """
        if self._order.log.exists():
            self._prefix = prefix_of(self._engine, self._order.id)
        while self._prefix is None:
            now = self._engine.prefix()
            if now.is_whole:
                self._prefix = now.end_at_answer()
            else:
                await asyncio.sleep(WHOLE_SECONDS)

    def has_mail(self) -> bool:
        return bool(self._inbox.letters())

    def stop(self) -> None:
        self._is_stopped = True
        if self._task is not None:
            self._task.cancel()

    def approve_plan(self) -> None:
        """Do nothing, because a fork has its parent's mode."""

    async def progress(self) -> str:
        return ""  # because a fork cannot fork, so its last tool call is reported

    async def close(self) -> None:
        """Do nothing, because a fork holds no resources between calls."""


def prefix_of(engine: Engine, fork: str) -> Prefix:
    """Rebuild a fork's prefix: the parent's conversation up to the answer that started it."""
    view = fold(_cut_at_answer(engine.view.history, fork))
    frame = view.frame or Framed()
    messages = first_messages(frame) + Wire().render(view)
    then = replace(
        engine.prefix(),
        frame=frame,
        messages=tuple(messages),
        model=view.model,
        cached_to=None,
        before=None,
        is_whole=True,
    )
    return then.end_at_answer()


def _cut_at_answer(history: Sequence[AnyEntry], fork: str) -> list[AnyEntry]:
    calls = {
        entry.tool_use_id for entry in history if isinstance(entry, Spawned) and entry.agent == fork
    }
    answers = [entry for entry in history if isinstance(entry, Replied)]
    starts = {
        entry.response_id
        for entry in answers
        if any(isinstance(block, ToolUse) and block.id in calls for block in entry.content)
    }
    last = max((entry.n for entry in answers if entry.response_id in starts), default=0)
    return [entry for entry in history if entry.n <= last]
