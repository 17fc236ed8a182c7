"""Which project a directory belongs to, and the name it is filed under."""

import hashlib
import re
from pathlib import Path

from holdfast.settings.project_files import UnusableFile, read_text

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
    """Return the top of the repository or worktree; the directory itself where there is none."""
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
