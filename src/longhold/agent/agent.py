"""An agent: a session with its own loop, which runs until the user's task is done."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from longhold.agent.parts import AgentParts, Equipment, Toolkit
from longhold.agent.permissions import AskUser, Gate, Mode
from longhold.agent.subagents.running import MAIL_POLL_SECONDS
from longhold.agent.subagents.supervisor import Supervisor
from longhold.agent.tool_guard import HookEvents
from longhold.agent.user_notices import Notices
from longhold.core.log.entries import Compacted
from longhold.core.log.spending import Budget
from longhold.core.log.store import Store
from longhold.core.memory.dream import DreamReport
from longhold.core.memory.session_memory import MemoryJobs
from longhold.core.messages import Content, text_of
from longhold.core.models import open_model
from longhold.core.models.limits import describe_guess, find_window
from longhold.core.models.protocol import Model
from longhold.core.policy.threshold import Fullness
from longhold.core.settings import Settings
from longhold.core.tools.context import ToolContext
from longhold.core.turn.abort import run_unless_aborted
from longhold.core.turn.background import DRAIN_SECONDS, QUEUED, Background, JobProgress
from longhold.core.turn.engine import Engine
from longhold.core.turn.fork.asking import ForkReply, ForkRequest
from longhold.core.turn.loop import Loop, LoopEvent, Stopped
from longhold.errors import ConfigError
from longhold.session.session import Session

STOPPED = "it was stopped by the user"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningJob:
    kind: str
    """For example `dream`, `memory`, `notes` or `agent`."""
    name: str
    progress: JobProgress
    number: int = 0
    doing: tuple[str, ...] = ()
    stop: Callable[[], Awaitable[object]]

    def line(self, now: float | None = None) -> str:
        seconds = (time.time() if now is None else now) - self.progress.since
        called = self.kind if self.kind == self.name else f"{self.kind} {self.name}"
        return f"{self.number}  {called}, for {seconds:.0f} s: {self.progress.line()}"


@dataclass(slots=True, kw_only=True)
class Jobs:
    background: Background
    supervisor: Supervisor | None
    _numbers: dict[tuple[str, float], int] = field(default_factory=dict)

    def running(self) -> list[RunningJob]:
        found = [
            RunningJob(
                kind=job.name.partition(":")[0],
                name=job.name,
                progress=job.progress,
                doing=tuple(job.progress.steps),
                stop=partial(job.stop, STOPPED),
            )
            for job in self.background.busy
        ]
        if self.supervisor is not None:
            found += [
                RunningJob(
                    kind="agent",
                    name=one.order.called,
                    progress=one.progress,
                    doing=("waits for mail",) if one.is_idle else tuple(filter(None, (one.doing,))),
                    stop=partial(self.supervisor.stop, id, by_user=True),
                )
                for id, one in self.supervisor.running.items()
                if one.is_background
            ]
        for job in found:
            self._numbers.setdefault((job.name, job.progress.since), len(self._numbers) + 1)
        return [replace(job, number=self._numbers[job.name, job.progress.since]) for job in found]

    async def stop(self, which: str) -> RunningJob:
        for job in self.running():
            if which in (str(job.number), job.name):
                await job.stop()
                return job
        known = ", ".join(f"{job.number} ({job.name})" for job in self.running()) or "none"
        raise ConfigError(f"no job {which!r} is running. Running jobs: {known}")


NUMBER_DIGITS = 12
"""A longer number is not a token budget."""

_BUDGET = re.compile(
    r"^\s*\+(\d+(?:\.\d+)?)([kmb])\b|(?<!not )\b(?:use|spend)\s+(\d+(?:\.\d+)?)\s*([kmb])\s+tokens\b",
    re.IGNORECASE,
)


def budget_in(text: str) -> int:
    """Return the token budget that a message states (`+500k`, `use 2m tokens`), or 0."""
    found = _BUDGET.search(text)
    if not found:
        return 0
    number, unit = found[1] or found[3], (found[2] or found[4]).lower()
    if len(number) > NUMBER_DIGITS:
        return 0
    return int(float(number) * {"k": 1_000, "m": 1_000_000, "b": 1_000_000_000}[unit])


ENDED = "it was stopped: the session ended"
LEFT = "it was stopped: the user left"
"""The reasons logged for background jobs that were cancelled."""


@dataclass(slots=True, kw_only=True)
class Agent:
    session: Session
    loop: Loop
    parts: AgentParts
    toolkit: Toolkit
    background: Background
    abort: asyncio.Event
    memory: MemoryJobs | None
    equipment: Equipment
    jobs: Jobs
    _events: AsyncGenerator[LoopEvent, None] | None = None
    _is_closed: bool = False

    @classmethod
    async def open(
        cls,
        model: "str | Model",
        *,
        directory: Path | None = None,
        resume: str = "",
        mode: Mode | None = None,
        ask: AskUser | None = None,
        fallback: "str | Model | None" = None,
        system: str = "",
        store: Store | None = None,
        settings: Settings | None = None,
    ) -> "Agent":
        """Open an agent for a directory, with a new session or the session whose id is `resume`.

        - `model` and `fallback`: a name such as "claude-sonnet-5-5", or a `Model`.
        - `mode`: how freely tools may run. `ask` decides about a call that needs permission.
          Without `ask`, the agent refuses such calls.
        - `system`: replaces the system prompt of a new session.

        Use `async with await Agent.open(…) as agent`, which closes the agent at the end.
        """
        from longhold.agent.build import build_agent

        return await build_agent(
            open_model(model, is_typed=True) if isinstance(model, str) else model,
            directory=directory,
            resume=resume,
            mode=mode,
            ask=ask,
            fallback=open_model(fallback, is_typed=True) if isinstance(fallback, str) else fallback,
            system=system,
            store=store,
            settings=settings,
        )

    async def __aenter__(self) -> "Agent":
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    @property
    def engine(self) -> Engine:
        return self.session._engine

    @property
    def model(self) -> Model:
        return self.parts.models.current()

    @property
    def gate(self) -> Gate:
        return self.parts.gate

    @property
    def budget(self) -> Budget:
        return self.parts.budget

    async def ask(self, request: ForkRequest) -> ForkReply:
        assert self.session._ask is not None, "an agent has a model"
        return await self.session._ask(request)

    @property
    def notices(self) -> Notices:
        return self.parts.notices

    @property
    def tool_context(self) -> ToolContext:
        return self.parts.tool_context

    @property
    def hooks(self) -> HookEvents:
        return self.parts.hooks

    @property
    def supervisor(self) -> Supervisor | None:
        return self.equipment.supervisor

    async def run(
        self, prompt: str | Content = "", attached: Content = ()
    ) -> AsyncIterator[LoopEvent]:
        """Yield events until the task is done. Without a prompt, resume where the session stopped.

        `attached` is content for the model that does not count as the user's words.
        """
        self.abort.clear()
        words = prompt if isinstance(prompt, str) else text_of(prompt)
        if prompt:
            verdict = await self.hooks.fire("UserPromptSubmit", {"prompt": words})
            if verdict.is_blocked or verdict.should_stop:
                yield Stopped(reason="hook_stopped", detail=verdict.reason or verdict.stop_reason)
                return
            self.gate.forget_denials()
            self.session.user(prompt)
            if attached:
                self.engine.say(attached, hidden=True)
        elif self.engine.is_answered() and not await self._has_news():
            yield Stopped(reason="completed", detail="there is nothing left to do; give a new task")
            return
        self._events = self.loop.run(budget_in(words))
        try:
            async for event in self._events:
                yield event
        finally:
            await self._events.aclose()

    async def work(self, prompt: str = "", attached: Content = ()) -> AsyncIterator[LoopEvent]:
        """Run until the agent and its background agents have nothing left to do."""
        while True:
            end = Stopped(reason="completed")
            async for event in self.run(prompt, attached):
                if isinstance(event, Stopped):
                    end = event
                else:
                    yield event
            prompt, attached = "", ()
            if end.reason != "completed" or not await self._next_news():
                break
        yield end

    async def until_news(self) -> list[str]:
        """Wait for unread mail or agent reports, and return one line for each. The news stays
        unread, so a cancelled wait loses nothing. Next, call `run()` without a prompt.
        """
        while not (news := self.equipment.waiting(self.engine)):
            await self.equipment.next_look(MAIL_POLL_SECONDS)
        return news

    async def _next_news(self) -> bool:
        while not await self._has_news():
            if self.supervisor is None or not await run_unless_aborted(
                self.abort, self.supervisor.next_news()
            ):
                return await self._has_news()  # because a teammate may have become idle meanwhile
        return True

    async def _has_news(self) -> bool:
        for stage in self.equipment.inbox:
            await stage(self.engine)
        return self.engine.has_news()

    async def compact(
        self, focus: str = "", *, start: int | None = None, end: int | None = None
    ) -> Compacted | None:
        """Summarise history at the user's request. Return None if the user aborts."""
        self.abort.clear()
        return await run_unless_aborted(
            self.abort, self.session.compact(focus, start=start, end=end)
        )

    async def dream(self, *, is_trial: bool) -> DreamReport:
        if self.memory is None:
            raise ConfigError("there is nothing to tidy: memory is off (memory.on)")
        return await self.memory.dreams.dream_now(is_trial=is_trial)

    async def use_model(self, model: Model, reason: str) -> Fullness:
        found = await find_window(model, model.name)
        self.engine.learn_window(model.name, found.tokens)
        if not found.why and not self.engine.settings_for(model.name).window.limit_tokens:
            self.notices.add(describe_guess(model.name))
        await self.parts.models.switch(model)
        return self.engine.switch(model.name, reason)

    async def close(self, reason: str = "other") -> None:
        """Stop running work, run SessionEnd hooks, save memories, and always close the log.

        Memory jobs get one minute to finish. Setting `abort` ends this wait early.
        """
        if self._is_closed:
            return
        self._is_closed = True
        self.abort.clear()  # because an abort of the last turn must not stop the jobs
        leaving = asyncio.create_task(self._leave_on_abort())
        async with AsyncExitStack() as last_first:  # a failing step does not skip the others
            last_first.callback(self.session.close)
            last_first.callback(leaving.cancel)
            last_first.push_async_callback(self.parts.models.close)
            if self.loop.source == "main":
                last_first.push_async_callback(self.hooks.end, reason)
            if self.toolkit.mcp is not None:
                last_first.push_async_callback(self.toolkit.mcp.close)
            last_first.push_async_callback(self.tool_context.close)
            last_first.push_async_callback(self.background.stop, ENDED)  # before the model closes
            if self.engine.log.queue is not None:  # queue all jobs for workers
                last_first.push_async_callback(self.background.drain, DRAIN_SECONDS, *QUEUED)
            if self.memory is not None:
                last_first.push_async_callback(self.memory.close)
            if self.supervisor is not None:
                last_first.push_async_callback(self.supervisor.close)
            if self._events is not None:
                last_first.push_async_callback(self._events.aclose)

    async def _leave_on_abort(self) -> None:
        await self.abort.wait()
        self.background.cancel(LEFT)
