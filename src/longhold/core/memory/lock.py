"""The dream lock. It allows one dream at a time and stores the time of the last dream.

The mtime of `.dream-lock` is the time of the last dream. Its text names the dreaming process and
the previous time, so that a failed or killed dream does not count. The operating system holds the
lock itself (on `.dream-lock.turn`) and releases it when the process dies.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from longhold.core.settings.private_files import private_directory, write_private
from longhold.errors import StoreError

NAME = ".dream-lock"


class DreamBusy(StoreError):
    """Another process is dreaming, or has just done so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockState:
    time: float
    """When the last dream ended, or this one began."""
    pid: int = 0
    """The dreaming process. A killed process stays listed until `release_dead`."""
    before: float = 0.0

    @property
    def last(self) -> float:
        return self.before if self.pid else self.time


class DreamLock:
    def __init__(self, directory: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._path = directory / NAME
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
        """Hold the lock. On failure, or if not `is_counted`, the last dream's time is restored."""
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
        """Restore the time that a killed dream replaced; return its state, or None."""
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
