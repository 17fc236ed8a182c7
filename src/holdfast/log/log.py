"""The log: append-only JSONL with a versioned first line, one writer, any number of readers.

An append is one write of one line, so a killed process leaves at most a torn last line;
it loads as if it had not been written and is reported. Nothing is ever rewritten: a writer
that finds a torn end closes it with a newline and goes on behind it. `sync` makes what was
appended survive a power cut, once per turn; a killed process loses nothing without it.

The writer holds a lock on a file beside the log, which names its process. The system releases it
when the process dies. The file stays: removing it would let two writers in.
"""

import errno
import gc
import os
import socket
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import Self

import msgspec
from filelock import lock_descriptor
from msgspec import Struct

from holdfast.errors import LogLocked, NewerFormat, StoreError, TranscriptError
from holdfast.log.entries import AnyEntry, measured
from holdfast.messages import Json
from holdfast.settings.files import PRIVATE_FILE, private_directory, write_new

VERSION = 1
"""The format this version writes. It reads this one and every older one."""

_CHUNK_BYTES = 4 << 20
"""Read in pieces, so that a large log is never in memory twice."""

_HEADER_LIMIT_BYTES = 64 << 10
"""No header is longer; a file without a line end is not read whole to find that out."""


class Header(Struct, frozen=True, kw_only=True):
    """The first line of a log."""

    holdfast: int = VERSION
    session: str
    created: float = 0.0
    directory: str = ""
    """The working directory the session belongs to."""
    parent: str = ""
    """The session this one was branched from,"""
    parent_entry: int = 0
    """and the last entry they share."""


class _Version(Struct):
    holdfast: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    line: int
    reason: str
    torn: bool
    """It is the last line and incomplete: a write that a crash cut short."""


@dataclass(slots=True, kw_only=True)
class Loaded:
    header: Header
    entries: list[AnyEntry] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)
    ends_with_newline: bool = True


