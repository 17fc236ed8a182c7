"""Find the project of a directory and its slug, and read project files safely."""

import hashlib
import os
import re
import stat
import sys
from pathlib import Path

from longhold.core.settings.private_files import open_flags, open_real

_FLAGS = open_flags("O_RDONLY", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_NOFOLLOW", "O_BINARY")


class UnusableFile(Exception):
    """The file cannot be used. The message explains the reason to the user."""


def read_text(path: Path, limit_bytes: int, *, within: Path | None = None) -> str:
    """Read a text file, normalise line ends and drop a byte order mark.

    Symlinks are followed, but not out of `within`, which must be a resolved path. Only regular
    files are opened, without blocking. A symlink put into the path after the check is an error.
    """
    try:
        real = path.resolve(strict=True)
        if within is not None and not real.is_relative_to(within):
            raise UnusableFile("it leads out of the project")
        if not stat.S_ISREG(real.stat().st_mode):  # opening a device can have side effects
            raise UnusableFile("it is not a regular file")
        content = _content(real, limit_bytes)
    except OSError as error:
        reason = os.strerror(error.errno).lower() if error.errno else str(error)
        raise UnusableFile(reason) from None
    except RuntimeError as error:  # a symlink loop
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
    """Read at most one byte over the limit, because some files misreport their size."""
    with os.fdopen(open_real(path, _FLAGS), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise UnusableFile("it is not a regular file")
        return file.read(limit_bytes + 1)


SLUG_CHARS = 180
"""Longer names are cut, so that a name with its hash fits file system limits."""
MARKER_BYTES = 8_192


def project_root(directory: Path) -> Path:
    top = checkout_top(directory)
    marker = top / ".git"
    return (_main_worktree(marker) or top) if marker.is_file() else top


def checkout_top(directory: Path) -> Path:
    """Return this directory or its nearest parent that has `.git`, or else this directory.

    Another local user could put a `.git` above the user's directory. A `.git` therefore counts only
    if it belongs to the user, root, or the directory's owner.
    """
    directory = directory.resolve()
    for place in (directory, *directory.parents):
        try:
            owners = {(place / ".git").stat().st_uid, place.stat().st_uid}
            if sys.platform == "win32":  # Windows reports no owners
                return place
            if owners <= {0, os.getuid(), directory.stat().st_uid}:
                return place
        except OSError:
            continue
    return directory


def _main_worktree(marker: Path) -> Path | None:
    """Return a worktree's repository if that repository lists this worktree.

    This is checked because a `.git` file can name someone else's repository.
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
    """Return a readable file name for a path. It has a hash to distinguish `a-b` from `a/b`."""
    text = str(path)
    name = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:SLUG_CHARS]
    mark = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return f"{name}-{mark}" if name else mark
