"""One round: a model call and the tool calls in its answer.

A tool starts as soon as its call is complete and in the log. Read-only tools run in parallel. Other
tools run alone, in the order of the calls. The gate decides which tools may run.
"""

import asyncio
import functools
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, TypeAlias

import msgspec
from msgspec import structs

from longhold.core.log.entries import Began, Ran
from longhold.core.messages import JsonObject, ToolUse
from longhold.core.models.protocol import Event, Reply
from longhold.core.tools.context import ToolContext
from longhold.core.tools.protocol import Outcome, Tool, unwrap_call
from longhold.core.turn.answer_writer import AnswerWriter, RecordEntry
from longhold.core.view.items import Round
from longhold.errors import ModelError, StoreError

PARALLEL_TOOLS = 10  # more would gain little, because the disk is then the bottleneck
STOPPED = "The tool was stopped before it finished."
SIBLING_FAILED = "The tool was stopped: another command of the same answer failed."
NOT_BEGUN = "The tool was not run: the turn was stopped before it began."
NOT_RUN_FAILED = "The tool was not run: an earlier command of the same answer failed."
NOT_RUN_REFUSED = "The tool was not run: an earlier call of the same answer was refused."

_RUNNING: ContextVar[str] = ContextVar("tool_use_id", default="")


def running_call() -> str:
    """Return the id of the call for which the current tool runs, or '' outside a tool."""
    return _RUNNING.get()


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    input: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Denied:
    """A tool may not run. The model reads the reason."""

    reason: str
    ends_turn: bool = False
    refused: str | None = None  # the user's own words, if the user refused


ToolGate: TypeAlias = Callable[[ToolUse, Tool], Awaitable[Allowed | Denied]]
After: TypeAlias = Callable[[ToolUse, Outcome, float], Awaitable[Outcome]]


async def let_pass(use: ToolUse, tool: Tool) -> Allowed | Denied:
    return Allowed(input=use.input)


async def _as_is(use: ToolUse, outcome: Outcome, seconds: float) -> Outcome:
    return outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolbox:
    tools: Mapping[str, Tool]
    tool_context: ToolContext
    gate: ToolGate = let_pass
    after: After = _as_is
    parallel: int = PARALLEL_TOOLS


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBegan:
    use: ToolUse


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRan:
    use: ToolUse
    outcome: Outcome
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    reply: Reply | None  # the whole answer, or None if the stream broke after tools had begun
    entries: tuple[int, ...]
    results: int
    ends_turn: bool = False
    error: ModelError | None = None


RoundEvent: TypeAlias = Event | ToolBegan | ToolRan | Played


async def _skip_wait() -> None:
    """Return immediately, because recorded entries are durable."""


async def run_round(
    events: AsyncIterator[Event],
    toolbox: Toolbox,
    record: RecordEntry,
    wait_for_commit: Callable[[], Awaitable[None]] = _skip_wait,
) -> AsyncGenerator[RoundEvent, None]:
    """Read an answer as it arrives, run its tools, and end with `Played`.

    A tool runs only after `wait_for_commit` has returned. A model error after a tool call ends the
    round instead of being raised.
    """
    written = AnswerWriter(record)
    runner = _Runner(toolbox, record, wait_for_commit)
    error: ModelError | None = None
    try:
        try:
            async for event in events:
                use = written.take(event)
                if use is not None:
                    runner.submit(use)
                yield event
                while runner.events:
                    yield runner.events.popleft()
        except ModelError as failure:
            if not runner.count:
                raise
            error = failure
            written.close("broken")
        async for done in runner.finish():
            yield done
    except (asyncio.CancelledError, GeneratorExit):
        written.close("aborted")
        raise
    finally:
        await runner.stop()
    yield Played(
        reply=written.reply,
        entries=tuple(written.numbers),
        results=runner.count,
        ends_turn=runner.ends_turn,
        error=error,
    )


def failed_calls(last: Round | None) -> bytes:
    """Return a hash of a round's calls and results, or b'' unless all of them failed."""
    if last is None or not last.results or not all(result.is_error for result in last.results):
        return b""
    calls = [(use.name, use.input) for use in last.tool_uses()]
    results = [result.content for result in last.results]
    return sha256(msgspec.json.encode((calls, results))).digest()


@dataclass(slots=True, eq=False)
class _Job:
    use: ToolUse
    tool: Tool | None
    is_safe: bool
    began: float = 0.0
    task: "asyncio.Task[Outcome] | None" = None
    stopped_because: str = STOPPED
    refused: str | None = None

    def deny(self, verdict: Denied) -> Outcome:
        self.refused = verdict.refused
        return Outcome(content=verdict.reason, is_error=True, is_denied=True)

    def start(self, work: Coroutine[Any, Any, Outcome]) -> "asyncio.Task[Outcome]":
        self.began, self.task = time.monotonic(), asyncio.create_task(work)
        return self.task

    def cancel(self, because: str) -> None:
        assert self.task is not None
        self.stopped_because = because
        self.task.cancel()