_decoder = msgspec.json.Decoder(AnyEntry)
_encoder = msgspec.json.Encoder()
_syncer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="holdfast-sync")
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a damaged line may raise; one nested too deeply is as good as damaged."""


def load(path: Path) -> Loaded:
    """Read a whole log; damaged lines are left out and reported."""
    with open_to_read(path) as file:
        first = file.readline(_HEADER_LIMIT_BYTES)
        loaded = Loaded(header=_header(path, first), ends_with_newline=first.endswith(b"\n"))
        was_enabled = gc.isenabled()
        gc.disable()  # a log is a tree of fresh values: there is no cycle to look for
        try:
            for first_line, chunk in _chunks(file):
                _decode_chunk(chunk, first_line, loaded)
        finally:
            if was_enabled:
                gc.enable()
    return loaded


def load_header(path: Path) -> Header:
    with open_to_read(path) as file:
        return _header(path, file.readline(_HEADER_LIMIT_BYTES))


def open_to_read(path: Path, what: str = "log") -> BufferedReader:
    """Open a file, or raise a `TranscriptError` that says what to do."""
    try:
        return path.open("rb")
    except IsADirectoryError:
        raise TranscriptError(path, f"is a directory; name a {what} inside it") from None
    except FileNotFoundError:
        raise TranscriptError(
            path, "does not exist; check the path or try `holdfast sessions`"
        ) from None
    except PermissionError:
        raise TranscriptError(path, "may not be read by you; check its permissions") from None


def _header(path: Path, line: bytes) -> Header:
    if not line:
        raise TranscriptError(path, "is empty; a log begins with a header line")
    try:
        version = msgspec.json.decode(line, type=_Version).holdfast
        if version > VERSION:
            raise NewerFormat(
                path,
                f"was written in format {version} by a newer version of Holdfast; "
                f"this one reads up to format {VERSION}: upgrade to open it",
            )
        return msgspec.json.decode(line, type=Header)
    except _UNREADABLE:
        raise TranscriptError(
            path, "is not a Holdfast log; use `holdfast import` for other formats", line=1
        ) from None


def _chunks(file: BufferedReader) -> Iterator[tuple[int, bytes]]:
    """Yield runs of whole lines with the number of their first line."""
    rest, line = b"", 2
    while piece := file.read(_CHUNK_BYTES):
        piece = rest + piece
        cut = piece.rfind(b"\n") + 1
        chunk, rest = piece[:cut], piece[cut:]
        if chunk:
            yield line, chunk
            line += chunk.count(b"\n")
    if rest:
        yield line, rest


def _decode_chunk(chunk: bytes, first_line: int, loaded: Loaded) -> None:
    loaded.ends_with_newline = chunk.endswith(b"\n")
    try:
        loaded.entries += _decoder.decode_lines(chunk)
        return
    except _UNREADABLE:
        pass  # some line in here is damaged: go through them one by one
    lines = chunk.split(b"\n")
    for i, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            loaded.entries.append(_decoder.decode(line))
        except _UNREADABLE as error:
            torn = i == len(lines) - 1
            loaded.damage.append(Damage(line=first_line + i, reason=str(error), torn=torn))


class Log:
    """A log open for writing. Make one with `create` or `open`."""

    def __init__(self, path: Path, loaded: Loaded, descriptor: int, lock: int) -> None:
        self.path = path
        self.header = loaded.header
        self.entries: list[AnyEntry] = loaded.entries
        self.damage = loaded.damage
        self._descriptor = descriptor
        self._lock = lock
        self._next = loaded.entries[-1].n + 1 if loaded.entries else 1
        self._syncing: Future[None] | None = None

    @classmethod
    def create(cls, path: Path, header: Header) -> Self:
        """Create a log; an existing one is never overwritten."""
        path = path.resolve()
        with _explained(path.parent):
            private_directory(path.parent)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL
        lock = _locked(path)
        try:
            with _explained(path):
                descriptor = os.open(path, flags, PRIVATE_FILE)
        except StoreError:
            _unlock(lock)
            raise
        log = cls(path, Loaded(header=header), descriptor, lock)
        try:
            log._begin(_encoder.encode(header) + b"\n")
        except StoreError:
            path.unlink(missing_ok=True)
            raise
        return log

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open an existing log for writing; links to it share its lock."""
        path = path.resolve()
        load_header(path)  # says what is wrong before anything is put beside it
        lock = _locked(path)
        try:
            with _explained(path):
                loaded = load(path)
                descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
        except BaseException:
            _unlock(lock)
            raise
        log = cls(path, loaded, descriptor, lock)
        if not loaded.ends_with_newline:
            log._begin(b"\n")
        return log

    @property
    def is_open(self) -> bool:
        return self._descriptor >= 0

    def append(self, entry: AnyEntry) -> AnyEntry:
        """Number, date and measure an entry, write it, and return it as written."""
        numbered = msgspec.structs.replace(
            measured(entry), n=self._next, at=entry.at or time.time()
        )
        try:
            line = _encoder.encode(numbered)
        except UnicodeEncodeError:
            numbered = _mended(numbered)
            line = _encoder.encode(numbered)
        self._write(line + b"\n")
        self._next += 1
        self.entries.append(numbered)
        return numbered

    def sync(self) -> None:
        with _explained(self.path):
            os.fsync(self._descriptor)

    def sync_soon(self) -> None:
        """Start forcing what was appended onto the disk, without waiting for it.

        Only a power cut could lose what is under way. A failure is raised by the next call.
        """
        if self._syncing is not None:
            if not self._syncing.done():
                return  # the next one covers this
            error = self._syncing.exception()
            if isinstance(error, OSError):
                raise _store_error(self.path, error) from error
        self._syncing = _syncer.submit(os.fsync, self._descriptor)

    @contextmanager
    def closed_on_failure(self) -> Iterator[None]:
        """Close the log, and so release its lock, if what is built on it fails."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._syncing is not None:
            wait([self._syncing])
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            _unlock(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, line: bytes) -> None:
        """Write a line, or close the log."""
        try:
            self._write(line)
        except StoreError:
            self.close()
            raise

    def _write(self, line: bytes) -> None:
        """Write a whole line or nothing: a line cut short by a full disk is truncated away."""
        try:
            written = os.write(self._descriptor, line)
            if written != len(line):
                size = os.fstat(self._descriptor).st_size
                os.ftruncate(self._descriptor, size - written)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise _store_error(self.path, error) from error


def _mended(entry: AnyEntry) -> AnyEntry:
    """Replace what no file can hold: half characters, as a cut or an odd file name leaves them."""

    def mend(value: Json) -> Json:
        if isinstance(value, str):
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if isinstance(value, list | tuple):
            return [mend(item) for item in value]
        if isinstance(value, dict):
            return {mend(key): mend(item) for key, item in value.items()}
        return value

    mended: AnyEntry = msgspec.convert(mend(msgspec.to_builtins(entry)), AnyEntry)
    return mended


def write_log(path: Path, header: Header, entries: Iterable[AnyEntry]) -> int:
    """Write a whole new log of entries that have their numbers, holding none of them; count them.

    It appears under its name only when it is complete: an import that is cut short leaves nothing.
    """
    count = 0

    def lines() -> Iterator[bytes]:
        nonlocal count
        yield _encoder.encode(header) + b"\n"
        for entry in entries:
            count += 1
            yield _encoder.encode(entry) + b"\n"

    with _explained(path.parent):
        private_directory(path.parent)
    with _explained(path):
        write_new(path, lines(), mode=PRIVATE_FILE)
    return count


def branch_log(source: Path, path: Path, session: str, *, upto: int | None = None) -> int:
    """Copy a log under a new id, up to and including entry `upto`; return the number of entries."""
    loaded = load(source)
    shared = [entry for entry in loaded.entries if upto is None or entry.n <= upto]
    header = msgspec.structs.replace(
        loaded.header,
        holdfast=VERSION,
        session=session,
        created=time.time(),
        parent=loaded.header.session,
        parent_entry=shared[-1].n if shared else 0,
    )
    return write_log(path, header, shared)


def _locked(path: Path) -> int:
    """Lock the log at `path` without waiting; `LogLocked` names the process that has it."""
    with _explained(path.with_suffix(".lock")):
        descriptor = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
        if not lock_descriptor(descriptor, blocking=False):
            holder = os.pread(descriptor, 200, 0).decode(errors="replace").strip()
            os.close(descriptor)
            raise LogLocked(path, holder or "another process")
        os.ftruncate(descriptor, 0)
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    holder = f"process {os.getpid()} on {socket.gethostname()} since {since}"
    with suppress(OSError):  # the lock holds without the name, even on a full disk
        os.pwrite(descriptor, holder.encode(), 0)
    return descriptor


def _unlock(descriptor: int) -> None:
    os.ftruncate(descriptor, 0)
    os.close(descriptor)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        raise _store_error(path, error) from error


def _store_error(path: Path, error: OSError) -> StoreError:
    advice = {
        errno.ENOSPC: "free some space and try again; nothing written before is lost",
        errno.EDQUOT: "free some space and try again; nothing written before is lost",
        errno.EFBIG: "the file may not grow further; nothing written before is lost",
        errno.EACCES: "check the permissions of the file and its directory",
        errno.EROFS: "the disk is read-only; set HOLDFAST_HOME to a place that is not",
        errno.EMFILE: "too many files are open; close sessions, or raise the limit (ulimit -n)",
        errno.ENFILE: "the system has too many files open; close some and try again",
        errno.EEXIST: "it exists already and is never overwritten; choose another id",
    }.get(error.errno or 0, "see the system's message")
    return StoreError(f"{path}: {error.strerror or error}; {advice}")
