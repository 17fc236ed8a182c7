"""Schedule dreams: in the background, one process at a time, with or without a model.

Conditions are checked when the session is idle, cheapest first. A model dreams only if no consent
is needed and the session read no untrusted text. After a failure the safe part runs without a
model, and the dream is retried later. A stopped or killed dream changes nothing.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TypeAlias

from longhold.core.log.entries import Dreamt, Failed, Said
from longhold.core.log.shared import SharedCommits, SharedRecords
from longhold.core.memory.dream import Dreamer, DreamReport, Steps, dream, dream_with
from longhold.core.memory.inbox import must_ask
from longhold.core.memory.lock import DreamBusy, DreamLock, LockState
from longhold.core.memory.memory import MemoryRefused, stamp
from longhold.core.memory.memory_tool import permit_memories, usable_tools
from longhold.core.memory.store import MemoryStore
from longhold.core.messages import text_of
from longhold.core.messages.secrets import mask_secrets
from longhold.core.messages.text import clean_line
from longhold.core.settings import DreamSettings
from longhold.core.turn.background import Job
from longhold.core.turn.engine import Engine
from longhold.core.turn.fork import AskFork, Permit, Prefix, deny_all
from longhold.errors import LongholdError, StoreError

DAYBOOK_CHARS = 12_000
"""Limit for the user's messages since the last dream: about 3,000 tokens, 60 messages."""
LINE_CHARS = 200
"""Enough to see whether a message decides or corrects something."""


