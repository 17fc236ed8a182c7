"""The dream lock: one dream at a time, and when the last one was.

A file in the memory directory: its time is the last consolidation, its text names the process
that dreams and the time before. Taking it is one step under a file lock and verified by
reading back; whoever looked at an older time than the one there came too late. A dream that
fails puts the time back; one that was killed is told by its process being gone, and counts as
not having happened.
"""

import contextlib
import hashlib
import math
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from holdfast.errors import StoreError
from holdfast.settings.files import is_running, private_directory, write_private

NAME = ".dream-lock"
TURN_SECONDS = 10.0
"""Taking the lock is a few file operations; a longer wait means the disk hangs."""


HERE_CHARS = 12
"""Enough to tell the machines of one user apart."""


class DreamBusy(StoreError):
    """Somebody else dreams, or has just done so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockState:
    """What the lock's file says."""

    time: float
    """Of the file: when the last dream ended, or this one began."""
    pid: int = 0
    """The process that dreams; 0 is nobody."""
    started: str = ""
    """When that process began, so that another one of its number is not taken for it."""
    before: float = 0.0
    """When the dream before this one was."""

    @property
    def last(self) -> float:
        """When the last dream was that came to its end."""
        return self.before if self.pid else self.time

    def is_stale(self, now: float, stale_seconds: float) -> bool:
        """Tell whether its process is gone for good."""
        if not self.pid:
            return True
        return self.is_gone and now - self.time > stale_seconds

    @property
    def is_gone(self) -> bool:
        """Tell whether no such process is seen from here."""
        return not is_running(self.pid) or _started(self.pid) != self.started

    @property
    def is_dead(self) -> bool:
        """Tell whether its process would be seen from here, and is not."""
        return self.is_gone and self.started.endswith(f"@{_here()}")


class DreamLock:
    """The lock of one memory directory."""

    def __init__(
        self, directory: Path, *, stale_seconds: float, clock: Callable[[], float] = time.time
    ) -> None:
        self._path = directory / NAME
        self._stale_seconds = stale_seconds
        self._clock = clock

    def look(self) -> LockState:
        """Read the lock; one that was never taken, or cannot be read, is free."""
        try:
            status = self._path.stat()
            words = self._path.read_text(encoding="utf-8").split()
        except FileNotFoundError:
            return LockState(time=0.0)
        except (OSError, UnicodeDecodeError):
            words = []
        try:
            pid, started, before = words
            return LockState(
                time=status.st_mtime, pid=int(pid), started=started, before=float(before)
            )
        except ValueError:
            return LockState(time=status.st_mtime)

    @contextmanager
    def hold(
        self, seen: LockState | None = None, *, is_by_hand: bool = False
    ) -> Iterator[LockState]:
        """Hold the lock while dreaming; the time moves if that succeeds and else goes back.

        A person who dreams by hand need not wait for a process that is known to be dead.
        """
        before = self._take(seen, is_by_hand)
        try:
            yield before
        except BaseException:
            self._write("", before.last)
            raise
        self._write("", self._clock())

    def _take(self, seen: LockState | None, is_by_hand: bool) -> LockState:
        with self._turn():
            found = self.look()
            is_free = found.is_stale(self._clock(), self._stale_seconds)
            if not is_free and not (is_by_hand and found.is_dead):
                raise DreamBusy(self._told_busy(found))
            if seen is not None and found.last > seen.last:
                raise DreamBusy("somebody else has just dreamt; nothing is left to do")
            mine = f"{os.getpid()} {_started(os.getpid())} {found.last!r}"
            self._write(mine, self._clock())
            if self._path.read_text(encoding="utf-8") != mine:
                raise DreamBusy("the lock was taken at the same moment; try again later")
            return found

    def _told_busy(self, held: LockState) -> str:
        if not held.is_gone:
            return f"process {held.pid} is dreaming; try again when it is done"
        minutes = math.ceil((held.time + self._stale_seconds - self._clock()) / 60)
        how = "was killed" if held.is_dead else "is not seen from here, and was perhaps killed"
        return f"process {held.pid} {how} while it dreamt; the lock is free in {minutes} minutes"

    def _write(self, text: str, at: float) -> None:
        write_private(self._path, text.encode(), at=at)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Let one process at a time look and write."""
        private_directory(self._path.parent)
        try:
            turn = FileLock(f"{self._path}.turn", timeout=TURN_SECONDS, mode=0o600)
            with turn:
                yield
        except Timeout:
            raise DreamBusy("the dream lock is being taken all the time; try again") from None


def _started(pid: int) -> str:
    """Say when a process began, where the system tells, and on which machine it is seen."""
    began = "?"
    with contextlib.suppress(OSError, IndexError):
        told = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        began = told.rpartition(")")[2].split()[19]
    return f"{began}@{_here()}"


def _here() -> str:
    """Name the machine, and the part of it, whose processes are seen: a home may be shared."""
    part = "?"
    with contextlib.suppress(OSError):
        part = str(Path("/proc/self/ns/pid").readlink())
    return hashlib.sha256(f"{platform.node()} {part}".encode()).hexdigest()[:HERE_CHARS]
