"""Group commit: one thread per process commits the changes of all its logs in batches.

Each batch is one transaction. A batch with only entries is a single statement. A fence is a number
that increases with each new writer of a session. Entries are appended only if the fence and the
last entry number are as expected, so a replaced writer cannot append. If the connection breaks, the
batch is retried. Entries that were already committed are recognised by their bytes.
"""

import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import psycopg
from psycopg import Connection

from longhold.core.log.results import sha256_of
from longhold.core.log.stores.postgres.database import LOST, PostgresDatabase
from longhold.errors import LeaseLost, StoreError

FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.02, 1.0
"""Backoff between attempts in seconds. Most server restarts take a few seconds."""

Connect: TypeAlias = Callable[[], Connection[Any]]

_APPEND = """
WITH given AS (
    SELECT * FROM unnest(%b::bigint[], %b::bigint[], %b::bigint[], %b::bigint[], %b::bigint[])
        AS g (key, fence, before, last, bytes)
), moved AS (
    UPDATE longhold.sessions s
    SET last_n = g.last, bytes = s.bytes + g.bytes, modified = clock_timestamp()
    FROM given g WHERE s.key = g.key AND s.fence = g.fence AND s.last_n = g.before
    RETURNING s.key
), put AS (
    INSERT INTO longhold.entries (session, n, body)
    SELECT e.session, e.n, e.body FROM unnest(%b::bigint[], %b::bigint[], %b::bytea[])
        AS e (session, n, body) JOIN moved ON moved.key = e.session
)
SELECT key, EXISTS (SELECT 1 FROM longhold.reports r WHERE r.session = moved.key) FROM moved
"""
_OURS = """
SELECT s.key FROM longhold.sessions s
JOIN unnest(%b::bigint[], %b::bigint[]) AS g (key, fence) ON s.key = g.key AND s.fence = g.fence
ORDER BY s.key FOR UPDATE OF s
"""
_KEEP = """
INSERT INTO longhold.bodies (session, name, sha256, bytes, body)
SELECT * FROM unnest(%b::bigint[], %b::text[], %b::text[], %b::bigint[], %b::bytea[])
ON CONFLICT (session, name) DO UPDATE
SET sha256 = excluded.sha256, bytes = excluded.bytes, body = excluded.body, modified = now()
"""
_DROP = """
DELETE FROM longhold.bodies b USING unnest(%b::bigint[], %b::text[]) AS g (session, name)
WHERE b.session = g.session AND b.name = g.name
"""


@dataclass(slots=True)
class QueuedChanges:
    entries: list[tuple[int, bytes]] = field(default_factory=list)
    bodies: dict[str, bytes | None] = field(default_factory=dict)
    done: "Future[None]" = field(default_factory=Future)


@dataclass(slots=True, eq=False)
class Lease:
    """The right to write one session. It is valid while its fence is the newest."""

    key: int
    fence: int
    session: str
    has_reports: bool = False
    lost: StoreError | None = None
    waiting: QueuedChanges | None = None
    newest: "Future[None] | None" = None
    """The future of the last queued changes, or None once they are committed."""

    def add(self, entry: tuple[int, bytes] | None, body: tuple[str, bytes | None] | None) -> None:
        if self.waiting is None:
            self.waiting = QueuedChanges()
            self.newest = self.waiting.done
        if entry is not None:
            self.waiting.entries.append(entry)
        if body is not None:
            self.waiting.bodies[body[0]] = body[1]

    def hand_over(self) -> QueuedChanges:
        changes, self.waiting = self.waiting or QueuedChanges(), None
        return changes

    def confirm(self, changes: QueuedChanges, *, has_reports: bool) -> None:
        self.has_reports = self.has_reports or has_reports
        if self.newest is changes.done:
            self.newest = None

    def reports_taken(self) -> None:
        self.has_reports = False

    def fail(self, error: StoreError) -> None:
        """Refuse further writes, because they would leave a gap in the log."""
        self.lost = error
        self.hand_over().done.set_exception(error)


Batch: TypeAlias = list[tuple[Lease, QueuedChanges]]


