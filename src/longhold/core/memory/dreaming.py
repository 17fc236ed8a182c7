"""Schedule dreams: in the background, one process at a time, with or without a model.

Conditions are checked when the session is idle, cheapest first. A model dreams only if no consent
is needed and the session read no untrusted text. After a failure, only the safe part runs, and the
dream is retried later. A stopped or killed dream changes nothing.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, islice
from pathlib import Path
from typing import TypeAlias

from filelock import FileLock, Timeout

from longhold.core.log.entries import Dreamt, Failed
from longhold.core.log.log import AGENTS
from longhold.core.log.reading import load
from longhold.core.log.shared import MemoryBackend, SharedRecords
from longhold.core.memory.backlog import DREAM, MemoryBudget, is_users, line_of
from longhold.core.memory.dream import Dreamer, DreamReport, dream, dream_with
from longhold.core.memory.inbox import must_ask
from longhold.core.memory.memory import MemoryRefused
from longhold.core.memory.memory_tool import permit_memories, usable_tools
from longhold.core.memory.store import MemoryStore
from longhold.core.memory.untrusted_input import UntrustedInput
from longhold.core.messages import Usage
from longhold.core.settings import DreamSettings
from longhold.core.settings.private_files import private_directory, write_private
from longhold.core.turn.background import Job
from longhold.core.turn.engine import Engine
from longhold.core.turn.fork.asking import AskFork, Permit, deny_all
from longhold.core.turn.fork.prefix import Prefix
from longhold.errors import LongholdError, StoreError

LOCK_NAME = ".dream-lock"


class DreamBusy(StoreError):
    """Another process is dreaming or has just dreamt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockState:
    time: float
    """The time at which the last dream ended or this one began."""
    pid: int = 0
    """The dreaming process. After a kill, it stays listed until `release_dead`."""
    before: float = 0.0

    @property
    def last(self) -> float:
        return self.before if self.pid else self.time


