"""The files an agent has read: which lines, and in which state.

Decides whether a file may be written (it was read and has not changed since) and whether another
read would return anything new. Symlinks to one file count as one file.
"""

import hashlib
import os
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

MAX_FILES = 100
"""More files than a session works on at a time. A dropped file must be read again."""
HASHED_BYTES = 32 << 20
"""Larger files are compared by size and time only, because hashing them costs too much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    size: int
    modified_ns: int
    inode: int
    sha256: str = ""

    def same_content(self, other: "Stamp") -> bool:
        if self.sha256 and other.sha256:
            return self.sha256 == other.sha256
        return replace(self, sha256="") == replace(other, sha256="")


def stamp_of(status: os.stat_result, content: bytes | None) -> Stamp:
    digest = hashlib.sha256(content).hexdigest() if content is not None else ""
    return Stamp(
        size=status.st_size, modified_ns=status.st_mtime_ns, inode=status.st_ino, sha256=digest
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenFile:
    path: Path
    stamp: Stamp
    ranges: tuple[range, ...] = ()
    """Line ranges, counted from 1, that are still in the model's view; empty after a write."""

    def shows(self, lines: range) -> bool:
        return any(lines.start >= shown.start and lines.stop <= shown.stop for shown in self.ranges)


class Files:
    def __init__(self, seen: Iterable[SeenFile] = (), *, max_files: int = MAX_FILES) -> None:
        self.max_files = max_files
        self._seen = OrderedDict((each.path, each) for each in seen)

    def __len__(self) -> int:
        return len(self._seen)

    def record(self, seen: SeenFile) -> None:
        """Record a file's current state. Line ranges are kept if its content is the same."""
        seen = replace(seen, path=_real(seen.path))
        before = self._seen.pop(seen.path, None)
        if before and before.stamp.same_content(seen.stamp):
            seen = replace(seen, ranges=tuple(dict.fromkeys((*before.ranges, *seen.ranges))))
        self._seen[seen.path] = seen
        if len(self._seen) > self.max_files:
            self._seen.popitem(last=False)

    def of(self, path: Path) -> SeenFile | None:
        path = _real(path)
        if path not in self._seen:
            return None
        self._seen.move_to_end(path)
        return self._seen[path]

    def disarm(self, path: Path) -> None:
        """Record that a file's text is no longer in the model's view."""
        path = _real(path)
        if path in self._seen:
            self._seen[path] = replace(self._seen[path], ranges=())

    def list_newest(self) -> tuple[SeenFile, ...]:
        return tuple(reversed(self._seen.values()))

    def copy(self) -> "Files":
        return Files(self._seen.values(), max_files=self.max_files)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
