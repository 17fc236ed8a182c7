"""Sessions of one tenant in a PostgreSQL database shared by many machines.

A session has one writer at a time, which holds a lease. Opening the session increases its fence,
and only the writer with the newest fence may append. The store creates missing tables. Connections
hold no state, so PgBouncer works.
"""

import atexit
import hashlib
import math
import os
import re
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import msgspec
from psycopg import Connection, errors

from longhold.core.log import Header, Loaded
from longhold.core.log.cursor import last_n
from longhold.core.log.entries import AnyEntry
from longhold.core.log.erasing import redact, remove_indexes, with_branches
from longhold.core.log.log import AGENTS, branch_header
from longhold.core.log.protocol import AgentLog
from longhold.core.log.results import DIRECTORY, Results, StoredBody
from longhold.core.log.shared import SharedRecords
from longhold.core.log.store import (
    NONE_HERE,
    NOTHING,
    FileStore,
    Store,
    StoredSession,
    check_file_name,
    check_id,
    is_id,
    new_id,
    only_one,
    result_names,
)
from longhold.core.log.stores.postgres import schema
from longhold.core.log.stores.postgres.database import PostgresDatabase
from longhold.core.log.stores.postgres.group_commit import Holder, Lease, Writer
from longhold.core.log.stores.postgres.log import (
    BodiesToRead,
    PostgresJobs,
    PostgresLog,
    PostgresResults,
)
from longhold.core.log.stores.postgres.shared_records import (
    PostgresMail,
    PostgresRecords,
    decode_session,
    fill,
    list_bodies,
    load_entries,
)
from longhold.core.log.titles import NOTES, title_in
from longhold.core.settings import StoreSettings, home
from longhold.core.settings.private_files import write_private
from longhold.core.settings.project import project_root, slug
from longhold.errors import ConfigError, LogLocked, SessionExists, SessionNotFound, StoreError

if TYPE_CHECKING:
    from longhold.core.log.stores.postgres.encryption import Codec

CLOCK_SECONDS = 1e-5
"""Maximum difference between file and database timestamps."""


def _copy_all(store: Store, copies: FileStore) -> FileStore:
    known = {one.id: one.modified for one in copies.sessions()}
    for one in store.sessions():
        if abs(known.pop(one.id, 0.0) - one.modified) > CLOCK_SECONDS:
            _copy(store, copies, one)
    for gone in known:
        with suppress(LogLocked):
            copies.delete(gone)
    return copies


def _copy_one(store: Store, copies: FileStore, session: str) -> FileStore:
    found = store.find(session)
    _copy(store, copies, found)
    directory = copies.find(found.id).directory
    for name, data in store.beside(found.id).items():
        write_private(directory / check_file_name(name), data, is_synced=False)
    return copies


def _copy(store: Store, copies: FileStore, one: StoredSession) -> None:
    with suppress(LogLocked, SessionExists):  # another process is copying it
        try:
            with copies.open(one.id) as log:
                for entry in store.load(one.id, after=last_n(log.entries)).entries:
                    log.append(entry)
        except SessionNotFound:
            loaded = store.load(one.id)
            copies.add(loaded.header, loaded.entries)
        os.utime(copies.find(one.id).path, (one.modified, one.modified))


def _redact_rows(table: str, keys: list[int], text: str, connection: Connection[Any]) -> int:
    query = f"SELECT tableoid, ctid::text, body FROM longhold.{table} WHERE session = ANY(%s)"
    count = 0
    with connection.transaction():
        for partition, place, body in connection.execute(query, (keys,)).fetchall():
            kept = redact(bytes(body), text)
            if kept == bytes(body):
                continue
            hashed = ", sha256 = %(sha)s, bytes = length(%(body)s)" if table == "bodies" else ""
            sha = hashlib.sha256(kept).hexdigest()
            connection.execute(
                f"UPDATE longhold.{table} SET body = %(body)s{hashed} "
                "WHERE ctid = %(place)s::text::tid AND tableoid = %(partition)s",
                {"body": kept, "place": place, "partition": partition, "sha": sha},
            )
            count += 1
    return count


ENDS = 40

