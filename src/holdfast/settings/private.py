"""Directories for nobody but the user.

A path comes in and is there when it leaves, with everything above it that was missing, each made
private by itself: those that are made on the way to another would be open to all. What is there
already stays as it is.
"""

from pathlib import Path

MODE = 0o700
"""Read, written and entered by the user alone."""


def private_directory(path: Path) -> Path:
    """Make a directory, and those above it that are missing, for nobody but the user."""
    missing = [place for place in (path, *path.parents) if not place.exists()]
    for place in reversed(missing):
        place.mkdir(mode=MODE, exist_ok=True)
    return path
