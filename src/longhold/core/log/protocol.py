"""A log open for writing, wherever it is kept.

`append` numbers an entry and hands it over; `committed` waits until all that was appended is committed.
It is awaited before a request is sent, before a tool runs and after an answer was recorded, so that
nothing happens that a log might not know of. `Log` is the one in a file.
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
    """A session's mailbox in a store, and the way into those of other sessions there."""

    def send(self, session: str, key: str, body: bytes) -> None:
        """Put a mail into a session's box once, whatever the number of tries with this key."""

    def after(self, cursors: Mapping[str, int]) -> list[tuple[str, bytes]]:
        """Return what came behind these cursors, in the order it was sent, each with its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLog:
    """The log of an agent that works for a session, once the agent has begun."""

    id: str
    directory: Path
    """What this machine alone needs beside it."""
    exists: Callable[[], bool]
    load: Callable[[], Loaded]
    begin: Callable[[Header], "OpenLog"]
    go_on: Callable[[], "OpenLog"]

    def open(self, parent: Header, *, directory: str, at: int) -> "OpenLog":
        """Go on with it, or begin it for an agent that was started behind entry `at`."""
        if self.exists():
            return self.go_on()
        header = Header(session=self.id, created=time.time(), directory=directory)
        return self.begin(structs.replace(header, parent=parent.session, parent_entry=at))


class Closing:
    """Is closed at the end of a block, or where what is built on it fails."""

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
        """What it held when it was opened, until a view takes them over."""

    @property
    def damage(self) -> list[Damage]: ...
    @property
    def is_open(self) -> bool: ...
    @property
    def results(self) -> Results:
        """The bodies of tool results that are too large for an entry or for the view."""

    @property
    def path(self) -> Path:
        """Where its file is, or would be; beside it lies what this machine alone needs."""

    @property
    def has_file(self) -> bool:
        """Whether it is a file, so that a model may be shown where things lie."""

    @property
    def mail(self) -> StoredMail | None:
        """The session's mailbox; None where other sessions reach it on this machine only."""

    @property
    def queue(self) -> QueuedJobs | None:
        """Where jobs of the session wait for a worker; None where its own process does them."""

    @property
    def shared(self) -> SharedRecords:
        """What the session has in common with the others of its project and store."""

    def append(self, entry: AnyEntry) -> AnyEntry:
        """Number, date and measure an entry, and return it as it is written.

        Raises `LeaseLost` once another process has become the writer.
        """

    async def committed(self) -> None:
        """Wait until everything appended is committed."""

    def flush(self) -> None:
        """Wait as `committed` does, blocking the thread."""

    def sync(self) -> None:
        """Make what was appended survive a power cut."""

    def sync_soon(self) -> None:
        """Begin to, without waiting for it."""

    def leave(self, report: AnyEntry) -> None:
        """Leave a report for the next process that opens the log; any process may."""

    def take(
        self, history: Sequence[AnyEntry], record: Callable[[AnyEntry], AnyEntry]
    ) -> list[AnyEntry]:
        """Record what was left, oldest first, each once; return what was new."""

    def text(self, name: str) -> str:
        """Return a text that is kept beside the log; '' if there is none."""

    def keep_text(self, name: str, text: str) -> str:
        """Keep a text beside the log, replacing an earlier one; return where it is."""

    def agent(self, id: str) -> AgentLog:
        """Give the log of an agent that works for this session."""

    def agents(self) -> Iterable[AgentLog]:
        """Give those of all agents that have begun, also of agents that work for agents."""

    def close_on_failure(self) -> AbstractContextManager[None]: ...
    def close(self) -> None:
        """Commit what is left and let the next writer in."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