def daybook(
    shared: SharedRecords, since: float, *, current: str, most_chars: int = DAYBOOK_CHARS
) -> str:
    """List the user's messages since a time, newest session first, without the `current` one."""
    pages: list[str] = []
    room = most_chars
    for session in shared.sessions_since(since):
        if session == current:
            continue
        lines = [_line(one) for one in shared.said(session) if one.at > since and _is_users(one)]
        kept = _take_newest(lines, room // 2)  # so that one long session does not hide all others
        if kept:
            left = len(lines) - len(kept)
            head = f"{session}.jsonl{f' ({left} earlier messages not listed)' if left else ''}:"
            pages.append("\n".join([head, *kept]))
            room -= len(pages[-1])
    return "\n\n".join(pages)


def _take_newest(lines: Sequence[str], room: int) -> list[str]:
    sizes = accumulate(len(line) + 1 for line in reversed(lines))
    count = sum(size <= room for size in sizes)
    return list(lines[len(lines) - count :])


def _line(said: Said) -> str:
    text = clean_line(mask_secrets(text_of(said.content)), LINE_CHARS)
    return f"- #{said.n} ({stamp(said.at)[:10]}) {text}"


def _is_users(said: Said) -> bool:
    return not said.hidden and not said.mail and bool(text_of(said.content).strip())


DREAM = "dream"
"""The job, and the name of its failures in the log."""
ASKED_FIRST = (
    "memory.consent is 'ask', and a model's dream would write what you have not seen; --dry-run"
    " shows it, and without --model only what is safe is done"
)


Unasked: TypeAlias = Callable[[tuple[Path, ...]], Permit]
"""Makes a permit for background work that may also read these directories."""

SCANNED, TIDIED, FAILED = ".dream-scan", ".dream-tidy", ".dream-failed"
"""Files whose mtime is the last session count, run without the model, and failure."""


@dataclass(frozen=True, slots=True)
class DreamVerdict:
    reason: str = ""
    """Why not; '' if a dream is due."""

    @property
    def is_open(self) -> bool:
        return not self.reason


RETRY_MINUTES = 60.0
"""Delay after a failed or killed dream."""
SCAN_MINUTES = 10.0


def time_to_dream(
    settings: DreamSettings,
    *,
    now: float,
    held: LockState,
    scanned: float,
    failed: float = 0.0,
    count_sessions: Callable[[float], int],
) -> DreamVerdict:
    """Check all conditions, cheapest first; `count_sessions` counts those changed since a time."""
    if not settings.on:
        return DreamVerdict("dreaming is off (dream.on)")
    hours = (now - held.last) / 3_600
    if 0 <= hours < settings.after_hours:  # a future time means that the clock was set back
        return DreamVerdict(f"the last dream was {hours:.1f} hours ago (dream.after_hours)")
    minutes = (now - failed) / 60
    if 0 <= minutes < RETRY_MINUTES:
        return DreamVerdict(f"a dream failed {minutes:.0f} minutes ago")
    minutes = (now - scanned) / 60
    if 0 <= minutes < SCAN_MINUTES:
        return DreamVerdict(f"sessions were counted {minutes:.0f} minutes ago")
    touched = count_sessions(held.last)
    if touched < settings.sessions:
        return DreamVerdict(f"{touched} sessions changed since the last dream (dream.sessions)")
    if not held.is_stale(now):
        return DreamVerdict(f"process {held.pid} is dreaming")
    return DreamVerdict()


def last_noted(directory: Path, name: str) -> float:
    try:
        return (directory / name).stat().st_mtime
    except OSError:
        return 0.0


def note(directory: Path, name: str, at: float) -> None:
    path = directory / name
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    os.utime(path, (at, at))


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamJobs:
    engine: Engine
    place: Path
    commits: SharedCommits | None
    open: Callable[[], MemoryStore]
    repository: Path
    ask: AskFork | None
    unasked: Unasked | None
    job: Job
    notify: Callable[[str], None]
    is_outside: Callable[[], bool]
    clock: Callable[[], float] = time.time

    def offer(self, engine: Engine) -> None:
        settings, place = engine.settings.dream, self.place
        if not settings.on or not place.is_dir() or self.job.is_busy:
            return
        self._report_killed()
        held = self._lock().look()

        def count(since: float) -> int:
            note(place, SCANNED, self.clock())
            return self._touched(since)

        verdict = time_to_dream(
            settings,
            now=self.clock(),
            held=held,
            scanned=last_noted(place, SCANNED),
            failed=last_noted(place, FAILED),
            count_sessions=count,
        )
        if verdict.is_open and self._is_due_everywhere(settings.after_hours):
            self._begin_everywhere(self.clock())
            self.job.begin(partial(self._dream, held, engine.prefix()))

    def _is_due_everywhere(self, after_hours: float) -> bool:
        if self.commits is None:
            return True
        began = float(self.engine.log.shared.read(DREAM + self.commits.place.name) or 0)
        return not 0 <= self.clock() - began < after_hours * 3_600

    def _begin_everywhere(self, at: float) -> None:
        if self.commits is not None:
            self.engine.log.shared.keep(DREAM + self.commits.place.name, str(at).encode())

    def _report_killed(self) -> None:
        with contextlib.suppress(DreamBusy):
            if dead := self._lock().release_dead():
                self._report_failure(f"process {dead.pid} was killed while it dreamt")

    async def _dream(self, seen: LockState, prefix: Prefix) -> None:
        steps = self._steps()
        try:
            if not self._wants_model():
                await self._tidy(steps, seen)
            elif self.is_outside():
                await self._tidy_meanwhile(steps)
            else:
                await self._ask_model(steps, seen, prefix)
        except DreamBusy:
            return
        except asyncio.CancelledError:
            with contextlib.suppress(StoreError):  # a closed session accepts no more entries
                self._report_failure("it was stopped", is_told=False)
            raise

    async def _ask_model(self, steps: Steps, seen: LockState, prefix: Prefix) -> None:
        try:
            with self._lock().hold(seen) as before:
                report = await self._dream_by_model(before.last, steps, prefix=prefix)
        except DreamBusy:
            raise
        except LongholdError as error:
            self._report_failure(str(error))
            await self._tidy_meanwhile(steps)
        else:
            self._report(report)

    async def _tidy(self, steps: Steps, seen: LockState) -> None:
        with self._lock().hold(seen):
            report = await asyncio.to_thread(self._dream_by_engine, steps)
        self._report(report)

    async def _tidy_meanwhile(self, steps: Steps) -> None:
        """Do the part that needs no model, at most once per interval. The dream is still due."""
        hours = (self.clock() - last_noted(self.place, TIDIED)) / 3_600
        if 0 <= hours < self.engine.settings.dream.after_hours:
            return
        with self._lock().hold(is_counted=False):
            report = await asyncio.to_thread(self._dream_by_engine, steps)
        note(self.place, TIDIED, self.clock())
        self._report(report)

    async def dream_now(self, *, is_trial: bool) -> DreamReport:
        """Dream now, whatever the schedule. Errors are raised."""
        if not is_trial and must_ask(self.engine.settings.memory, is_outside=False):
            raise MemoryRefused(ASKED_FIRST)
        last = self._lock().look().last
        if is_trial:
            return await self._dream_by_model(last, self._steps(), is_trial=True)
        self._report_killed()
        with self._lock().hold(is_by_hand=True):
            report = await self._dream_by_model(last, self._steps())
        self.engine.report(_make_dreamt(report))
        return report

    def _report(self, report: DreamReport) -> None:
        self.engine.report(_make_dreamt(report))
        if report.commit is not None:
            undo = f"undo: longhold memory undo {report.commit.id}"
            self.notify(f"dreamt: {report.line} ({undo})")

    def _report_failure(self, why: str, *, is_told: bool = True) -> None:
        note(self.place, FAILED, self.clock())
        self._begin_everywhere(0.0)
        self.engine.report(Failed(what=DREAM, error=f"{why}; it counts as not done"))
        if is_told:
            self.notify(
                f"the dream failed: {why}; it is tried again in {RETRY_MINUTES:.0f} minutes"
            )

    def _touched(self, since: float) -> int:
        log = self.engine.log
        return len({*log.shared.sessions_since(since)} - {log.header.session})

    def _steps(self) -> Steps:
        steps = Steps()
        self.job.show(steps)
        return steps

    def _wants_model(self) -> bool:
        """Return whether a model should dream: no consent is needed, and it has the tool."""
        engine = self.engine
        is_there = self.ask is not None and bool(usable_tools(engine.frame.tools))
        is_wanted = engine.settings.dream.by == "model" and is_there
        return is_wanted and not must_ask(engine.settings.memory, is_outside=False)

    async def _dream_by_model(
        self,
        since: float,
        steps: Steps,
        *,
        prefix: Prefix | None = None,
        is_trial: bool = False,
    ) -> DreamReport:
        engine = self.engine
        assert self.ask is not None, "a dream with a model has one to ask"
        shared, session = engine.log.shared, engine.log.header.session
        logs = engine.log.path.parent if engine.log.has_file else None
        readable = (logs,) if logs else ()
        permit = permit_memories(self.unasked(readable) if self.unasked else deny_all)
        said = await asyncio.to_thread(daybook, shared, since, current=session)
        return await dream_with(
            Dreamer(
                ask=self.ask,
                permit=permit,
                logs=logs,
                since=since,
                touched=self._touched(since),
                daybook=said,
                tools=usable_tools(engine.frame.tools, can_look=self.unasked is not None),
                can_look=self.unasked is not None,
                prefix=prefix,
            ),
            self.open(),
            engine.settings.dream,
            repository=self.repository,
            steps=steps,
            is_trial=is_trial,
        )

    def _dream_by_engine(self, steps: Steps) -> DreamReport:
        """Dream without a model, in a thread with its own connection."""
        settings = self.engine.settings
        with MemoryStore(
            self.place, settings.memory, commits=self.commits, clock=self.clock
        ) as store:
            return dream(store, settings.dream, repository=self.repository, steps=steps)

    def _lock(self) -> DreamLock:
        return DreamLock(self.place, clock=self.clock)


def _make_dreamt(report: DreamReport) -> Dreamt:
    removed = sum(1 for kept in report.merged.values() if not kept)
    return Dreamt(
        commit=str(report.commit.id) if report.commit else "",
        by="engine" if report.usage is None else "model",
        merged=len(report.merged) - removed,
        marked=len(report.superseded),
        removed=removed,
        why=report.line,
        names=report.files,
        dropped=dict(report.dropped),
        usage=report.usage,
    )
