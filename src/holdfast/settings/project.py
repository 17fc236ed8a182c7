"""Which project a directory belongs to, and the name it is filed under."""

import hashlib
import re
from pathlib import Path

SLUG_CHARS = 180
"""Longer names are cut; with the hash behind them they still fit what file systems allow."""


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


def _main_worktree(marker: Path) -> Path | None:
    try:
        text = marker.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    git = (marker.parent / text.removeprefix("gitdir:").strip()).resolve()
    if git.parent.name == "worktrees" and git.parent.parent.name == ".git":
        return git.parent.parent.parent
    return None


def slug(path: Path) -> str:
    """Make a file name of a path: readable, with a hash because `a-b` and `a/b` read alike."""
    text = str(path)
    name = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:SLUG_CHARS]
    mark = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return f"{name}-{mark}" if name else mark
