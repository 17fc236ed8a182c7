"""Reads a file that came with a project, or that the user wrote for us.

Skills, agents, instructions, settings, hooks and servers are all read here: a regular file, of
limited size, that is text, and of a project's only what lies in it.
"""

import os
import stat
from pathlib import Path

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | os.O_NOFOLLOW


class UnusableFile(Exception):
    """The file cannot be used; the message tells the user why."""


def read_text(path: Path, limit_bytes: int, *, within: Path | None = None) -> str:
    """Read a text file, with line ends normalised and without a byte order mark.

    Links are followed, but not out of `within`, which has none itself. Only regular files are
    opened, without blocking and without following a link put there in the meantime.
    """
    try:
        real = path.resolve(strict=True)
        if within is not None and not real.is_relative_to(within):
            raise UnusableFile("it leads out of the project")
        if not stat.S_ISREG(real.stat().st_mode):  # opening a device can already do something
            raise UnusableFile("it is not a regular file")
        content = _content(real, limit_bytes)
    except OSError as error:
        reason = os.strerror(error.errno).lower() if error.errno else str(error)
        raise UnusableFile(reason) from None
    except RuntimeError as error:  # a loop of links
        raise UnusableFile(str(error)) from None
    if len(content) > limit_bytes:
        raise UnusableFile(f"it is larger than {limit_bytes:,} bytes")
    if b"\0" in content:
        raise UnusableFile("it is not text")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnusableFile("it is not UTF-8 text") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _content(path: Path, limit_bytes: int) -> bytes:
    """Read at most one byte more than allowed; some files misreport their size."""
    with os.fdopen(os.open(path, _FLAGS), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise UnusableFile("it is not a regular file")
        return file.read(limit_bytes + 1)
