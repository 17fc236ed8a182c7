"""Read a log tolerantly: damaged lines are reported and never prevent opening.

The reader skips unreadable lines and sorts misplaced entries by number. It rebuilds a damaged
header from the file name.
"""

import gc
import re
import sys
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from io import BufferedReader
from itertools import islice
from operator import lt
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from longhold.core.log.entries import AnyEntry
from longhold.errors import NewerFormat, TranscriptError

VERSION = 1
"""The log format that this version writes. It also reads all older formats."""

_CHUNK_BYTES = 4 << 20
"""The size of the chunks in which a log is read, so that it is never in memory twice."""

LOG_KEYS = (b"longhold", b"holdfast")
"""The first key in a log, in the current version and in version 0.1.0."""
LOG_STARTS = tuple(b'{"' + key + b'":' for key in LOG_KEYS)

_HEADER_LIMIT_BYTES = 64 << 10
"""More than any header needs. The limit prevents reading a file without newlines completely."""


class Header(Struct, frozen=True, kw_only=True):
    longhold: int = VERSION
    session: str
    created: float = 0.0
    directory: str = ""
    parent: str = ""
    """The session from which this session was branched."""
    parent_entry: int = 0


class _Version(Struct):
    longhold: int = 0
    holdfast: int = 0
    """The format number in logs of version 0.1.0, which had another product name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    line: int
    reason: str
    torn: bool
    """The last line is incomplete, because a crash interrupted the write."""


@dataclass(slots=True, kw_only=True)
class Loaded:
    header: Header
    entries: list[AnyEntry] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)
    ends_with_newline: bool = True
    places: list[tuple[int, int]] = field(default_factory=list)
    """Pairs of entry index and line number. Between two pairs, entries are on successive lines."""

    def use_session(self, session: str) -> "Loaded":
        """Use the stored session's id, and report a different id in the header as damage."""
        if not session or session == self.header.session:
            return self
        told = f"the header names session {self.header.session}; the file may have been swapped"
        damage = [Damage(line=1, reason=told, torn=False), *self.damage]
        return replace(self, header=structs.replace(self.header, session=session), damage=damage)

    def line_of(self, index: int) -> int:
        """Return an entry's line number. This works only while entries are in file order."""
        known, line = self.places[bisect_right(self.places, (index, sys.maxsize)) - 1]
        return line + index - known


_decoder = msgspec.json.Decoder(AnyEntry)
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_MOST_ENTRIES = 2**53
"""No log has this many entries. A larger entry number, or one below 1, is damage."""
_LINES_TRIED = 20
"""If the first lines contain no entry, the file is not a log."""
_DIRECTORY = re.compile(rb'"directory":("(?:[^"\\]|\\.)*")')


def load(path: Path) -> Loaded:
    """Read a log. Skip and report damaged lines, and sort misplaced entries."""
    with open_to_read(path) as file:
        loaded = _first_line(path, file)
        was_enabled = gc.isenabled()
        gc.disable()  # the new values form a tree, so there are no cycles to collect
        try:
            for first_line, chunk in _chunks(file, 2 if file.tell() else 1):
                decode_chunk(chunk, first_line, loaded)
        finally:
            if was_enabled:
                gc.enable()
    if not _is_in_order(loaded.entries):
        _put_in_order(loaded)
    return loaded


def load_header(path: Path) -> Header:
    with open_to_read(path) as file:
        return _first_line(path, file).header


def open_to_read(path: Path, what: str = "log") -> BufferedReader:
    """Open a file. Refuse a pipe, because reading it would block."""
    if path.is_fifo():
        raise TranscriptError(path, "is a stream, which cannot be read twice; save it to a file")
    try:
        return path.open("rb")
    except IsADirectoryError:
        raise TranscriptError(path, f"is a directory; name a {what} inside it") from None
    except FileNotFoundError:
        raise TranscriptError(
            path, "does not exist; check the path or try `longhold sessions`"
        ) from None
    except PermissionError:
        raise TranscriptError(path, "cannot be read; check its permissions") from None


