"""The files an agent knows: which it read, when, which lines, and what they held then.

Answers whether a file may be written (it was read and has not changed since), whether reading
it again would bring anything new, and which files were changed by someone else. The least
recently used are forgotten first. Links to one file count as one.
"""

import hashlib
import os
from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path

MAX_FILES = 100
"""More than a session works on at a time; an older one has to be read again."""
MAX_BYTES = 25 << 20
"""What the kept texts may take of memory."""
HASHED_BYTES = 32 << 20
"""Larger files are compared by size and time alone: hashing them is not worth its cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """Identifies one state of a file."""

    size: int
    modified_ns: int
    inode: int
    sha256: str = ""
    """Empty for a file too large to hash."""

    def same_content(self, other: "Stamp") -> bool:
        """Return whether both are the same bytes, as far as can be known."""
        if self.sha256 and other.sha256:
            return self.sha256 == other.sha256
        return (self.size, self.modified_ns, self.inode) == (
            other.size,
            other.modified_ns,
            other.inode,
        )


def stamp_of(status: os.stat_result, content: bytes | None) -> Stamp:
    """Stamp a file from its status and, if it was read whole, its content."""
    digest = hashlib.sha256(content).hexdigest() if content is not None else ""
    return Stamp(
        size=status.st_size, modified_ns=status.st_mtime_ns, inode=status.st_ino, sha256=digest
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenFile:
    """A file as the agent last saw it."""

    path: Path
    stamp: Stamp
    text: str = ""
    """What it held, if it is text and was read whole."""
    ranges: tuple[range, ...] = ()
    """The lines, from 1, whose text still stands before the model; none after a write."""
    at: float = 0.0

    def shows(self, lines: range) -> bool:
        """Return whether the model still has all these lines in its view."""
        return any(lines.start >= shown.start and lines.stop <= shown.stop for shown in self.ranges)


class Files:
    """The files an agent knows, most recently used last."""

    def __init__(self, *, max_files: int = MAX_FILES, max_bytes: int = MAX_BYTES) -> None:
        self.max_files = max_files
        self.max_bytes = max_bytes
        self._seen: OrderedDict[Path, SeenFile] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._seen)

    @property
    def kept_bytes(self) -> int:
        return self._bytes

    def record(self, seen: SeenFile) -> None:
        """Remember a file as it is now; lines shown of the same content still count as shown."""
        seen = replace(seen, path=_real(seen.path))
        before = self._seen.get(seen.path)
        if before and before.stamp.same_content(seen.stamp):
            seen = replace(
                seen,
                ranges=tuple(dict.fromkeys((*before.ranges, *seen.ranges))),
                text=seen.text or before.text,
            )
        self._forget(seen.path)
        if _weight(seen) > self.max_bytes:
            seen = replace(seen, text="")
        self._seen[seen.path] = seen
        self._bytes += _weight(seen)
        while len(self._seen) > self.max_files or self._bytes > self.max_bytes:
            self._forget(next(iter(self._seen)))

    def of(self, path: Path) -> SeenFile | None:
        """Return what is known of a file and count it as used."""
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

    def disarm_all(self) -> None:
        for path in self._seen:
            self.disarm(path)

    def newest_first(self) -> tuple[SeenFile, ...]:
        return tuple(reversed(self._seen.values()))

    def changed(self) -> tuple[SeenFile, ...]:
        """Return, as they were seen, the files that are now different or gone."""
        return tuple(seen for seen in self.newest_first() if _is_stale(seen))

    def copy(self) -> "Files":
        twin = Files(max_files=self.max_files, max_bytes=self.max_bytes)
        twin._seen = self._seen.copy()
        twin._bytes = self._bytes
        return twin

    def _forget(self, path: Path) -> None:
        gone = self._seen.pop(path, None)
        self._bytes -= _weight(gone) if gone else 0


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _weight(seen: SeenFile) -> int:
    return len(seen.text.encode("utf-8", "surrogatepass"))


def _is_stale(seen: SeenFile) -> bool:
    """Compare a file with what was seen; an untouched one is not even opened."""
    try:
        status = seen.path.stat()
        now = stamp_of(status, None)
        if seen.stamp.same_content(now):
            return False
        if not seen.stamp.sha256 or status.st_size > HASHED_BYTES:
            return True
        return not seen.stamp.same_content(stamp_of(status, seen.path.read_bytes()))
    except OSError:
        return True
