"""The interface of a log open for writing, in any store. `Log` implements it for files.

`append` numbers an entry and queues it. `wait_for_commit` waits until all appended entries are
committed. Sessions await it before each request, before each tool run and after recording an
answer, so that every side effect is in the log.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from msgspec import structs

from longhold.core.log.entries import AnyEntry
from longhold.core.log.queued_job import QueuedJobs
from longhold.core.log.reading import Damage, Header, Loaded
from longhold.core.log.results import Results
from longhold.core.log.shared import SharedRecords


class StoredMail(Protocol):
    """A session's mailbox in a store, with access to other sessions' mailboxes."""

    def send(self, session: str, key: str, body: bytes) -> None:
        """Deliver a mail to a session. A key is delivered only once."""

    def after(self, cursors: Mapping[str, int]) -> list[tuple[str, bytes]]:
        """Return the mail after these cursors in the order sent, each with its new cursor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLog:
    """The log of an agent of a session. It exists once the agent has started."""

    id: str
    directory: Path
    """The directory for files that only this machine needs."""
    exists: Callable[[], bool]
    load: Callable[[], Loaded]
    begin: Callable[[Header], "OpenLog"]
    go_on: Callable[[], "OpenLog"]

    def open(self, parent: Header, *, directory: str, at: int) -> "OpenLog":
        """Open the log, or create it for an agent started after entry `at`."""
        if self.exists():
            return self.go_on()
        header = Header(session=self.id, created=time.time(), directory=directory)
        return self.begin(structs.replace(header, parent=parent.session, parent_entry=at))


class Closing:
    """Base class for context managers that close on exit or on failure."""

    def close(self) -> None:
        raise NotImplementedError

    @contextmanager
    def close_on_failure(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class OpenLog(Protocol):
    @property
    def header(self) -> Header: ...
    @property
    def entries(self) -> list[AnyEntry]:
        """The entries that the log had when it was opened, until a view takes them over."""

    @property
    def damage(self) -> list[Damage]: ...
    @property
    def is_open(self) -> bool: ...
    @property
    def is_wanted(self) -> bool:
        """Whether another process waits for this log. This may read a file or a database."""

    @property
    def results(self) -> Results:
        """Bodies of tool results too large for an entry or for the view."""

    @property
    def path(self) -> Path:
        """Path of the log file, which may not exist. Machine-local files are next to it."""

    @property
    def has_file(self) -> bool:
        """Whether the log is a file, so that the model may be shown paths."""

    @property
    def mail(self) -> StoredMail | None:
        """The session's mailbox, or None if only this machine can reach it."""

    @property
    def queue(self) -> QueuedJobs | None:
        """The queue of jobs for workers, or None if the session's own process runs them."""

    @property
    def shared(self) -> SharedRecords:
        """Records shared with other sessions of the project and store."""

    def append(self, entry: AnyEntry) -> AnyEntry:
        """Number, timestamp and measure an entry, and return it as written.

        Raises `LeaseLost` if another process has become the writer.
        """

    async def wait_for_commit(self) -> None:
        """Wait until all appended entries are committed."""

    def flush(self) -> None:
        """Do the same as `wait_for_commit`, but block the thread."""

    def sync(self) -> None:
        """Make appended entries survive power loss."""

    def sync_soon(self) -> None:
        """Start `sync` without waiting."""

    def leave(self, report: AnyEntry) -> None:
        """Store a report for the log's next writer. Any process may call this."""

    def take(
        self, history: Sequence[AnyEntry], record: Callable[[AnyEntry], AnyEntry]
    ) -> list[AnyEntry]:
        """Record each waiting report once, oldest first, and return the new entries."""

    def text(self, name: str) -> str:
        """Return a text stored with the log, or ""."""

    def keep_text(self, name: str, text: str) -> str:
        """Store a text with the log, replacing an earlier one, and return its location."""

    def agent(self, id: str) -> AgentLog:
        """Return the log of an agent of this session."""

    def agents(self) -> Iterable[AgentLog]:
        """Return the logs of all started agents, including agents of agents."""

    def close_on_failure(self) -> AbstractContextManager[None]: ...
    def close(self) -> None:
        """Commit the remaining entries and release the log."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
