"""Reads one instruction file, whatever lies at its path.

A path and a limit come in, text goes out, with plain line ends and without a byte order mark.
Only regular files are opened, without waiting and without following a link put there since
the look; what is too large, binary or unreadable raises `Unusable` with the reason.
"""

import os
import stat
from pathlib import Path

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | os.O_NOFOLLOW


class Unusable(Exception):
    """The file cannot be taken; the message says why, for a person."""


def read_text(path: Path, limit_bytes: int) -> str:
    """Read a file whose links were followed before."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a device can already do something
            raise Unusable("it is no regular file")
        content = _content(path, limit_bytes)
    except OSError as error:
        raise Unusable(os.strerror(error.errno).lower() if error.errno else str(error)) from None
    if len(content) > limit_bytes:
        raise Unusable(f"it is larger than {limit_bytes:,} bytes")
    if b"\0" in content:
        raise Unusable("it is no text")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unusable("it is no UTF-8 text") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _content(path: Path, limit_bytes: int) -> bytes:
    """Read at most one byte more than allowed; sizes of some files are not what they say."""
    with os.fdopen(os.open(path, _FLAGS), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise Unusable("it is no regular file")
        return file.read(limit_bytes + 1)
