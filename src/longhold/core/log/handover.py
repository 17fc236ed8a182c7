"""Hand a log from one live writer to another.

A process that wants to write creates a `.wanted` file next to the log. A database keeps a row
instead, which a refused `open` leaves. A cooperating writer, such as the gateway, releases the log
between two calls and reloads it when it needs it again.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from longhold.core.settings.private_files import PRIVATE_FILE
from longhold.errors import LogLocked

_Opened = TypeVar("_Opened")

LOOK_SECONDS = 0.02
GATEWAY = "gw-"
"""Prefix of session ids whose writer checks for handover requests."""


def is_wanted(log: Path) -> bool:
    return _note(log).exists()


@contextmanager
def request_handover(log: Path) -> Iterator[None]:
    """Request a log while the block runs. A log in a database was requested by its `open`."""
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
    """Open a log, or request it from its writer. Raise `LogLocked` after `seconds`."""
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
