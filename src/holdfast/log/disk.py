"""The writer's lock on a log."""

import os
import socket
import time
from contextlib import suppress
from pathlib import Path

from holdfast.errors import LogLocked
from holdfast.settings.files import PRIVATE_FILE, explained


def open_for_writing(path: Path, flags: int) -> int:
    """Open the log at `path` as its one writer; `LogLocked` names the process that is.

    The log's own descriptor carries the lock. The file beside it has the writer's name, and is
    locked while a log is opened, so that nobody finds one that is half made.
    """
    with explained(path.with_suffix(".lock")):
        door = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
    try:
        _lock(door, door, path)
        with explained(path):
            descriptor = os.open(path, flags, PRIVATE_FILE)
        try:
            _lock(descriptor, door, path)
        except BaseException:
            os.close(descriptor)
            raise
        since = time.strftime("%Y-%m-%d %H:%M:%S")
        writer = f"process {os.getpid()} on {socket.gethostname()} since {since}"
        with suppress(OSError):  # the lock holds without the name, even on a full disk
            os.ftruncate(door, 0)
            os.pwrite(door, writer.encode(), 0)
        return descriptor
    finally:
        os.close(door)


def _lock(descriptor: int, door: int, path: Path) -> None:
    from filelock import lock_descriptor  # takes long to load, and readers lock nothing

    with explained(path.with_suffix(".lock")):
        if not lock_descriptor(descriptor, blocking=False):
            writer = os.pread(door, 200, 0).decode(errors="replace").strip()
            raise LogLocked(path, writer or "another process")


def release(path: Path, descriptor: int) -> None:
    """Close a log and so release its lock, whatever becomes of the name beside it."""
    try:
        with suppress(OSError):
            os.truncate(path.with_suffix(".lock"), 0)
    finally:
        os.close(descriptor)
