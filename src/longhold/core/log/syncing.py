"""Lock logs, sync them to disk in the background, and hand them from one writer to another.

Syncing protects against power loss. Written data survives a killed process even without it. One
thread syncs all files of a process, at most ten times per second.

A process that wants to write creates a `.wanted` file next to the log. In a database, a refused
`open` inserts a row instead. A cooperating writer, such as the gateway, then releases the log
between two calls and later reloads it.
"""

import atexit
import errno
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeVar

from longhold.core.settings.private_files import PRIVATE_FILE, explain_errors
from longhold.errors import LogLocked

REST_SECONDS = 0.1
_sync_data = getattr(os, "fdatasync", os.fsync)
"""Syncs the content and length, but not the mtime, which saves a write."""


class FileSync:
    def __init__(self, descriptor: int) -> None:
        self.is_due = False
        self._descriptor = descriptor
        self._is_waiting = False
        self._error: OSError | None = None
        self._lock = threading.Lock()

    def mark_written(self) -> None:
        self.is_due = True

    def now(self) -> None:
        os.fsync(self._descriptor)
        self.is_due = False

    def sync_soon(self) -> None:
        """Request a sync without waiting. Raise the error of the last sync, if any."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        if not self._is_waiting:
            self._is_waiting = True
            _thread.serve(self)

    def run(self) -> None:
        self._is_waiting = False
        with self._lock:
            if self._descriptor < 0:
                return
            self.is_due = False
            try:
                _sync_data(self._descriptor)
            except OSError as error:
                self.is_due, self._error = True, error

    def finish(self) -> None:
        """Sync the remaining data, if the file supports it. The caller may then close the file."""
        with self._lock:
            descriptor, self._descriptor = self._descriptor, -1
        if not self.is_due or descriptor < 0:
            return
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise
        self.is_due = False


class _SyncThread:
    """A thread that starts with the first file. A fork starts a new one."""

    def __init__(self) -> None:
        self._waiting = SimpleQueue[FileSync]()
        self._thread: threading.Thread | None = None

    def serve(self, file: FileSync) -> None:
        self._waiting.put(file)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="longhold-sync", daemon=True)
            self._thread.start()

    def serve_waiting(self) -> None:
        while True:
            try:
                self._waiting.get_nowait().run()
            except Empty:
                return

    def _work(self) -> None:
        while True:
            self._waiting.get().run()
            self.serve_waiting()
            time.sleep(REST_SECONDS)


_thread = _SyncThread()
atexit.register(_thread.serve_waiting)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_thread.__init__)  # type: ignore[misc]


def open_for_writing(path: Path, flags: int) -> int:
    """Open the log at `path` as its only writer. `LogLocked` names the current writer.

    The lock is held on the log's descriptor. The `.lock` file names the writer. It is locked while
    a log is being opened, so that no process sees a half-created log.
    """
    with explain_errors(path.with_suffix(".lock")):
        door = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
    try:
        _lock(door, door, path)
        with explain_errors(path):
            descriptor = os.open(path, flags, PRIVATE_FILE)
        try:
            _lock(descriptor, door, path)
        except BaseException:
            os.close(descriptor)
            raise
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        writer = f"process {os.getpid()} on {socket.gethostname()} since {since}"
        with suppress(OSError):  # locking works even if a full disk prevents this write
            os.ftruncate(door, 0)
            os.write(door, writer.encode())
        return descriptor
    finally:
        os.close(door)


def _lock(descriptor: int, door: int, path: Path) -> None:
    from filelock import lock_descriptor  # slow to import, and readers do not lock

    with explain_errors(path.with_suffix(".lock")):
        if not lock_descriptor(descriptor, blocking=False):
            writer = os.read(door, 200).decode(errors="replace").strip()
            raise LogLocked(path, writer or "another process")


def release(path: Path, descriptor: int) -> None:
    """Close a log and thereby release its lock, even if the writer's name cannot be cleared."""
    try:
        with suppress(OSError):
            os.truncate(path.with_suffix(".lock"), 0)
    finally:
        os.close(descriptor)


_Opened = TypeVar("_Opened")

LOOK_SECONDS = 0.02
GATEWAY = "gw-"
"""Prefix of session ids whose writer checks for handover requests."""


def is_wanted(log: Path) -> bool:
    return _note(log).exists()


@contextmanager
def request_handover(log: Path) -> Iterator[None]:
    """Request a log file while the block runs. In a database, `open` has done so already."""
    note = _note(log)
    with suppress(OSError):
        if log.is_absolute():
            note.touch(PRIVATE_FILE)
    try:
        yield
    finally:
        with suppress(OSError):
            note.unlink(missing_ok=True)


def open_when_free(open_log: Callable[[], _Opened], seconds: float) -> _Opened:
    """Open a log, if necessary after its writer releases it. Raise `LogLocked` after `seconds`."""
    try:
        return open_log()
    except LogLocked as locked:
        wanted = locked.path
        if seconds <= 0:
            raise
    deadline = time.monotonic() + seconds
    with request_handover(wanted):
        while True:
            time.sleep(LOOK_SECONDS)
            try:
                return open_log()
            except LogLocked:
                if time.monotonic() >= deadline:
                    raise


def _note(log: Path) -> Path:
    return log.with_suffix(".wanted")
