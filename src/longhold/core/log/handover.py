"""Passing a log from one writer to the next, while both live.

Who wants to write leaves a note beside the log. A writer that looks for notes, as the gateway does,
lets go between two of its calls and reads the log anew when it needs it again.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from longhold.core.log.protocol import OpenLog
from longhold.core.settings.files import PRIVATE_FILE
from longhold.errors import LogLocked

LOOK_SECONDS = 0.02
GATEWAY = "gw-"
"""How the ids of sessions begin whose writer looks for notes."""


def is_wanted(log: Path) -> bool:
    return _note(log).exists()


@contextmanager
def request_handover(log: Path) -> Iterator[None]:
    """Ask for a log for as long as the block runs; one in a database can only be waited for."""
    note = _note(log)
    with suppress(OSError):
        if log.is_absolute():
            note.touch(PRIVATE_FILE)
    try:
        yield
    finally:
        with suppress(OSError):
            note.unlink(missing_ok=True)


def open_when_free(open_log: Callable[[], OpenLog], seconds: float) -> OpenLog:
    """Open a log, or ask its writer for it and wait; raise `LogLocked` if it is not passed on."""
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
