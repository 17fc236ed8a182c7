"""The log file, append-only JSONL with a versioned header, one writer and many readers.

Each append is a single write, so a killed process leaves at most one incomplete last line. Readers
report and skip it. The next writer ends such a line with a newline. After each turn, `sync_soon`
protects the log against power loss. The writer's lock file is never removed, because that would
allow two writers.
"""

import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Self

import msgspec

from longhold.core.log import outbox
from longhold.core.log.entries import AnyEntry, add_measure
from longhold.core.log.protocol import AgentLog, Closing, StoredMail
from longhold.core.log.queued_job import QueuedJobs
from longhold.core.log.reading import VERSION, Header, Loaded, load, load_header
from longhold.core.log.results import Results
from longhold.core.log.shared import FileRecords, SharedRecords
from longhold.core.log.syncing import FileSync, is_wanted, open_for_writing, release
from longhold.core.messages import Json
from longhold.core.settings.private_files import (
    explain_errors,
    private_directory,
    store_error,
    write_new,
    write_private,
)
from longhold.core.wire.messages import tame
from longhold.errors import StoreError

AGENTS = "agents"
_encoder = msgspec.json.Encoder()
_UNWRITABLE = (ValueError, TypeError, OverflowError, RecursionError)


class Log(Closing):
    """A log file that is open for writing. Use `create` or `open` to get one."""

    has_file = True
    mail: StoredMail | None = None
    queue: QueuedJobs | None = None

    def __init__(
        self, path: Path, loaded: Loaded, descriptor: int, shared: SharedRecords | None = None
    ) -> None:
        self.path = path
        self.header = loaded.header
        self.entries: list[AnyEntry] = loaded.entries
        self.damage = loaded.damage
        self._beside = path.with_suffix("")
        self.results = Results(self._beside)
        self.shared: SharedRecords = shared or FileRecords(path.parent)
        self._descriptor = descriptor
        self._next = loaded.entries[-1].n + 1 if loaded.entries else 1
        self._sync = FileSync(descriptor)
        self._is_torn = False
        """An incomplete line could not be truncated, so the next line starts with a newline."""
        self._process = os.getpid()

    @classmethod
    def create(cls, path: Path, header: Header, *, shared: SharedRecords | None = None) -> Self:
        """Create a log. Raises an error if the file exists."""
        path = path.resolve()
        private_directory(path.parent)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL
        log = cls(path, Loaded(header=header), open_for_writing(path, flags), shared)
        try:
            log._begin(_encoder.encode(header) + b"\n")
        except StoreError:
            path.unlink(missing_ok=True)
            raise
        return log

    @classmethod
    def open(cls, path: Path, session: str = "", *, shared: SharedRecords | None = None) -> Self:
        """Open an existing log for writing. Symlinks to the log share its lock.

        `session` overrides the id in the header. `shared` is given for a copy from another store.
        """
        path = path.resolve()
        load_header(path)  # raises before a lock file is created
        descriptor = open_for_writing(path, os.O_WRONLY | os.O_APPEND)
        try:
            with explain_errors(path):
                loaded = load(path).use_session(session)
        except BaseException:
            release(path, descriptor)
            raise
        log = cls(path, loaded, descriptor, shared)
        if not loaded.ends_with_newline:
            log._begin(b"\n")
        return log

    @property
    def is_open(self) -> bool:
        return self._descriptor >= 0

    @property
    def is_wanted(self) -> bool:
        return is_wanted(self.path)

    def append(self, entry: AnyEntry) -> AnyEntry:
        numbered, line = as_written(entry, self._next)
        self._write(line + b"\n")
        self._next += 1
        return numbered

    async def wait_for_commit(self) -> None:
        """Return immediately, because written lines survive a killed process."""

    def flush(self) -> None:
        """Return immediately, like `wait_for_commit`."""

    def leave(self, report: AnyEntry) -> None:
        outbox.leave(self._beside, report)

    def take(
        self, history: Sequence[AnyEntry], record: Callable[[AnyEntry], AnyEntry]
    ) -> list[AnyEntry]:
        return outbox.take(self._beside, history, record)

    def text(self, name: str) -> str:
        try:
            return (self._beside / name).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""

    def keep_text(self, name: str, text: str) -> str:
        file = self._beside / name
        write_private(file, text, is_synced=False)
        return str(file)

    def sync(self) -> None:
        with explain_errors(self.path):
            self._sync.now()

    def sync_soon(self) -> None:
        """Sync without waiting. The next call raises if the sync failed or the log is gone."""
        if self._is_gone():
            raise _removal_error(self.path)
        with explain_errors(self.path):
            self._sync.sync_soon()

    def agent(self, id: str) -> AgentLog:
        return agent_log(self._beside / AGENTS / f"{id}.jsonl")

    def agents(self) -> list[AgentLog]:
        return list(map(agent_log, agent_logs(self._beside)))

    def close(self) -> None:
        """Sync and release the lock, even if syncing fails."""
        if self._descriptor < 0:
            return
        try:
            if self._process == os.getpid():
                with explain_errors(self.path):
                    self._sync.finish()
        finally:
            descriptor, self._descriptor = self._descriptor, -1
            release(self.path, descriptor)

    def _begin(self, line: bytes) -> None:
        try:
            self._write(line)
        except StoreError:
            self.close()
            raise

    def _write(self, line: bytes) -> None:
        """Write the whole line or nothing. If a full disk cuts a line short, truncate it."""
        if self._process != os.getpid():
            raise StoreError(
                f"{self.path}: a fork cannot write to the log of process {self._process}; "
                "open the session again"
            )
        line = b"\n" + line if self._is_torn else line
        try:
            is_gone = self._is_gone()
            written = 0 if is_gone else os.write(self._descriptor, line)
            if written != len(line) and not is_gone:
                self._is_torn = True
                os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size - written)
                self._is_torn = False
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            raise store_error(self.path, error) from error
        if is_gone:
            raise _removal_error(self.path)
        self._is_torn = False
        self._sync.mark_written()

    def _is_gone(self) -> bool:
        """Return whether the file was unlinked, in which case further writes would be lost."""
        return not os.fstat(self._descriptor).st_nlink


