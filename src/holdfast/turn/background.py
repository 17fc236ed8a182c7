"""Work beside the conversation: one thing at a time, the newest wish wins, nothing raises.

A wish comes in and is begun at once, or replaces the one that waits while another is under way.
Whatever fails is told to whoever asked to hear of it, and the foreground goes on. At the end of
a session jobs get a while to finish; then they are stopped.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Work: TypeAlias = Callable[[], Awaitable[None]]
Hear: TypeAlias = Callable[[str, Exception], None]
"""Told the name of a job and why it failed."""


def _hear_nothing(_name: str, _error: Exception) -> None:
    """Let a failure pass."""


@dataclass(slots=True, eq=False)
class Job:
    """One sort of work that is done beside the conversation."""

    name: str
    on_failure: Hear = _hear_nothing
    steps: Sequence[str] = ()
    """The last steps of what is under way, for whoever looks on."""
    _doing: "asyncio.Task[None] | None" = None
    _next: Work | None = None

    @property
    def is_busy(self) -> bool:
        """Say whether something is under way."""
        return self._doing is not None and not self._doing.done()

    def begin(self, work: Work) -> None:
        """Do this now; while something is under way, next, and nothing else that waited."""
        if self.is_busy:
            self._next = work
        else:
            self._doing = asyncio.create_task(self._work(work), name=self.name)

    async def wait(self, seconds: float) -> None:
        """Wait for what is under way and what waits, so long at most; it goes on either way."""
        if self._doing is not None and not self._doing.done():
            await asyncio.wait({self._doing}, timeout=seconds)

    def cancel(self) -> None:
        """Have what is under way end, without waiting for that, and forget what waits."""
        self._next = None
        if self._doing is not None:
            self._doing.cancel()

    async def drain(self, seconds: float) -> bool:
        """Wait for what is under way and what waits; say whether it came to its end in time."""
        if self._doing is None:
            return True
        await asyncio.wait({self._doing}, timeout=seconds)
        is_done = self._doing.done()
        await self.stop()
        return is_done

    async def stop(self) -> None:
        """End what is under way, and forget what waits."""
        self._next = None
        if self._doing is not None and not self._doing.done():
            self._doing.cancel()
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
    """All jobs of one session."""

    on_failure: Hear = _hear_nothing
    jobs: dict[str, Job] = field(default_factory=dict)

    def job(self, name: str) -> Job:
        """Give the job of a name; the first to ask makes it."""
        if name not in self.jobs:
            self.jobs[name] = Job(name, lambda job, error: self.on_failure(job, error))
        return self.jobs[name]

    def lines(self) -> list[str]:
        """Tell what is under way, each job with its last steps."""
        busy = [job for job in self.jobs.values() if job.is_busy]
        return [line for job in busy for line in (job.name, *(f"  {step}" for step in job.steps))]

    async def drain(self, seconds: float) -> list[str]:
        """Let all of them finish side by side; name those that were stopped because it took too long."""
        jobs = list(self.jobs.values())
        done = await asyncio.gather(*(job.drain(seconds) for job in jobs))
        return [job.name for job, is_done in zip(jobs, done, strict=True) if not is_done]
