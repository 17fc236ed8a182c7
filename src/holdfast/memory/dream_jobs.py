"""When a session dreams, and how: in the background, one process at a time, with a model or not.

The schedule is checked when the session is at rest. A model dreams on the conversation's prefix if
no consent is needed and the session read no untrusted text; if that fails, the failure is recorded
and the dream is done without a model. A stopped dream changes nothing.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from holdfast.errors import HoldfastError
from holdfast.log.entries import Dreamt, Failed
from holdfast.memory.dream_model import Dreamer, dream_with
from holdfast.memory.dream_offline import DreamReport, Steps, dream
from holdfast.memory.errors import MemoryRefused
from holdfast.memory.inbox import must_ask
from holdfast.memory.lazy_store import LazyStore
from holdfast.memory.lock import DreamBusy, DreamLock, LockState
from holdfast.memory.permissions import memories_only
from holdfast.memory.schedule import last_scan, note_scan, sessions_touched, time_to_dream
from holdfast.memory.store import MemoryStore
from holdfast.turn.background import Job
from holdfast.turn.engine import Engine
from holdfast.turn.fork import AskFork, Permit, Prefix

DREAM = "dream"
"""The job, and the name of its failures in the log."""
ASKED_FIRST = (
    "memory.consent is 'ask', and a model's dream would write what you have not seen; --dry-run"
    " shows it, and without --model only what is safe is done"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamJobs:
    """The dreams of one session."""

    NAME: ClassVar = DREAM

    engine: Engine
    store: LazyStore
    repository: Path
    ask: AskFork | None
    unasked: Callable[[tuple[Path, ...]], Permit]
    """Makes a permit for background work that may read these places besides the session's."""
    job: Job
    notify: Callable[[str], None]
    is_outside: Callable[[], bool]
    clock: Callable[[], float] = time.time

    def offer(self, engine: Engine) -> None:
        """Begin a dream if it is time."""
        settings, place = engine.settings.dream, self.store.place
        if not settings.on or not place.is_dir() or self.job.is_busy:
            return
        held = self._lock().look()
        touched: list[int] = []

        def count(since: float) -> int:
            note_scan(place, self.clock())
            touched.append(
                sessions_touched(
                    engine.log.path.parent, since, current=self.engine.log.header.session
                )
            )
            return touched[0]

        verdict = time_to_dream(
            settings, now=self.clock(), held=held, scanned=last_scan(place), count_sessions=count
        )
        if verdict.is_open:
            self.job.begin(partial(self._if_free, held, touched[0], engine.prefix()))

    async def stop(self) -> None:
        """Stop a dream under way, which leaves nothing."""
        await self.job.stop()

    async def _if_free(self, held: LockState, touched: int, prefix: Prefix) -> None:
        with contextlib.suppress(DreamBusy):  # another process was faster
            await self.dream(held, touched=touched, prefix=prefix)

    async def dream(self, seen: LockState, *, touched: int, prefix: Prefix) -> DreamReport:
        """Put memories in order while holding the lock; report to the log and to the user."""
        steps = self._steps()
        with self._lock().hold(seen) as before:
            report = None
            if self._may_ask():
                try:
                    report = await self._by_model(before.last, touched, steps, prefix=prefix)
                except HoldfastError as error:
                    self.engine.report(
                        Failed(what=DREAM, error=f"{error}; it is done without a model")
                    )
            if report is None:
                report = await asyncio.to_thread(self._by_engine, steps)
        self.engine.report(_dreamt(report))
        if report.commit is not None:
            undo = f"undo: holdfast memory undo {report.commit.id}"
            self.notify(f"dreamt: {report.line} ({undo})")
        return report

    async def dream_now(self, *, is_trial: bool) -> DreamReport:
        """Dream at the user's request, whatever the schedule; errors are raised."""
        if not is_trial and must_ask(self.engine.settings.memory, is_outside=False):
            raise MemoryRefused(ASKED_FIRST)
        last = self._lock().look().last
        logs = self.engine.log.path.parent
        touched = sessions_touched(logs, last, current=self.engine.log.header.session)
        if is_trial:
            return await self._by_model(last, touched, self._steps(), is_trial=True)
        with self._lock().hold(is_by_hand=True):
            report = await self._by_model(last, touched, self._steps())
        self.engine.report(_dreamt(report))
        return report

    def _steps(self) -> Steps:
        """Begin to record the last steps, for display."""
        steps = Steps(most=self.engine.settings.dream.steps_shown)
        self.job.show(steps.done)
        return steps

    def _may_ask(self) -> bool:
        """Return whether a model may dream: without consent, and in a session without untrusted text."""
        engine = self.engine
        is_wanted = engine.settings.dream.by == "model" and self.ask is not None
        return is_wanted and not must_ask(engine.settings.memory, is_outside=self.is_outside())

    async def _by_model(
        self,
        since: float,
        touched: int,
        steps: Steps,
        *,
        prefix: Prefix | None = None,
        is_trial: bool = False,
    ) -> DreamReport:
        engine = self.engine
        assert self.ask is not None, "a dream with a model has one to ask"
        logs = engine.log.path.parent
        permit = memories_only(self.unasked((logs,)))
        return await dream_with(
            Dreamer(ask=self.ask, permit=permit, logs=logs, prefix=prefix),
            self.store.store(),
            engine.settings.dream,
            repository=self.repository,
            since=since,
            touched=touched,
            steps=steps,
            is_trial=is_trial,
        )

    def _by_engine(self, steps: Steps) -> DreamReport:
        """Dream without a model, in a thread with its own connection."""
        settings = self.engine.settings
        with MemoryStore(self.store.place, settings.memory, clock=self.clock) as store:
            return dream(store, settings.dream, repository=self.repository, steps=steps)

    def _lock(self) -> DreamLock:
        stale_seconds = self.engine.settings.dream.stale_minutes * 60
        return DreamLock(self.store.place, stale_seconds=stale_seconds, clock=self.clock)


def _dreamt(report: DreamReport) -> Dreamt:
    removed = sum(1 for kept in report.merged.values() if not kept)
    return Dreamt(
        commit=str(report.commit.id) if report.commit else "",
        by="engine" if report.usage is None else "model",
        merged=len(report.merged) - removed,
        marked=len(report.superseded),
        removed=removed,
        why=report.line,
        usage=report.usage,
    )