def agent_log(path: Path) -> AgentLog:
    return AgentLog(
        id=path.stem,
        directory=path.with_suffix(""),
        exists=path.exists,
        load=partial(load, path),
        begin=partial(Log.create, path),
        go_on=partial(Log.open, path),
    )


def agent_logs(directory: Path) -> list[Path]:
    return sorted(directory.glob(f"**/{AGENTS}/*.jsonl"), key=lambda path: path.with_suffix(""))


def as_written(entry: AnyEntry, n: int) -> tuple[AnyEntry, bytes]:
    numbered = msgspec.structs.replace(add_measure(entry), n=n, at=entry.at or time.time())
    try:
        return numbered, _encoder.encode(numbered)
    except _UNWRITABLE:
        mended = _mend_entry(numbered)
        return mended, _encoder.encode(mended)


def _removal_error(path: Path) -> StoreError:
    return StoreError(
        f"{path}: the log was removed or replaced while the session was writing it. New messages "
        "would be lost; restore the file, or begin a new session"
    )


def _mend_entry(entry: AnyEntry) -> AnyEntry:
    """Replace values that JSON cannot hold, such as lone surrogates, NaN and deep nesting."""

    def mend(value: Json) -> Json:
        if isinstance(value, str):
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if isinstance(value, list | tuple):
            return [mend(item) for item in value]
        if isinstance(value, dict):
            return {mend(key): mend(item) for key, item in value.items()}
        return value

    try:
        plain = tame(msgspec.to_builtins(entry))
        mended: AnyEntry = msgspec.convert(mend(plain), AnyEntry)
    except _UNWRITABLE as error:
        raise StoreError(f"this {type(entry).__name__} cannot be written: {error!r}") from error
    return mended


def write_log(path: Path, header: Header, entries: Iterable[AnyEntry]) -> int:
    """Stream entries to a new log and return their count. The file appears only when complete."""
    count = 0

    def lines() -> Iterator[bytes]:
        nonlocal count
        yield _encoder.encode(header) + b"\n"
        for entry in entries:
            count += 1
            yield _encoder.encode(entry) + b"\n"

    private_directory(path.parent)
    with explain_errors(path):
        write_new(path, lines())
    return count


def branch_log(source: Path, path: Path, session: str, *, upto: int | None = None) -> int:
    """Copy a log up to and including entry `upto` under a new id. Return the number of entries."""
    loaded = load(source)
    shared = [entry for entry in loaded.entries if upto is None or entry.n <= upto]
    last = shared[-1].n if shared else 0
    return write_log(path, branch_header(loaded.header, session, last), shared)


def branch_header(parent: Header, session: str, last: int) -> Header:
    return msgspec.structs.replace(
        parent,
        longhold=VERSION,
        session=session,
        created=time.time(),
        parent=parent.session,
        parent_entry=last,
    )