class Writer:
    def __init__(self, connect: Connect, patience_seconds: float) -> None:
        self._connect = connect
        self._patience_seconds = patience_seconds
        self._wake = threading.Condition()
        self._dirty: dict[int, Lease] = {}
        self._is_closed = False
        self._thread: threading.Thread | None = None
        self._connection: Connection[Any] | None = None

    def put(
        self,
        lease: Lease,
        *,
        entry: tuple[int, bytes] | None = None,
        body: tuple[str, bytes | None] | None = None,
    ) -> None:
        """Queue a change. The changes of a lease are committed in order."""
        with self._wake:
            if lease.lost is not None:
                raise lease.lost
            if self._is_closed:
                raise StoreError("the store is closed; open it again to write")
            lease.add(entry, body)
            self._dirty[lease.key] = lease
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="longhold-store", daemon=True
                )
                self._thread.start()
            self._wake.notify()

    def find_pending(self, lease: Lease) -> "Future[None] | None":
        """Return a future for the commit of all queued changes, or None if nothing is pending."""
        with self._wake:
            if lease.lost is not None:
                raise lease.lost
            return lease.newest

    def close(self) -> None:
        with self._wake:
            self._is_closed = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._dirty and not self._is_closed:
                    self._wake.wait()
                batch = [(lease, lease.hand_over()) for lease in self._dirty.values()]
                self._dirty.clear()
            if not batch:
                break
            self._commit(batch)
        if self._connection is not None:
            self._connection.close()

    def _commit(self, batch: Batch) -> None:
        began, wait_seconds = time.monotonic(), FIRST_WAIT_SECONDS
        while batch:
            try:
                written = self._try(batch)
            except LOST as error:
                if self._connection is not None:
                    self._connection.close()
                    self._connection = None
                if time.monotonic() - began > self._patience_seconds:
                    self._fail(batch, StoreError(f"the store cannot be reached: {error}"))
                    return
                time.sleep(wait_seconds)
                wait_seconds = min(2 * wait_seconds, LONGEST_WAIT_SECONDS)
            except Exception as error:  # noqa: BLE001 - waiting callers must see the error
                if len(batch) == 1:
                    self._fail(batch, StoreError(f"the store refused the entries: {error}"))
                    return
                for one in batch:
                    self._commit([one])
                return
            else:
                batch = [one for one in batch if not self._resolve(*one, written)]

    def _resolve(
        self, lease: Lease, changes: QueuedChanges, written: dict[int, bool | None]
    ) -> bool:
        if lease.key in written:
            has_reports = written[lease.key]
            if has_reports is None:
                return False
            with self._wake:
                lease.confirm(changes, has_reports=has_reports)
            changes.done.set_result(None)
            return True
        error = (
            f"another process became the writer of session {lease.session} while this one was "
            "silent. Uncommitted entries of this process are lost; resume the session to continue "
            "from the log"
        )
        self._fail([(lease, changes)], LeaseLost(error))
        return True

    def _fail(self, batch: Batch, error: StoreError) -> None:
        with self._wake:
            for lease, _ in batch:
                lease.fail(error)
                self._dirty.pop(lease.key, None)
        for _, changes in batch:
            changes.done.set_exception(error)

    def _try(self, batch: Batch) -> dict[int, bool | None]:
        connection = self._connection = self._connection or self._connect()
        found = dict[int, bool | None]()
        if not any(changes.bodies for _, changes in batch):  # a single statement commits itself
            found = _append(connection, batch)
            batch = [one for one in batch if one[0].key not in found]
            if not batch:
                return found
        with connection.transaction():
            ours = _lock_ours(connection, [one for one in batch if one[1].bodies])
            _keep(connection, [one for one in batch if one[0].key in ours])
            found |= dict.fromkeys(ours, False)
            with_entries = [one for one in batch if one[1].entries]
            if with_entries:
                appended = _append(connection, with_entries)
                for lease, changes in with_entries:
                    found.pop(lease.key, None)
                    if lease.key in appended:
                        found[lease.key] = appended[lease.key]
                    else:
                        found |= _verdict(connection, lease, changes)
        return found


def _lock_ours(connection: Connection[Any], batch: Batch) -> set[int]:
    if not batch:
        return set()
    keys, fences = [one.key for one, _ in batch], [one.fence for one, _ in batch]
    return {key for (key,) in connection.execute(_OURS, (keys, fences)).fetchall()}


