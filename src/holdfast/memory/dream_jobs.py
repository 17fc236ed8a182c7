"""When a session dreams, and how: in the background, one process at a time, with a model or not.

The conditions are checked when the session is at rest, the cheapest first. A model dreams on the conversation's prefix if
no consent is needed and the session read no untrusted text; if that fails, the failure is recorded
and the dream is done without a model. A stopped dream changes nothing.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from holdfast.errors import HoldfastError
from holdfast.log.entries import Dreamt, Failed
from holdfast.memory.dream import Dreamer, DreamReport, Steps, dream, dream_with
from holdfast.memory.errors import MemoryRefused
from holdfast.memory.inbox import must_ask
from holdfast.memory.lock import DreamBusy, DreamLock, LockState
from holdfast.memory.store import MemoryStore
from holdfast.memory.tool import memories_only
from holdfast.settings import DreamSettings
from holdfast.turn.background import Job
from holdfast.turn.engine import Engine
from holdfast.turn.fork import AskFork, Permit, Prefix

DREAM = "dream"
"""The job, and the name of its failures in the log."""
ASKED_FIRST = (
    "memory.consent is 'ask', and a model's dream would write what you have not seen; --dry-run"
    " shows it, and without --model only what is safe is done"
)


Unasked: TypeAlias = Callable[[tuple[Path, ...]], Permit]
"""Makes a permit for background work that may read these places besides the session's."""

SCANNED = ".dream-scan"
"""Its mtime is when sessions were last counted."""


@dataclass(frozen=True, slots=True)
class DreamVerdict:
    reason: str = ""
    """Why not; '' if it is time."""

    @property
    def is_open(self) -> bool:
        return not self.reason


def time_to_dream(
    settings: DreamSettings,
    *,
    now: float,
    held: LockState,
    scanned: float,
    count_sessions: Callable[[float], int],
) -> DreamVerdict:
    """Check all conditions, cheapest first; `count_sessions` counts those changed since a time."""
    if not settings.on:
        return DreamVerdict("dreaming is off (dream.on)")
    hours = (now - held.last) / 3_600
    if hours < settings.after_hours:
        return DreamVerdict(f"the last dream was {hours:.1f} hours ago (dream.after_hours)")
    minutes = (now - scanned) / 60
    if minutes < settings.scan_minutes:
        return DreamVerdict(f"sessions were counted {minutes:.0f} minutes ago (dream.scan_minutes)")
    touched = count_sessions(held.last)
    if touched < settings.sessions:
        return DreamVerdict(f"{touched} sessions changed since the last dream (dream.sessions)")
    if not held.is_stale(now, settings.stale_minutes * 60):
        return DreamVerdict(f"process {held.pid} is dreaming")
    return DreamVerdict()


def last_scan(directory: Path) -> float:
    """Return when sessions were last counted; 0 if never."""
    try:
        return (directory / SCANNED).stat().st_mtime
    except OSError:
        return 0.0


def note_scan(directory: Path, at: float) -> None:
    path = directory / SCANNED
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    os.utime(path, (at, at))


def sessions_touched(directory: Path, since: float, *, current: str = "") -> int:
    """Count the logs of a project written since a time, except the current session's."""
    return sum(
        1
        for path in directory.glob("*.jsonl")
        if path.stem != current and path.stat().st_mtime > since
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamJobs:
    engine: Engine
    place: Path
    """The directory of the store."""
    open: Callable[[], MemoryStore]
    repository: Path
    ask: AskFork | None
    unasked: Unasked
    job: Job
    notify: Callable[[str], None]
    is_outside: Callable[[], bool]
    clock: Callable[[], float] = time.time

    def offer(self, engine: Engine) -> None:
        settings, place = engine.settings.dream, self.place
        if not settings.on or not place.is_dir() or self.job.is_busy:
            return
        held = self._lock().look()

        def count(since: float) -> int:
            note_scan(place, self.clock())
            return self._touched(since)

        verdict = time_to_dream(
            settings, now=self.clock(), held=held, scanned=last_scan(place), count_sessions=count
        )
        if verdict.is_open:
            self.job.begin(partial(self._dream, held, engine.prefix()))

    async def _dream(self, seen: LockState, prefix: Prefix) -> None:
        """Dream while holding the lock, unless another process was faster; report on it."""
        steps = self._steps()
        report: DreamReport | None = None
        with contextlib.suppress(DreamBusy), self._lock().hold(seen) as before:
            if self._may_ask():
                try:
                    report = await self._by_model(before.last, steps, prefix=prefix)
                except HoldfastError as error:
                    self.engine.report(
                        Failed(what=DREAM, error=f"{error}; it is done without a model")
                    )
            report = report or await asyncio.to_thread(self._by_engine, steps)
        if report is None:
            return
        self.engine.report(_dreamt(report))
        if report.commit is not None:
            undo = f"undo: holdfast memory undo {report.commit.id}"
            self.notify(f"dreamt: {report.line} ({undo})")

    async def dream_now(self, *, is_trial: bool) -> DreamReport:
        """Dream at the user's request, whatever the schedule; errors are raised."""
        if not is_trial and must_ask(self.engine.settings.memory, is_outside=False):
            raise MemoryRefused(ASKED_FIRST)
        last = self._lock().look().last
        if is_trial:
            return await self._by_model(last, self._steps(), is_trial=True)
        with self._lock().hold(is_by_hand=True):
            report = await self._by_model(last, self._steps())
        self.engine.report(_dreamt(report))
        return report

    def _touched(self, since: float) -> int:
        log = self.engine.log
        return sessions_touched(log.path.parent, since, current=log.header.session)

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
            Dreamer(
                ask=self.ask,
                permit=permit,
                logs=logs,
                since=since,
                touched=self._touched(since),
                prefix=prefix,
            ),
            self.open(),
            engine.settings.dream,
            repository=self.repository,
            steps=steps,
            is_trial=is_trial,
        )

    def _by_engine(self, steps: Steps) -> DreamReport:
        """Dream without a model, in a thread with its own connection."""
        settings = self.engine.settings
        with MemoryStore(self.place, settings.memory, clock=self.clock) as store:
            return dream(store, settings.dream, repository=self.repository, steps=steps)

    def _lock(self) -> DreamLock:
        stale_seconds = self.engine.settings.dream.stale_minutes * 60
        return DreamLock(self.place, stale_seconds=stale_seconds, clock=self.clock)


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
