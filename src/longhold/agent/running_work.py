"""Background jobs and background agents of a session.

Each job keeps its number, so a user can act on a list printed earlier.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial

from longhold.agent.subagents.supervisor import Supervisor
from longhold.core.turn.background import Background, JobProgress
from longhold.errors import ConfigError

STOPPED = "it was stopped by the user"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningJob:
    kind: str
    """`dream`, `memory`, `notes`, …, or `agent`."""
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
        raise ConfigError(f"no job {which!r} is running; running: {known}")
