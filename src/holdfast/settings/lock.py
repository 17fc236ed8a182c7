"""The writer's lock: a file beside a log that one process holds, and that names the process.

It is taken without waiting, and the system releases it when the process dies. The file stays
when the lock is released, since removing it would let two writers in.
"""

import os
import socket
import time
from contextlib import suppress
from pathlib import Path

from filelock import lock_descriptor

from holdfast.errors import LogLocked


def take_lock(path: Path) -> int:
    """Lock the log at `path` and return a descriptor; `LogLocked` names the process that has it."""
    descriptor = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
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


def release_lock(descriptor: int) -> None:
    os.ftruncate(descriptor, 0)
    os.close(descriptor)
