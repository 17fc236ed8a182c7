"""Reads one instruction file safely, whatever lies at its path.

Only regular files are opened, without blocking and without following a link put there since the
path was resolved. Line ends are normalised and a byte order mark is removed.
"""

import os
import stat
from pathlib import Path

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | os.O_NOFOLLOW


class Unusable(Exception):
    """The file cannot be used; the message tells the user why."""


def read_text(path: Path, limit_bytes: int) -> str:
    """Read a file with a resolved path; raise `Unusable` if it is too large, binary or unreadable."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a device can already do something
            raise Unusable("it is not a regular file")
        content = _content(path, limit_bytes)
    except OSError as error:
        raise Unusable(os.strerror(error.errno).lower() if error.errno else str(error)) from None
    if len(content) > limit_bytes:
        raise Unusable(f"it is larger than {limit_bytes:,} bytes")
    if b"\0" in content:
        raise Unusable("it is not text")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unusable("it is not UTF-8 text") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _content(path: Path, limit_bytes: int) -> bytes:
    """Read at most one byte more than allowed; some files misreport their size."""
    with os.fdopen(os.open(path, _FLAGS), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise Unusable("it is not a regular file")
        return file.read(limit_bytes + 1)
