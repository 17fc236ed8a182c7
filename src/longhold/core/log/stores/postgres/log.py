"""A session's log in PostgreSQL, open for writing under a lease.

`append` numbers an entry and queues it. `wait_for_commit` waits for the commit. Files that a log
has on disk are rows of `bodies` here, under names that are the same on every machine.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from longhold.core.log import Damage, Header, Loaded
from longhold.core.log.entries import AnyEntry
from longhold.core.log.log import as_written
from longhold.core.log.outbox import decode_report, encode_report, record_once
from longhold.core.log.protocol import AgentLog, Closing, StoredMail
from longhold.core.log.queued_job import JobKind, QueuedJobs, SessionJob
from longhold.core.log.results import DIRECTORY, Body, Results, StoredBody
from longhold.core.log.shared import SharedRecords
from longhold.core.log.stores.postgres.group_commit import Lease, Writer
from longhold.core.settings import StoreSettings
from longhold.errors import StoreError

if TYPE_CHECKING:
    from longhold.core.log.stores.postgres.store import PostgresStore


class PostgresLog(Closing):
    has_file = False

    def __init__(
        self,
        lease: Lease,
        loaded: Loaded,
        bodies: Iterable[StoredBody],
        *,
        path: Path,
        writer: Writer,
        beside: "PostgresStore",
        shared: SharedRecords,
        mail: StoredMail,
        queue: QueuedJobs | None,
    ) -> None:
        self.queue = queue
        self.mail: StoredMail | None = mail
        self.shared = shared
        self.header: Header = loaded.header
        self.entries: list[AnyEntry] = loaded.entries
        self.damage: list[Damage] = loaded.damage
        self.path = path
        self.results: Results = PostgresResults(self, bodies)
        self._lease = lease
        self._writer = writer
        self._beside = beside
        self._next = loaded.entries[-1].n + 1 if loaded.entries else 1
        self._texts: dict[str, str] = {}
        self._process = os.getpid()
        self._is_open = True

    @property
    def is_open(self) -> bool:
        return self._is_open

    @property
    def is_wanted(self) -> bool:
        return self._beside.is_wanted(self._lease.key)

    def append(self, entry: AnyEntry) -> AnyEntry:
        numbered, line = as_written(entry, self._next)
        self._check_writable()
        self._writer.put(self._lease, entry=(self._next, line))
        self._next += 1
        return numbered

    async def wait_for_commit(self) -> None:
        done = self._writer.find_pending(self._lease)
        if done is not None:
            await asyncio.shield(asyncio.wrap_future(done))

    def flush(self) -> None:
        done = self._writer.find_pending(self._lease)
        if done is not None:
            done.result()

    def sync(self) -> None:
        self.flush()

    def sync_soon(self) -> None:
        self._writer.find_pending(self._lease)  # raises if the lease is lost

    def leave(self, report: AnyEntry) -> None:
        self._beside.leave(self._lease.key, encode_report(report))

    def take(
        self, history: Sequence[AnyEntry], record: Callable[[AnyEntry], AnyEntry]
    ) -> list[AnyEntry]:
        """Record the waiting reports. The last commit returned whether there are any."""
        if not self._lease.has_reports:
            return []
        self._lease.reports_taken()
        waiting = self._beside.reports(self._lease.key)
        found = [decode_report(data) for _, data in waiting]
        taken = [one for report in found if report for one in record_once(report, history, record)]
        self.flush()
        self._beside.remove_reports([key for key, _ in waiting])
        return taken

    def text(self, name: str) -> str:
        if name not in self._texts:
            data = self._beside.body(self._lease.key, name) or b""
            self._texts[name] = data.decode("utf-8", "replace")
        return self._texts[name]

    def keep_text(self, name: str, text: str) -> str:
        self.keep_body(name, text.encode("utf-8", "replace"))
        self._texts[name] = text
        return name

    def read_body(self, name: str) -> bytes | None:
        self.flush()
        return self._beside.body(self._lease.key, name)

    def keep_body(self, name: str, data: bytes | None) -> None:
        """Store a body, or remove it if `data` is None, before any later entry."""
        self._check_writable()
        self._writer.put(self._lease, body=(name, data))

    def agent(self, id: str) -> AgentLog:
        return self._beside.agent_log(f"{self._lease.session}/{id}")

    def agents(self) -> list[AgentLog]:
        return list(map(self._beside.agent_log, self._beside.agents(self._lease.session)))

    def close(self) -> None:
        """Commit the remaining entries and release the lease, even if committing fails."""
        if not self._is_open:
            return
        self._is_open = False
        if self._process != os.getpid():
            return
        try:
            if self._lease.lost is None:
                self.flush()
        finally:
            self._beside.release(self._lease)

    def _check_writable(self) -> None:
        if not self._is_open:
            raise StoreError(f"session {self.header.session} is closed; resume it to write")
        if self._process != os.getpid():
            raise StoreError(
                f"session {self.header.session}: a fork cannot write to the log of process "
                f"{self._process}; open the session again"
            )


@dataclass(frozen=True, slots=True)
class PostgresJobs:
    """The job queue of one session. No connection stays open, because it is rarely used."""

    url: str
    settings: StoreSettings
    session: str

    async def put(self, kind: JobKind, position: int) -> bool:
        from longhold.core.log.stores.postgres.queue import open_queue  # requires the extra `fleet`

        job = SessionJob(kind=kind, session=self.session, position=position)
        async with open_queue(self.url, self.settings) as queue:
            return await queue.put(job)


class BodiesToRead:
    def __init__(self, beside: "PostgresStore", key: int) -> None:
        self._beside = beside
        self._key = key

    def read_body(self, name: str) -> bytes | None:
        return self._beside.body(self._key, name)

    def keep_body(self, name: str, data: bytes | None) -> None:
        raise StoreError(f"{name}: only a session's writer can store results and notes")


class PostgresResults(Results):
    def __init__(self, log: PostgresLog | BodiesToRead, stored: Iterable[StoredBody]) -> None:
        super().__init__(Path())
        self._log = log
        self._stored = {body.name: body for body in stored}

    def readable(self, history: Iterable[AnyEntry]) -> tuple[Path, ...]:
        return ()

    def keep(self, body: Body, *, is_only_copy: bool) -> None:
        name = body.file.name
        known = self._stored.get(name)
        if known is not None:
            if self._read(name) != body.data:
                raise StoreError(f"{self.place / name} already exists with other content")
            return
        self._log.keep_body(f"{DIRECTORY}/{name}", body.data)
        self._stored[name] = StoredBody(name=name, bytes=len(body.data), modified=time.time())

    def _read(self, name: str) -> bytes:
        data = self._log.read_body(f"{DIRECTORY}/{name}")
        if data is None:
            raise StoreError(f"{self.place / name} no longer exists")
        return data

    def list_stored(self) -> list[StoredBody]:
        return sorted(self._stored.values(), key=lambda body: (body.modified, body.name))

    def remove(self, doomed: Iterable[StoredBody]) -> list[StoredBody]:
        gone = [body for body in doomed if self._stored.pop(body.name, None) is not None]
        for body in gone:
            self._log.keep_body(f"{DIRECTORY}/{body.name}", None)
        return gone
