"""Background jobs: each runs one task at a time and never raises into the foreground."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias, TypeVar

from longhold.core.log.cursor import last_n
from longhold.core.log.queued_job import LEAVES
from longhold.core.log.spending import make_failure
from longhold.core.messages import ToolUse, text_of
from longhold.core.messages.text import exact_dollars, one_line
from longhold.core.messages.usage import Tally
from longhold.core.models.prices import price_call
from longhold.core.models.protocol import Finished
from longhold.core.turn.engine import Engine
from longhold.core.turn.fork.asking import AskFork, ForkReply, ForkRequest
from longhold.core.turn.round import RoundEvent, ToolBegan, ToolRan
from longhold.errors import Aborted

T = TypeVar("T")
Work: TypeAlias = Callable[[], Awaitable[object]]
OnFailure: TypeAlias = Callable[[str, Exception], None]


HandOver: TypeAlias = Callable[[str], Work | None]  # a task that hands a job over, or None


def _ignore(*_told: object) -> None:
    pass


_WRITES = ("Edit", "Write", "NotebookEdit")
STEPS_SHOWN, STEP_CHARS = 30, 160
DRAIN_SECONDS = 60.0  # how long a session waits at its end for running jobs
_PATHS = ("file_path", "notebook_path", "path")


@dataclass(slots=True)
class JobProgress:
    since: float = field(default_factory=time.time)
    phase: str = "starting"
    answers: int = 0
    calls: int = 0
    files: dict[str, None] = field(default_factory=dict)  # the files it changed, in order
    spent: Tally = field(default_factory=Tally)
    steps: deque[str] = field(default_factory=lambda: deque(maxlen=STEPS_SHOWN))
    """The last calls and words, one line each."""

    def see(self, event: object) -> None:
        match event:
            case ToolBegan(use=use):
                self.calls += 1
                given = " ".join(map(str, use.input.values()))
                self.steps.append(f"{use.name} {one_line(given)}"[:STEP_CHARS])
                if self.phase != "updating":
                    self.phase = "updating" if _is_writing(use) else "reading"
            case ToolRan(use=use, outcome=outcome) if not outcome.is_error and _is_writing(use):
                found = (use.input.get(name) for name in _PATHS)
                self.files |= {str(path): None for path in found if path}
            case Finished(reply=reply):
                self.answers += 1
                if said := one_line(text_of(reply.content)):
                    self.steps.append(said[:STEP_CHARS])
                self.spent = self.spent + price_call(reply.model, reply.usage)

    def line(self) -> str:
        facts = [self.phase, f"{self.answers} answers", f"{self.calls} tool calls"]
        if self.files:
            facts.append(f"changed {', '.join(self.files)}")
        return ", ".join((*facts, exact_dollars(self.spent.usd)))


def _is_writing(use: ToolUse) -> bool:
    return use.name in _WRITES or (
        use.name == "memory" and use.input.get("command") not in ("view", "search")
    )


@dataclass(slots=True, eq=False)
class Job:
    name: str
    on_failure: OnFailure = _ignore
    progress: JobProgress = field(default_factory=JobProgress)
    handed_over: HandOver = _ignore
    stopped_because: str = ""  # why the task was cancelled, if that counts as a failure
    _doing: "asyncio.Task[Any] | None" = None
    _next: Work | None = None

    @property
    def is_busy(self) -> bool:
        return self._doing is not None and not self._doing.done()

    def begin(self, work: Work) -> None:
        """Start a task or hand it over. While busy, queue it in place of the queued task."""
        work = self.handed_over(self.name) or work
        if self.is_busy:
            self._next = work
        else:
            self._doing = asyncio.create_task(self._work(work), name=self.name)

    async def wait(self, seconds: float) -> None:
        """Wait at most this long for the current and queued tasks. They continue in any case."""
        if self._doing is not None and not self._doing.done():
            await asyncio.wait({self._doing}, timeout=seconds)

    def cancel(self, why: str = "") -> None:
        """Cancel the current and queued tasks without waiting. With `why`, they count as failed."""
        self._next = None
        if self._doing is None or self._doing.done():
            return
        if why and not self._doing.cancelling():
            self.stopped_because = why
            self.on_failure(self.name, Aborted(why))
        self._doing.cancel()

    async def drain(self, seconds: float) -> bool:
        await self.wait(seconds)
        is_done = not self.is_busy
        await self.stop()
        return is_done

    async def stop(self, why: str = "") -> None:
        self.cancel(why)
        if self._doing is not None and not self._doing.done():
            await asyncio.wait({self._doing})

    async def _work(self, work: Work) -> None:
        wanted: Work | None = work
        while wanted is not None:
            try:
                await self._begun(wanted())
            except Exception as error:  # noqa: BLE001 - background work never raises into the foreground
                self.on_failure(self.name, error)
            wanted, self._next = self._next, None

    async def _begun(self, work: Awaitable[T]) -> T:
        self.progress, self.stopped_because = JobProgress(), ""
        _CURRENT.set(self)
        return await work


_CURRENT: ContextVar[Job | None] = ContextVar("job", default=None)


@dataclass(slots=True)
class Background:
    on_failure: OnFailure = _ignore
    jobs: dict[str, Job] = field(default_factory=dict)
    handed_over: HandOver = _ignore

    def job(self, name: str) -> Job:
        return self.jobs.setdefault(name, Job(name, self.on_failure, handed_over=self.handed_over))

    @property
    def busy(self) -> list[Job]:
        return [job for job in self.jobs.values() if job.is_busy]

    def cancel(self, why: str) -> None:
        for job in self.busy:
            job.cancel(why)

    async def stop(self, why: str = "") -> None:
        await asyncio.gather(*(job.stop(why) for job in self.jobs.values()))

    async def drain(self, seconds: float, *names: str) -> list[str]:
        jobs = list(map(self.job, names)) or list(self.jobs.values())
        done = await asyncio.gather(*(job.drain(seconds) for job in jobs))
        return [job.name for job, is_done in zip(jobs, done, strict=True) if not is_done]


_KINDS = {name: kind for kind, (_, name) in LEAVES.items()}
QUEUED = tuple(_KINDS)


def background_of(engine: Engine) -> Background:
    """Make a session's background jobs. Failures become log entries. Workers' jobs are queued."""

    def report(name: str, error: Exception) -> None:
        said = str(error) if isinstance(error, Aborted) else f"{type(error).__name__}: {error}"
        engine.report(make_failure(name, error, said))

    def hand_over(name: str) -> Work | None:
        queue, kind = engine.log.queue, _KINDS.get(name)
        return partial(queue.put, kind, last_n(engine.view.history)) if queue and kind else None

    return Background(on_failure=report, handed_over=hand_over)


def watch_forks(ask: AskFork) -> AskFork:
    """Count the events of a job's forks. Forks of the foreground are not counted."""

    async def ask_watched(request: ForkRequest) -> ForkReply:
        job = _CURRENT.get()
        if job is None:
            return await ask(request)
        progress, before = job.progress, request.on_event

        def see(event: RoundEvent) -> None:
            progress.see(event)
            if before is not None:
                before(event)

        return await ask(replace(request, on_event=see))

    return ask_watched