_LIVE = """
EXISTS (SELECT 1 FROM longhold.holders h WHERE h.id = s.holder AND h.until > clock_timestamp())
"""
_TAKE = f"""
UPDATE longhold.sessions s SET fence = fence + 1, holder = %(me)s
WHERE tenant = %(tenant)s AND id = %(id)s
    AND (holder IS NULL OR holder = %(me)s OR NOT {_LIVE})
RETURNING key, fence, header, EXISTS (SELECT 1 FROM longhold.reports r WHERE r.session = s.key)
"""
_CREATE = """
INSERT INTO longhold.sessions (tenant, id, project, header, created, fence, holder)
VALUES (%s, %s, %s, %s, to_timestamp(%s), 1, %s) RETURNING key
"""
_WANT = """
INSERT INTO longhold.wanted (session, fence)
SELECT key, fence FROM longhold.sessions WHERE tenant = %(tenant)s AND id = %(id)s
ON CONFLICT (session) DO UPDATE SET fence = excluded.fence
RETURNING (SELECT h.name FROM longhold.sessions s JOIN longhold.holders h ON h.id = s.holder
    WHERE s.key = session)
"""
_RELEASE = """
WITH released AS (
    UPDATE longhold.sessions s SET holder = NULL
    FROM unnest(%b::bigint[], %b::bigint[]) AS g (key, fence)
    WHERE s.key = g.key AND s.fence = g.fence RETURNING s.key
)
DELETE FROM longhold.wanted w USING released r WHERE w.session = r.key
"""
_LISTED = """
SELECT id, extract(epoch FROM modified)::float8, bytes + length(header), header
FROM longhold.sessions WHERE tenant = %(tenant)s
"""

_UNCLOSED: WeakSet["PostgresStore"] = WeakSet()


@atexit.register
def _close_all() -> None:
    """Close all connections. Otherwise the server would log each of them as lost."""
    for store in list(_UNCLOSED):
        store.close()


_BODIES = "SELECT name, body FROM longhold.bodies WHERE session = %s"
_NO_AGENT = "id NOT LIKE '%%/%%'"  # estimated as most rows, so that a listing reads only its own
_WITH_AGENTS = "tenant = %(tenant)s AND (id = %(id)s OR starts_with(id, %(id)s || '/'))"


