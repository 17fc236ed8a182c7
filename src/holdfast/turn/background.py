"""Background work: each job does one thing at a time, and never raises into the foreground.

A newer job replaces the queued one; failures go to a callback. When a session ends, jobs get some
time to finish and are then stopped.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
Work: TypeAlias = Callable[[], Awaitable[None]]
OnFailure: TypeAlias = Callable[[str, Exception], None]
"""Called with the name of a job and why it failed."""


def _ignore(_name: str, _error: Exception) -> None:
    pass


@dataclass(slots=True, eq=False)
class Job:
    """One kind of background work."""

    name: str
    on_failure: OnFailure = _ignore
    steps: Sequence[str] = ()
    """The last steps of the work in progress, for display."""
    _doing: "asyncio.Task[Any] | None" = None
    _next: Work | None = None

    @property
    def is_busy(self) -> bool:
        return self._doing is not None and not self._doing.done()

    def begin(self, work: Work) -> None:
        """Start now; while busy, queue this in place of whatever was queued."""
        if self.is_busy:
            self._next = work
        else:
            self._doing = asyncio.create_task(self._work(work), name=self.name)

    def run(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Start work whose result, or failure, the caller takes from the task."""
        task = asyncio.create_task(work, name=self.name)
        self._doing = task
        return task

    def show(self, steps: Sequence[str]) -> None:
        """Show these steps for the work in progress; the sequence may go on growing."""
        self.steps = steps

    async def wait(self, seconds: float) -> None:
        """Wait for the work in progress and in the queue, at most so long; it goes on either way."""
        if self._doing is not None and not self._doing.done():
            await asyncio.wait({self._doing}, timeout=seconds)

    def cancel(self) -> None:
        """Cancel the work in progress without waiting for its end, and drop the queue."""
        self._next = None
        if self._doing is not None:
            self._doing.cancel()

    async def drain(self, seconds: float) -> bool:
        """Wait for the work to finish, then stop it; return whether it finished in time."""
        await self.wait(seconds)
        is_done = not self.is_busy
        await self.stop()
        return is_done

    async def stop(self) -> None:
        """Cancel the work in progress, wait for its end, and drop the queue."""
        self.cancel()
        if self._doing is not None and not self._doing.done():
            await asyncio.wait({self._doing})

    async def _work(self, work: Work) -> None:
        wanted: Work | None = work
        while wanted is not None:
            try:
                await wanted()
            except Exception as error:  # noqa: BLE001 - background work never raises into the foreground
                self.on_failure(self.name, error)
            wanted, self._next = self._next, None


@dataclass(slots=True)
class Background:
    on_failure: OnFailure = _ignore
    jobs: dict[str, Job] = field(default_factory=dict)

    def job(self, name: str) -> Job:
        return self.jobs.setdefault(name, Job(name, self.on_failure))

    def lines(self) -> list[str]:
        """List the busy jobs, each with its last steps."""
        busy = [job for job in self.jobs.values() if job.is_busy]
        return [line for job in busy for line in (job.name, *(f"  {step}" for step in job.steps))]

    async def stop(self) -> None:
        """Stop every job, and wait until each has cleaned up."""
        await asyncio.gather(*(job.stop() for job in self.jobs.values()))

    async def drain(self, seconds: float, *names: str) -> list[str]:
        """Let these jobs, or all, finish side by side; return the names of those stopped as late."""
        jobs = list(map(self.job, names)) or list(self.jobs.values())
        done = await asyncio.gather(*(job.drain(seconds) for job in jobs))
        return [job.name for job, is_done in zip(jobs, done, strict=True) if not is_done]