@dataclass(slots=True)
class _Runner:
    """Runs tool calls in order, read-only ones in parallel. Every call gets one result."""

    toolbox: Toolbox
    record: RecordEntry
    wait_for_commit: Callable[[], Awaitable[None]]
    events: "deque[ToolBegan | ToolRan]" = field(default_factory=deque)
    count: int = 0
    ends_turn: bool = False
    _waiting: "deque[_Job]" = field(default_factory=deque)
    _running: "list[_Job]" = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _not_run: str = ""  # why the remaining calls of this answer are skipped, or ""
    _failure: StoreError | None = None
    """A result could not be written, so the round cannot continue."""

    def submit(self, use: ToolUse) -> None:
        use = unwrap_call(use)
        tool = self.toolbox.tools.get(use.name)
        is_safe = tool is None or tool.is_read_only(use.input)
        self.count += 1
        job = _Job(use, tool, is_safe)
        if self._not_run:
            self._finish(job, self._not_run)
            return
        self._waiting.append(job)
        self._start_ready()

    async def finish(self) -> AsyncIterator[ToolBegan | ToolRan]:
        while True:
            while self.events:
                yield self.events.popleft()
            if self._failure is not None:
                raise self._failure
            if not self._running and not self._waiting:
                return
            await self._changed.wait()
            self._changed.clear()

    async def stop(self) -> None:
        """Stop running calls and answer waiting calls. Every call gets a result."""
        self._skip_waiting(NOT_BEGUN)
        tasks = [job.task for job in self._running if job.task]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _start_ready(self) -> None:
        while self._waiting and len(self._running) < self.toolbox.parallel:
            job = self._waiting[0]
            if self._running and not (
                job.is_safe and all(other.is_safe for other in self._running)
            ):
                return
            self._waiting.popleft()
            self._running.append(job)
            job.start(self._outcome(job)).add_done_callback(functools.partial(self._end, job))

    def _end(self, job: _Job, task: "asyncio.Task[Outcome]") -> None:
        """Take a call's result, even if its task was cancelled before it began."""
        self._running.remove(job)
        error = None if task.cancelled() else task.exception()
        if task.cancelled():
            self._finish(job, job.stopped_because)
        elif isinstance(error, StoreError):
            self._failure = error
        elif error is not None:
            self._finish(job, f"{job.use.name} failed: {error!r}.")
        else:
            self._finish(job, task.result())
            self._heed(job, task.result())
        self._start_ready()
        self._changed.set()

    async def _outcome(self, job: _Job) -> Outcome:
        use, tool = job.use, job.tool
        if tool is None:
            known = ", ".join(sorted(self.toolbox.tools))
            return Outcome(
                content=f"There is no tool {use.name!r}; there are {known}.", is_error=True
            )
        verdict = await self.toolbox.gate(use, tool)
        if isinstance(verdict, Denied):
            self.ends_turn = self.ends_turn or verdict.ends_turn
            return job.deny(verdict)
        self.record(Began(tool_use_id=use.id, tool=use.name))
        await self.wait_for_commit()
        self.events.append(ToolBegan(use=use))
        self._changed.set()
        began = time.monotonic()
        _RUNNING.set(use.id)  # applies only to this call's task
        outcome = await tool.run(verdict.input, self.toolbox.tool_context)
        ran = structs.replace(use, input=verdict.input)
        return await self.toolbox.after(ran, outcome, time.monotonic() - began)

    def _heed(self, job: _Job, outcome: Outcome) -> None:
        """Skip the remaining calls after a failed command or a refusal that ends the turn."""
        is_command = job.tool is not None and job.tool.kind == "shell"
        if self.ends_turn:
            self._skip_waiting(NOT_RUN_REFUSED)
        elif is_command and outcome.is_error and outcome.exit_status is not None:
            for other in self._running:
                other.cancel(SIBLING_FAILED)
            self._skip_waiting(NOT_RUN_FAILED)

    def _skip_waiting(self, why: str) -> None:
        self._not_run = why
        while self._waiting:
            self._finish(self._waiting.popleft(), why)

    def _finish(self, job: _Job, outcome: Outcome | str) -> None:
        """Record a result. A result that cannot be recorded ends the round."""
        if isinstance(outcome, str):
            outcome = Outcome(content=outcome, is_error=True)
        seconds = time.monotonic() - job.began if job.began else 0.0
        try:
            self.record(
                Ran(
                    tool_use_id=job.use.id,
                    content=outcome.content,
                    is_error=outcome.is_error,
                    exit_status=outcome.exit_status,
                    refused=job.refused,
                    seconds=round(seconds, 3),
                )
            )
        except StoreError as error:
            self._failure = self._failure or error
            return
        self.events.append(ToolRan(use=job.use, outcome=outcome, seconds=seconds))