class PostgresStore:
    def __init__(
        self, url: str, settings: StoreSettings | None = None, codec: "Codec | None" = None
    ) -> None:
        """Open the store. `codec` encrypts its content. The default codec uses `store.key_file`."""
        self.settings, self._process = settings or StoreSettings(), os.getpid()
        if self.settings.key_file and codec is None:
            from longhold.core.log.stores.postgres.encryption import AesSiv

            codec = AesSiv.read(self.settings.key_file)
        self._database = PostgresDatabase(url, self.settings.patience_seconds, codec)
        self._writer = Writer(self._database.connect, self.settings.patience_seconds)
        self._holder = Holder(self._database.connect, self.settings.lease_seconds)
        self._tenants: dict[str, PostgresStore] = {}
        """The stores of other tenants that share these connections."""
        self._be_tenant(self.settings.tenant)
        try:
            self._database.run(schema.migrate)
        except BaseException:
            self._database.close()
            raise
        _UNCLOSED.add(self)

    def _be_tenant(self, tenant: str) -> None:
        if "\0" in tenant:
            raise ConfigError("store.tenant contains a null character, which no database accepts")
        self.tenant, self.settings = tenant, replace(self.settings, tenant=tenant)
        self._open: set[str] = set()
        self._unreleased: dict[int, int] = {}
        """The fences of closed sessions that the database still lists as held, by session key."""
        mark = hashlib.sha256(f"{self._database.place}\0{tenant}".encode()).hexdigest()[:16]
        self._scratch = home() / "stores" / mark
        self._tenants[tenant] = self

    def for_tenant(self, tenant: str) -> "PostgresStore":
        """Return the store of another tenant over the same connections and threads.

        Closing one of these stores closes all.
        """
        if tenant not in self._tenants:
            copy(self)._be_tenant(tenant)
        return self._tenants[tenant]

    def create(self, *, directory: Path, session: str | None = None) -> PostgresLog:
        id = check_id(session or new_id())
        return self.begin(id, Header(session=id, created=time.time(), directory=str(directory)))

    def begin(self, id: str, header: Header) -> PostgresLog:
        """Create a session or an agent's log. An agent's id contains its session's id."""

        def insert(connection: Connection[Any]) -> Lease:
            self._holder.begin(connection)
            row = connection.execute(
                _CREATE, (*self._columns(id, header), header.created, self._holder.id)
            ).fetchone()
            return Lease(key=row[0] if row else 0, fence=1, session=id)

        try:
            lease = self._database.run(insert)
        except errors.UniqueViolation:
            raise SessionExists(
                f"session {id} exists already and is never overwritten; choose another id"
            ) from None
        return self._log(lease, Loaded(header=header), ())

    def open(self, session: str) -> PostgresLog:
        if not all(map(is_id, session.split("/"))):
            self.find(session)  # raises
        if session in self._open:
            raise LogLocked(Path(session), self._holder.name)

        def take(connection: Connection[Any]) -> tuple[Lease, Loaded, list[StoredBody]]:
            self._holder.begin(connection)
            given = {"tenant": self.tenant, "id": session, "me": self._holder.id}
            row = connection.execute(_TAKE, given).fetchone()
            if row is None:
                self.find(session)  # raises if the session does not exist
                [writer] = connection.execute(_WANT, given).fetchone() or [None]
                raise LogLocked(Path(session), writer or "another process")
            key, fence, header, has_reports = row
            lease = Lease(key=key, fence=fence, session=session, has_reports=has_reports)
            loaded = load_entries(connection, key, header, after=0)
            return lease, loaded, list_bodies(connection, key)

        return self._log(*self._database.run(take))

    def load(self, session: str, *, after: int = 0) -> Loaded:
        found = self.find(session)
        return self._database.run(
            lambda connection: load_entries(connection, *self._key(found.id), after=after)
        )

    def branch(self, session: str, *, upto: int | None = None) -> PostgresLog:
        id = self.find(session).id
        source = self.load(id)
        shared = [one for one in source.entries if upto is None or one.n <= upto]
        header = branch_header(source.header, new_id(), shared[-1].n if shared else 0)
        beside = self.beside(id)
        if upto is not None:
            known = result_names(shared)
            beside = {
                name: data
                for name, data in beside.items()
                if name.startswith(f"{DIRECTORY}/") and Path(name).stem in known
            }
        self.add(header, shared, beside)
        until = math.inf if upto is None else shared[-1].at if shared else 0.0
        for name in self.agents(id):
            agent = self.load(name)
            kept = [one for one in agent.entries if one.at <= until]
            if agent.header.created <= until:
                self.add(
                    agent.header,
                    kept,
                    self.beside(name),
                    agent=header.session + name.removeprefix(id),
                )
        return self.open(header.session)

    def add(
        self,
        header: Header,
        entries: Iterable[AnyEntry],
        beside: Mapping[str, bytes] = NOTHING,
        *,
        agent: str = "",
    ) -> str:
        id = agent or header.session
        for part in id.split("/") if agent else (id,):
            check_id(part)
        for name in beside:
            check_file_name(name)

        def insert(connection: Connection[Any]) -> None:
            with connection.transaction():
                row = connection.execute(
                    _CREATE, (*self._columns(id, header), header.created or time.time(), None)
                ).fetchone()
                assert row is not None, "an insert returns its row"
                fill(connection, row[0], entries, beside)

        try:
            self._database.run(insert, retries=False)
        except errors.UniqueViolation:
            raise SessionExists(f"session {id} exists already and is never overwritten") from None
        return id

    def beside(self, session: str) -> dict[str, bytes]:
        key, _ = self._key(self.find(session).id)
        rows = self._database.rows(
            f"{_BODIES} AND (name = %s OR starts_with(name, %s)) ORDER BY name",
            (key, NOTES, f"{DIRECTORY}/"),
        )
        return {name: bytes(body) for name, body in rows}

    def results(self, session: str) -> Results:
        key, _ = self._key(self.find(session).id)
        stored = self._database.run(lambda connection: list_bodies(connection, key))
        return PostgresResults(BodiesToRead(self, key), stored)

    def agents(self, session: str) -> list[str]:
        given = {"tenant": self.tenant, "id": f"{self.find(session).id}/"}
        query = "tenant = %(tenant)s AND starts_with(id, %(id)s) ORDER BY id"
        rows = self._database.rows(f"SELECT id FROM longhold.sessions WHERE {query}", given)
        return [id for (id,) in rows]

    def agent_log(self, name: str) -> AgentLog:
        query, given = f"{_LISTED} AND id = %(id)s", {"tenant": self.tenant, "id": name}
        return AgentLog(
            id=name.rpartition("/")[2],
            directory=self._path(name).with_suffix(""),
            exists=lambda: bool(self._list(query, given)),
            load=partial(self.load, name),
            begin=partial(self.begin, name),
            go_on=partial(self.open, name),
        )

    def _path(self, id: str) -> Path:
        return self._scratch / f"{id.replace('/', f'/{AGENTS}/')}.jsonl"

    def find(self, session: str, *, by_prefix: bool = False) -> StoredSession:
        if by_prefix and session == "newest":
            if here := self.sessions(Path.cwd(), limit=1):
                return here[0]
            raise SessionNotFound(NONE_HERE)
        found: list[StoredSession] = []
        above, _, agent = session.rpartition("/")
        if is_id(agent):
            name = f"{self.find(above, by_prefix=by_prefix).id}/{agent}" if above else session
            given = {"tenant": self.tenant, "id": name}
            found = self._list(f"{_LISTED} AND id = %(id)s", given)
            if not found and not above and by_prefix:
                found = self._list(
                    f"{_LISTED} AND {_NO_AGENT} AND starts_with(id, %(id)s) ORDER BY id LIMIT 5",
                    given,
                )
        if not found:
            raise SessionNotFound(
                f"there is no session {session!r}; `longhold sessions --all` lists them"
            )
        return only_one(session, found)

    def sessions(
        self, directory: Path | None = None, *, limit: int = 0, prefix: str = ""
    ) -> list[StoredSession]:
        project = slug(project_root(directory)) if directory else None
        wanted = " AND project = %(project)s" if project is not None else ""
        wanted += " AND id LIKE %(prefix)s" if prefix else ""
        return self._list(
            f"{_LISTED} AND {_NO_AGENT}{wanted} ORDER BY modified DESC, key DESC LIMIT %(limit)s",
            {
                "tenant": self.tenant,
                "project": project,
                "limit": limit or None,
                "prefix": re.sub(r"([\\%_])", r"\\\1", prefix) + "%",
            },
        )

    def title(self, found: StoredSession) -> str:
        key, _ = self._key(found.id)
        notes = self.body(key, NOTES) or b""
        rows = self._database.rows(
            "SELECT n, body FROM longhold.entries WHERE session = %(key)s AND (n <= %(ends)s OR "
            "n > (SELECT last_n FROM longhold.sessions WHERE key = %(key)s) - %(ends)s) ORDER BY n",
            {"key": key, "ends": ENDS},
        )
        lines = [bytes(body) for _, body in rows]
        return title_in(notes.decode("utf-8", "replace"), lines[:ENDS], lines[-ENDS:])

    def delete(self, session: str) -> None:
        if not is_id(session):
            raise SessionNotFound(f"there is no session {session!r}; give a complete id")
        with self.open(session):  # raises if a process is writing it
            given = {"tenant": self.tenant, "id": session}

            def remove(connection: Connection[Any]) -> None:
                with connection.transaction():
                    query = f"DELETE FROM longhold.sessions WHERE {_WITH_AGENTS} RETURNING key"
                    keys = [key for (key,) in connection.execute(query, given).fetchall()]
                    for table in ("entries", "bodies", "reports", "boxes", "mail", "wanted"):
                        query = f"DELETE FROM longhold.{table} WHERE session = ANY(%s)"
                        connection.execute(query, (keys,))

            self._database.run(remove)

    def erase(
        self, *sessions: str, directory: Path | None = None, everything: bool = False
    ) -> list[str]:
        listed = self.sessions(directory) if directory or everything else []
        gone = with_branches(self, [*sessions, *(one.id for one in listed)])
        copies = FileStore(self._scratch / "copies")
        for id in gone:
            self.delete(id)
            with suppress(SessionNotFound):
                copies.delete(id)
            shutil.rmtree(self._path(id).with_suffix(""), ignore_errors=True)
        if directory is not None:
            given = (self.tenant, slug(project_root(directory)))
            query = "DELETE FROM longhold.commits WHERE tenant = %s AND project = %s"
            self._database.run(lambda connection: connection.execute(query, given))
            memory = self.shared(directory).memory
            shutil.rmtree(memory.place if memory else copies.root, ignore_errors=True)
            own = self._scratch / "projects" / slug(project_root(directory))  # agents' memories
            shutil.rmtree(own, ignore_errors=True)
        if everything:
            for table in ("commits", "shared", "spending"):
                query = f"DELETE FROM longhold.{table} WHERE tenant = %s"
                self._database.run(partial(Connection.execute, query=query, params=(self.tenant,)))
            shutil.rmtree(self._scratch, ignore_errors=True)
        remove_indexes()
        return gone

    def redact(self, session: str, text: str) -> int:
        count = 0
        for id in with_branches(self, [session]):
            with self.open(id):  # raises if a process is writing it
                names = [id, *self.agents(id)]
                keys = [self._key(name)[0] for name in names]
                for table in ("entries", "bodies", "reports", "mail"):
                    count += self._database.run(partial(_redact_rows, table, keys, text))
            with suppress(SessionNotFound):
                FileStore(self._scratch / "copies").delete(id)
        remove_indexes()
        return count

    def files(self, session: str = "") -> FileStore:
        copies = FileStore(self._scratch / "copies")
        return _copy_one(self, copies, session) if session else _copy_all(self, copies)

    def close(self) -> None:
        """Commit queued changes, release all sessions, and disconnect. Does nothing in a fork."""
        if self._process != os.getpid():  # a fork does not own the connections
            return
        _UNCLOSED.discard(self)
        self._writer.close()
        with suppress(StoreError):
            self._database.run(self._holder.close, retries=False)
        self._database.close()

    def shared(self, directory: Path) -> SharedRecords:
        return PostgresRecords(
            self._database, self.tenant, self._holder, directory=directory, scratch=self._scratch
        )

    def body(self, key: int, name: str) -> bytes | None:
        rows = self._database.rows(f"{_BODIES} AND name = %s", (key, name))
        return bytes(rows[0][1]) if rows else None

    def reports(self, key: int) -> list[tuple[int, bytes]]:
        rows = self._database.rows(
            "SELECT key, body FROM longhold.reports WHERE session = %s ORDER BY key", (key,)
        )
        return [(report, bytes(body)) for report, body in rows]

    def remove_reports(self, keys: Sequence[int]) -> None:
        query = "DELETE FROM longhold.reports WHERE key = ANY(%s)"
        self._database.run(lambda connection: connection.execute(query, (list(keys),)))

    def leave(self, key: int, report: bytes) -> None:
        query = "INSERT INTO longhold.reports (session, body) VALUES (%s, %s)"
        self._database.run(lambda connection: connection.execute(query, (key, report)))

    def is_wanted(self, key: int) -> bool:
        return key in self._holder.find_wanted(self._database)

    def release(self, lease: Lease) -> None:
        """Release a session. If the database is down, the next release tries again."""
        self._open.discard(lease.session)
        self._unreleased[lease.key] = lease.fence
        given = (list(self._unreleased), list(self._unreleased.values()))
        with suppress(StoreError):
            self._database.run(lambda connection: connection.execute(_RELEASE, given))
            self._unreleased.clear()

    def _log(self, lease: Lease, loaded: Loaded, bodies: Iterable[StoredBody]) -> PostgresLog:
        self._open.add(lease.session)
        return PostgresLog(
            lease,
            loaded,
            bodies,
            path=self._path(lease.session),
            writer=self._writer,
            beside=self,
            shared=self.shared(Path(loaded.header.directory)),
            mail=PostgresMail(self._database, self.tenant, lease.key),
            queue=PostgresJobs(self._database.url, self.settings, lease.session)
            if self.settings.jobs == "workers" and is_id(lease.session)
            else None,
        )

    def _columns(self, id: str, header: Header) -> tuple[str, str, str, bytes]:
        project = slug(project_root(Path(header.directory)))
        return self.tenant, id, project, msgspec.json.encode(header)

    def _key(self, id: str) -> tuple[int, bytes]:
        rows = self._database.rows(
            "SELECT key, header FROM longhold.sessions WHERE tenant = %s AND id = %s",
            (self.tenant, id),
        )
        if not rows:
            raise SessionNotFound(f"there is no session {id!r}")
        key, header = rows[0]
        return int(key), bytes(header)

    def _list(self, query: str, given: Mapping[str, object]) -> list[StoredSession]:
        return [decode_session(*row) for row in self._database.rows(query, given)]