def _keep(connection: Connection[Any], batch: Batch) -> None:
    bodies = [(lease.key, *item) for lease, changes in batch for item in changes.bodies.items()]
    kept = [(key, name, data) for key, name, data in bodies if data is not None]
    gone = [(key, name) for key, name, data in bodies if data is None]
    if kept:
        rows = [(key, name, sha256_of(data), len(data), data) for key, name, data in kept]
        connection.execute(_KEEP, [list(column) for column in zip(*rows, strict=True)])
    if gone:
        keys, names = zip(*gone, strict=True)
        connection.execute(_DROP, (list(keys), list(names)))


def _append(connection: Connection[Any], batch: Batch) -> dict[int, bool | None]:
    rows = [(lease.key, n, body) for lease, changes in batch for n, body in changes.entries]
    keys, numbers, bodies = (list(column) for column in zip(*rows, strict=True))
    given: Iterable[tuple[int, ...]] = (
        (
            lease.key,
            lease.fence,
            changes.entries[0][0] - 1,
            changes.entries[-1][0],
            sum(len(body) for _, body in changes.entries),
        )
        for lease, changes in batch
    )
    columns = [list(column) for column in zip(*given, strict=True)]
    found = connection.execute(_APPEND, (*columns, keys, numbers, bodies)).fetchall()
    return dict(found)


def _verdict(
    connection: Connection[Any], lease: Lease, changes: QueuedChanges
) -> dict[int, bool | None]:
    """Classify entries that were not appended: already committed, to be retried, or lost."""
    row = connection.execute(
        "SELECT fence, last_n FROM longhold.sessions WHERE key = %s FOR UPDATE", (lease.key,)
    ).fetchone()
    if row is None:
        return {}
    fence, last_n = row
    first, last = changes.entries[0][0], changes.entries[-1][0]
    if last_n >= last:
        there = connection.execute(
            "SELECT n, body FROM longhold.entries WHERE session = %s AND n BETWEEN %s AND %s "
            "ORDER BY n",
            (lease.key, first, last),
        ).fetchall()
        if [(n, bytes(body)) for n, body in there] == changes.entries:
            return {lease.key: False}
    return {lease.key: None} if fence == lease.fence and last_n == first - 1 else {}


RENEWALS = 3
"""Renewals per lease period, so that a single late or lost renewal does no harm."""
_RENEW = """
INSERT INTO longhold.holders (id, name, until)
VALUES (%s, %s, clock_timestamp() + make_interval(secs => %s))
ON CONFLICT (id) DO UPDATE SET until = excluded.until
"""
_WANTED = """
SELECT w.session FROM longhold.wanted w
JOIN longhold.sessions s ON s.key = w.session AND s.fence = w.fence WHERE s.holder = %s
"""
WANTED_SECONDS = 0.02
"""A process collects its sessions for this long and checks them all with one query."""
_FORGET = "DELETE FROM longhold.holders WHERE until < clock_timestamp() - interval '1 day'"
"""Deletes the rows of dead processes, which no longer block other processes."""


class Holder:
    def __init__(self, connect: Connect, lease_seconds: float) -> None:
        self.id = uuid.uuid4()
        self.name = f"process {os.getpid()} on {socket.gethostname()}"
        self._connect = connect
        self._lease_seconds = lease_seconds
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._wanted: set[int] = set()
        self._looked_at = 0.0

    def find_wanted(self, database: PostgresDatabase) -> set[int]:
        """Return the keys of this process's sessions that another process waits for."""
        if time.monotonic() > self._looked_at + WANTED_SECONDS:
            self._wanted = {key for (key,) in database.rows(_WANTED, (self.id,))}
            self._looked_at = time.monotonic()
        return self._wanted

    def begin(self, connection: Connection[Any]) -> None:
        """Register this process before it takes its first session."""
        if self._thread is None:
            self._renew(connection)
            connection.execute(_FORGET)
            self._thread = threading.Thread(target=self._run, name="longhold-lease", daemon=True)
            self._thread.start()

    def close(self, connection: Connection[Any]) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            with suppress(psycopg.Error):
                connection.execute("DELETE FROM longhold.holders WHERE id = %s", (self.id,))

    def _run(self) -> None:
        connection: Connection[Any] | None = None
        while not self._stop.wait(self._lease_seconds / RENEWALS):
            try:
                connection = connection or self._connect()
                self._renew(connection)
            except psycopg.Error:
                if connection is not None:
                    connection.close()
                connection = None
        if connection is not None:
            connection.close()

    def _renew(self, connection: Connection[Any]) -> None:
        connection.execute(_RENEW, (self.id, self.name, self._lease_seconds))
