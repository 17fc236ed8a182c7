"""The log's dealings with the disk: the writer's lock, and what a failure of the system means."""

import errno
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import lock_descriptor

from holdfast.errors import LogLocked, SessionExists, StoreError
from holdfast.settings.files import PRIVATE_FILE


def locked(path: Path) -> int:
    """Lock the log at `path` without waiting; `LogLocked` names the process that has it."""
    with explained(path.with_suffix(".lock")):
        descriptor = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
        if not lock_descriptor(descriptor, blocking=False):
            holder = os.pread(descriptor, 200, 0).decode(errors="replace").strip()
            os.close(descriptor)
            raise LogLocked(path, holder or "another process")
        os.ftruncate(descriptor, 0)
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    holder = f"process {os.getpid()} on {socket.gethostname()} since {since}"
    with suppress(OSError):  # the lock holds without the name, even on a full disk
        os.pwrite(descriptor, holder.encode(), 0)
    return descriptor


def unlock(descriptor: int) -> None:
    """Release the lock, whatever becomes of the name in its file."""
    try:
        with suppress(OSError):
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        raise store_error(path, error) from error


def store_error(path: Path, error: OSError) -> StoreError:
    advice = {
        errno.ENOSPC: "free some space and try again; nothing written before is lost",
        errno.EDQUOT: "free some space and try again; nothing written before is lost",
        errno.EFBIG: "the file may not grow further; nothing written before is lost",
        errno.EACCES: "check the permissions of the file and its directory",
        errno.EROFS: "the disk is read-only; set HOLDFAST_HOME to a place that is not",
        errno.EMFILE: "too many files are open; close sessions, or raise the limit (ulimit -n)",
        errno.ENFILE: "the system has too many files open; close some and try again",
        errno.EEXIST: "it exists already and is never overwritten; choose another id",
    }.get(error.errno or 0, "see the system's message")
    kind = SessionExists if error.errno == errno.EEXIST else StoreError
    return kind(f"{path}: {error.strerror or error}; {advice}")