class DreamLock:
    """Allows one dream at a time, and stores the time of the last dream.

    The mtime of `.dream-lock` is the time of the last dream. Its text has the dreaming process and
    the previous time, which a failed dream restores. The operating system holds the lock itself (on
    `.dream-lock.turn`) and releases it when the process dies.
    """

    def __init__(self, directory: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._path = directory / LOCK_NAME
        self._clock = clock

    def look(self) -> LockState:
        """Read the lock. A missing or unreadable lock is free."""
        at = 0.0
        try:
            at = self._path.stat().st_mtime
            pid, before = self._path.read_text(encoding="utf-8").split()
            return LockState(time=at, pid=int(pid), before=float(before))
        except (OSError, ValueError):
            return LockState(time=at)

    @contextmanager
    def hold(
        self, seen: LockState | None = None, *, is_counted: bool = True
    ) -> Iterator[LockState]:
        """Hold the lock. On failure or without `is_counted`, restore the time of the last dream."""
        with self._take():
            before = self.look()
            if seen is not None and before.last > seen.last:
                raise DreamBusy("another process has just finished a dream; there is nothing to do")
            self._write(f"{os.getpid()} {before.last!r}", self._clock())
            try:
                yield before
            except BaseException:
                self._write("", before.last)
                raise
            self._write("", self._clock() if is_counted else before.last)

    def release_dead(self) -> LockState | None:
        """Restore the time that a killed dream replaced. Return the dream's state, or None."""
        if not self.look().pid:
            return None
        try:
            with self._take():
                found = self.look()
                self._write("", found.last)
                return found if found.pid else None
        except DreamBusy:
            return None

    @contextmanager
    def _take(self) -> Iterator[None]:
        private_directory(self._path.parent)
        lock = FileLock(f"{self._path}.turn", timeout=0, mode=0o600)
        try:
            lock.acquire()
        except Timeout:
            dreamer = f"process {self.look().pid}"
            raise DreamBusy(f"{dreamer} is dreaming; try again when it is done") from None
        try:
            yield
        finally:
            lock.release()

    def _write(self, text: str, at: float) -> None:
        write_private(self._path, text.encode(), at=at)


DAYBOOK_CHARS = 12_000
"""Limit for the user's messages since the last dream, about 3,000 tokens or 60 messages."""
LINE_CHARS = 200
"""Limit per message, enough to recognise a decision or correction."""


def daybook(
    shared: SharedRecords, since: float, *, current: str, most_chars: int = DAYBOOK_CHARS
) -> str:
    """List the user's messages since a time, newest session first, except session `current`."""
    pages: list[str] = []
    room = most_chars
    for session in shared.sessions_since(since):
        if session == current:
            continue
        lines = [
            line_of(one, LINE_CHARS)
            for one in shared.read_said(session)
            if one.at > since and is_users(one)
        ]
        kept = _take_newest(lines, room // 2)  # one long session must not hide all others
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


ASKED_FIRST = (
    "a model's dream needs your review, because memory.consent is 'ask' or this session has"
    " read untrusted text; `/dream try` or `longhold memory dream --dry-run` shows it, and with"
    " dream.by = 'engine' Longhold makes only the safe changes"
)

Unasked: TypeAlias = Callable[[tuple[Path, ...]], Permit]
"""Makes a permit for background work that may also read these directories."""

MOST_LOGS = 20

SCANNED, TIDIED, FAILED = ".dream-scan", ".dream-tidy", ".dream-failed"
"""Files whose mtime is the time of the last session count, tidying or failure."""

RETRY_MINUTES = 60.0
"""Delay in minutes after a failed or killed dream."""
SCAN_MINUTES = 10.0


def refuse_dream(
    settings: DreamSettings,
    *,
    now: float,
    held: LockState,
    scanned: float,
    failed: float = 0.0,
    count_sessions: Callable[[float], int],
) -> str:
    """Return why no dream is due, or ''. Cheap conditions are checked first.

    `count_sessions` counts the sessions changed since a time.
    """
    if not settings.on:
        return "dreaming is off (dream.on)"
    hours = (now - held.last) / 3_600
    if 0 <= hours < settings.after_hours:  # a future time means that the clock was set back
        return f"the last dream was {hours:.1f} hours ago (dream.after_hours)"
    minutes = (now - failed) / 60
    if 0 <= minutes < RETRY_MINUTES:
        return f"a dream failed {minutes:.0f} minutes ago"
    minutes = (now - scanned) / 60
    if 0 <= minutes < SCAN_MINUTES:
        return f"sessions were counted {minutes:.0f} minutes ago"
    touched = count_sessions(held.last)
    if touched < settings.sessions:
        return f"{touched} sessions changed since the last dream (dream.sessions)"
    if held.pid:
        return f"process {held.pid} is dreaming"
    return ""


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
    commits: MemoryBackend | None
    open: Callable[[], MemoryStore]
    repository: Path
    ask: AskFork | None
    unasked: Unasked | None
    job: Job
    notify: Callable[[str], None]
    is_outside: Callable[[], bool]
    budget: MemoryBudget
    clock: Callable[[], float] = time.time

    def offer(self, engine: Engine) -> None:
        settings, place = engine.settings.dream, self.place
        if not settings.on or not place.is_dir() or self.job.is_busy:
            return
        self._report_killed()
        held = self._lock().look()

        def count(since: float) -> int:
            note(place, SCANNED, self.clock())
            return self._count_touched(since)

        refusal = refuse_dream(
            settings,
            now=self.clock(),
            held=held,
            scanned=last_noted(place, SCANNED),
            failed=last_noted(place, FAILED),
            count_sessions=count,
        )
        if not refusal and self._is_due_everywhere(settings.after_hours):
            self._begin_everywhere(self.clock())
            self.job.begin(partial(self._dream, held))

    def _is_due_everywhere(self, after_hours: float) -> bool:
        if self.commits is None:
            return True
        began = float(self.engine.log.shared.read(DREAM + self.place.name) or 0)
        return not 0 <= self.clock() - began < after_hours * 3_600

    def _begin_everywhere(self, at: float) -> None:
        if self.commits is not None:
            self.engine.log.shared.keep(DREAM + self.place.name, str(at).encode())

    def _report_killed(self) -> None:
        if dead := self._lock().release_dead():
            self._report_failure(f"process {dead.pid} was killed while it dreamt")

    async def _dream(self, seen: LockState) -> None:
        try:
            if not self._wants_model():
                await self._tidy(seen)
            elif self._asks_first() or self.refusal():
                await self._tidy_meanwhile()
            else:
                await self._ask_model(seen)
        except DreamBusy:
            return
        except asyncio.CancelledError:
            with suppress(StoreError):  # a closed session accepts no more entries
                self._report_failure("" if self.job.stopped_because else "it was stopped", False)
            raise

    def refusal(self) -> str:
        """Return why the budget does not allow a model's dream, or ''."""
        frame_tokens = round(self.engine.make_weigher()(self.engine.frame.measure))
        prompt = Usage(cache_read_tokens=frame_tokens)
        return self.budget.refusal(DREAM, self.budget.expect(DREAM, self.engine.model, prompt))

    async def _ask_model(self, seen: LockState) -> None:
        limit = self.budget.left_usd(DREAM) if self.budget.share else None
        try:
            with self._lock().hold(seen) as before:
                report = await self._dream_by_model(before.last, max_usd=limit)
        except DreamBusy:
            raise
        except LongholdError as error:
            self._report_failure(str(error))
            await self._tidy_meanwhile()
        else:
            self._report(report)

    async def _tidy(self, seen: LockState) -> None:
        with self._lock().hold(seen):
            report = await asyncio.to_thread(self._dream_by_engine)
        self._report(report)

    async def _tidy_meanwhile(self) -> None:
        """Do the part that needs no model, at most once per interval. The dream remains due."""
        hours = (self.clock() - last_noted(self.place, TIDIED)) / 3_600
        if 0 <= hours < self.engine.settings.dream.after_hours:
            return
        with self._lock().hold(is_counted=False):
            report = await asyncio.to_thread(self._dream_by_engine)
        note(self.place, TIDIED, self.clock())
        self._report(report)

    async def dream_now(self, *, is_trial: bool) -> DreamReport:
        """Dream now, independent of the schedule. Errors are raised."""
        by_engine = self.engine.settings.dream.by == "engine"
        if not by_engine and not is_trial and self._asks_first():
            raise MemoryRefused(ASKED_FIRST)
        last = self._lock().look().last
        dream = partial(self._dream_by_model, last, is_trial=is_trial)
        if by_engine:
            tidy = partial(self._dream_by_engine, is_trial=is_trial)
            dream = partial(asyncio.to_thread, tidy)
        if is_trial:
            return await dream()
        self._report_killed()
        with self._lock().hold():
            report = await dream()
        self.engine.report(_make_dreamt(report))
        return report

    def _report(self, report: DreamReport) -> None:
        self.engine.report(_make_dreamt(report))
        if report.commit is not None:
            undo = f"undo: longhold memory undo {report.commit.id}"
            self.notify(f"dreamt: {report.line} ({undo})")

    def _report_failure(self, why: str, is_told: bool = True) -> None:
        """Record a failure. Without `why`, the log already has its entry."""
        note(self.place, FAILED, self.clock())
        self._begin_everywhere(0.0)
        if why:
            self.engine.report(Failed(what=DREAM, error=f"{why}; it does not count"))
        if is_told:
            self.notify(f"the dream failed: {why}; it is retried in {RETRY_MINUTES:.0f} minutes")

    def _count_touched(self, since: float) -> int:
        log = self.engine.log
        return len({*log.shared.sessions_since(since)} - {log.header.session})

    def _wants_model(self) -> bool:
        """Return whether a model should dream. It must need no consent and have the memory tool."""
        engine = self.engine
        is_there = self.ask is not None and bool(usable_tools(engine.frame.tools))
        is_wanted = engine.settings.dream.by == "model" and is_there
        return is_wanted and not must_ask(engine.settings.memory, is_outside=False)

    async def _dream_by_model(
        self, since: float, *, max_usd: float | None = None, is_trial: bool = False
    ) -> DreamReport:
        engine = self.engine
        assert self.ask is not None, "a dream with a model has a model"
        shared, session = engine.log.shared, engine.log.header.session
        logs = await asyncio.to_thread(self._list_clean_logs, since)
        readable = tuple(place for log in logs for place in (log, log.with_suffix("")))
        permit = permit_memories(self.unasked(readable) if self.unasked else deny_all)
        said = await asyncio.to_thread(daybook, shared, since, current=session)
        return await dream_with(
            Dreamer(
                ask=self.ask,
                permit=permit,
                logs=logs,
                since=since,
                daybook=said,
                tools=usable_tools(engine.frame.tools, can_look=self.unasked is not None),
                can_look=self.unasked is not None,
                prefix=_without_conversation(engine.prefix()),
                max_usd=max_usd,
            ),
            self.open(),
            engine.settings.dream,
            repository=self.repository,
            is_trial=is_trial,
        )

    def _list_clean_logs(self, since: float) -> list[Path]:
        """List the newest logs without untrusted text, as no one reviews a dream's memories."""
        log = self.engine.log
        if not log.has_file:
            return []
        place = log.path.parent
        logs = (place / f"{id}.jsonl" for id in log.shared.sessions_since(since))
        return [path for path in islice(logs, MOST_LOGS) if _is_clean(path)]

    def _asks_first(self) -> bool:
        """Return whether memories by a model need consent, for which a dream cannot wait."""
        return must_ask(self.engine.settings.memory, is_outside=self.is_outside())

    def _dream_by_engine(self, *, is_trial: bool = False) -> DreamReport:
        """Dream without a model, in a thread with its own connection."""
        settings = self.engine.settings
        with MemoryStore(
            self.place, settings.memory, commits=self.commits, clock=self.clock
        ) as store:
            return dream(store, settings.dream, repository=self.repository, is_trial=is_trial)

    def _lock(self) -> DreamLock:
        return DreamLock(self.place, clock=self.clock)


def _is_clean(log: Path) -> bool:
    try:
        agents = (log.with_suffix("") / AGENTS).glob("*.jsonl")
        return not any(UntrustedInput().follow(load(path).entries) for path in (log, *agents))
    except (LongholdError, OSError):
        return False


def _without_conversation(prefix: Prefix) -> Prefix:
    """Drop the messages, because a dream concerns all sessions and each call would pay for them."""
    return replace(prefix, messages=(), cached_to=None, before=None, previous_id="")


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