def _first_line(path: Path, file: BufferedReader) -> Loaded:
    """Read the header. If it is damaged, derive the session id from the file name."""
    first = file.readline(_HEADER_LIMIT_BYTES)
    try:
        header = _header(path, first)
    except NewerFormat:
        raise
    except TranscriptError as error:
        has_entry = _is_entry(first)
        following = (file.readline(_CHUNK_BYTES) for _ in range(_LINES_TRIED))
        if not first or not (has_entry or any(map(_is_entry, following))):
            raise
        file.seek(0 if has_entry else len(first))
        created, directory = path.stat().st_mtime, _directory_in(first)
        header = Header(session=path.stem, created=created, directory=directory)
        what = "is missing" if has_entry else "cannot be read"
        reason = f"the first line {what} ({error.reason}); the file name gives the session id"
        damage = Damage(line=1, reason=reason, torn=False)
        return Loaded(header=header, damage=[damage], ends_with_newline=first.endswith(b"\n"))
    return Loaded(header=header, ends_with_newline=first.endswith(b"\n"))


def _directory_in(line: bytes) -> str:
    found = _DIRECTORY.search(line)
    try:
        return msgspec.json.decode(found[1], type=str) if found else ""
    except _UNREADABLE:
        return ""


def _is_entry(line: bytes) -> bool:
    try:
        _decoder.decode(line)
    except _UNREADABLE:
        return False
    return True


def _is_in_order(entries: list[AnyEntry]) -> bool:
    numbers = [entry.n for entry in entries]
    if not numbers:
        return True
    rises = all(map(lt, numbers, islice(numbers, 1, None)))
    return rises and numbers[0] >= 1 and numbers[-1] <= _MOST_ENTRIES


def _put_in_order(loaded: Loaded) -> None:
    kept: dict[int, AnyEntry] = {}
    newest = 0
    for index, entry in enumerate(loaded.entries):
        reason = ""
        if not 1 <= entry.n <= _MOST_ENTRIES:
            reason = f"{entry.n} is not a valid entry number; the entry is left out"
        elif entry.n in kept:
            reason = f"entry {entry.n} is repeated here and ignored"
        elif entry.n < newest:
            reason = f"entry {entry.n} comes after entry {newest}; it is moved to its place"
        if reason:
            found = Damage(line=loaded.line_of(index), reason=reason, torn=False)
            loaded.damage.append(found)
        if 1 <= entry.n <= _MOST_ENTRIES:
            kept.setdefault(entry.n, entry)
            newest = max(newest, entry.n)
    loaded.entries = [kept[n] for n in sorted(kept)]


def _header(path: Path, line: bytes) -> Header:
    if not line:
        raise TranscriptError(path, "is empty; a log begins with a header line")
    try:
        found = msgspec.json.decode(line, type=_Version)
        version = found.longhold or found.holdfast
        if not version:
            raise msgspec.ValidationError("no version")
        if version > VERSION:
            raise NewerFormat(
                path,
                f"was written in format {version} by a newer version of Longhold "
                f"(this version reads formats up to {VERSION}); upgrade to open it",
            )
        return msgspec.json.decode(line, type=Header)
    except _UNREADABLE:
        raise TranscriptError(
            path, "is not a Longhold log; use `longhold sessions import` for other formats", line=1
        ) from None


def _chunks(file: BufferedReader, line: int) -> Iterator[tuple[int, bytes]]:
    rest = b""
    while piece := file.read(_CHUNK_BYTES):
        piece = rest + piece
        cut = piece.rfind(b"\n") + 1
        chunk, rest = piece[:cut], piece[cut:]
        if chunk:
            yield line, chunk
            line += chunk.count(b"\n")
    if rest:
        yield line, rest


def decode_chunk(chunk: bytes, first_line: int, loaded: Loaded) -> None:
    loaded.ends_with_newline = chunk.endswith(b"\n")
    loaded.places.append((len(loaded.entries), first_line))
    try:
        decoded = _decoder.decode_lines(chunk)
        if len(decoded) == chunk.count(b"\n") + (not loaded.ends_with_newline):
            loaded.entries += decoded
            return
    except _UNREADABLE:
        pass  # a line in this chunk is damaged, so decode line by line
    lines = chunk.split(b"\n")
    for i, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            entry = _decoder.decode(line)
            loaded.places.append((len(loaded.entries), first_line + i))
            loaded.entries.append(entry)
        except _UNREADABLE as error:
            torn = i == len(lines) - 1
            loaded.damage.append(Damage(line=first_line + i, reason=str(error), torn=torn))
