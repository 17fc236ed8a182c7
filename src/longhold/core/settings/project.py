"""Which project a directory belongs to, and the name it is filed under."""

import hashlib
import os
import re
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


SLUG_CHARS = 180
"""Longer names are cut; with the hash behind them they still fit what file systems allow."""
MARKER_BYTES = 8_192
"""A `.git` file holds one path."""


def project_root(directory: Path) -> Path:
    """Return the git root above a directory; a worktree belongs to its main repository."""
    directory = directory.resolve()
    for place in (directory, *directory.parents):
        marker = place / ".git"
        if marker.is_dir():
            return place
        if marker.is_file():
            return _main_worktree(marker) or place
    return directory


def checkout_top(directory: Path) -> Path:
    directory = directory.resolve()
    places = (directory, *directory.parents)
    return next((place for place in places if (place / ".git").exists()), directory)


def _main_worktree(marker: Path) -> Path | None:
    """Return the repository of a worktree, if that repository names this worktree as its own.

    Anybody can write a file that names somebody else's repository.
    """
    try:
        named = read_text(marker, MARKER_BYTES).strip().removeprefix("gitdir:").strip()
        git = (marker.parent / named).resolve()
        back = git / read_text(git / "gitdir", MARKER_BYTES).strip()
        is_own = back.resolve() == marker.resolve()
    except (UnusableFile, OSError, RuntimeError, ValueError):
        return None
    if is_own and git.parent.name == "worktrees" and git.parent.parent.name == ".git":
        return git.parent.parent.parent
    return None


def slug(path: Path) -> str:
    """Make a file name of a path: readable, with a hash because `a-b` and `a/b` read alike."""
    text = str(path)
    name = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:SLUG_CHARS]
    mark = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return f"{name}-{mark}" if name else mark
