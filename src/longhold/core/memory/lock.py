"""The dream lock: one dream at a time, and the time of the last one.

The file's mtime is the last dream. Its text names the dreaming process and the time before, so that
a failed or killed dream does not count.
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

from longhold.core.settings.private_files import is_running, private_directory, write_private
from longhold.errors import StoreError

NAME = ".dream-lock"
TURN_SECONDS = 10.0
"""Taking the lock is a few file operations. A longer wait means that the disk hangs."""
HERE_CHARS = 12
STALE_SECONDS = 3_600.0
"""After this, the lock of a missing process is free."""


class DreamBusy(StoreError):
    """Another process is dreaming, or has just done so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockState:
    time: float
    """When the last dream ended, or this one began."""
    pid: int = 0
    started: str = ""
    """Start of that process, because process ids are reused."""
    before: float = 0.0

    @property
    def last(self) -> float:
        return self.before if self.pid else self.time

    def is_stale(self, now: float, stale_seconds: float = STALE_SECONDS) -> bool:
        return not self.pid or (self.is_gone and abs(now - self.time) > stale_seconds)

    @property
    def is_gone(self) -> bool:
        """Whether the process is not visible from this machine."""
        return not is_running(self.pid) or _read_start(self.pid) != self.started

    @property
    def is_dead(self) -> bool:
        """Whether the process ran on this machine and is gone."""
        return self.is_gone and self.started.endswith(f"@{_identify_machine()}")


class DreamLock:
    def __init__(
        self,
        directory: Path,
        *,
        stale_seconds: float = STALE_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = directory / NAME
        self._stale_seconds = stale_seconds
        self._clock = clock

    def look(self) -> LockState:
        """Read the lock. A missing or unreadable lock is free."""
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
        self, seen: LockState | None = None, *, is_by_hand: bool = False, is_counted: bool = True
    ) -> Iterator[LockState]:
        """Hold the lock. On failure, or if not `is_counted`, the last dream's time is restored."""
        before = self._take(seen, is_by_hand)
        try:
            yield before
        except BaseException:
            self._write("", before.last)
            raise
        self._write("", self._clock() if is_counted else before.last)

    def release_dead(self) -> LockState | None:
        """Free the lock of a dead process; return its state, or None."""
        if not self.look().is_dead:
            return None
        with self._turn():
            found = self.look()
            if not found.is_dead:
                return None
            self._write("", found.last)
            return found

    def _take(self, seen: LockState | None, is_by_hand: bool) -> LockState:
        private_directory(self._path.parent)
        with self._turn():
            return self._taken(seen, is_by_hand)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        try:
            with FileLock(f"{self._path}.turn", timeout=TURN_SECONDS, mode=0o600):
                yield
        except Timeout:
            raise DreamBusy("the dream lock is busy; try again") from None

    def _taken(self, seen: LockState | None, is_by_hand: bool) -> LockState:
        found = self.look()
        is_free = found.is_stale(self._clock(), self._stale_seconds)
        if not is_free and not (is_by_hand and found.is_dead):
            raise DreamBusy(self._busy_message(found))
        if seen is not None and found.last > seen.last:
            raise DreamBusy("another process has just dreamt; nothing is left to do")
        mine = f"{os.getpid()} {_read_start(os.getpid())} {found.last!r}"
        self._write(mine, self._clock())
        if self._path.read_text(encoding="utf-8") != mine:
            raise DreamBusy("another process took the lock at the same moment; try again later")
        return found

    def _busy_message(self, held: LockState) -> str:
        if not held.is_gone:
            return f"process {held.pid} is dreaming; try again when it is done"
        minutes = math.ceil((held.time + self._stale_seconds - self._clock()) / 60)
        how = "was killed" if held.is_dead else "cannot be seen from here and may have been killed"
        return f"process {held.pid} {how} while dreaming; the lock is free in {minutes} minutes"

    def _write(self, text: str, at: float) -> None:
        write_private(self._path, text.encode(), at=at)


def _read_start(pid: int) -> str:
    """Return a process's start time, if known, and the machine that sees it."""
    began = "?"
    with contextlib.suppress(OSError, IndexError):
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        began = status.rpartition(")")[2].split()[19]
    return f"{began}@{_identify_machine()}"


def _identify_machine() -> str:
    """Identify the machine and pid namespace, because a home directory may be shared."""
    part = "?"
    with contextlib.suppress(OSError):
        part = str(Path("/proc/self/ns/pid").readlink())
    return hashlib.sha256(f"{platform.node()} {part}".encode()).hexdigest()[:HERE_CHARS]
