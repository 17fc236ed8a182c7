"""Records shared by a tenant's sessions in the database: spending, calibrations, memories, mail."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec
from psycopg import Connection

from longhold.core.log import Header, Loaded
from longhold.core.log.entries import AnyEntry, Said
from longhold.core.log.reading import decode_chunk
from longhold.core.log.results import DIRECTORY, StoredBody, sha256_of
from longhold.core.log.shared import SharedCommits, decode_said
from longhold.core.log.spending import DayLedger
from longhold.core.log.store import StoredSession, is_id
from longhold.core.log.stores.postgres.database import PostgresDatabase, select
from longhold.core.log.stores.postgres.group_commit import Holder
from longhold.core.messages.usage import Tally
from longhold.core.settings.project import project_root, slug
from longhold.errors import SessionNotFound

_FIELDS = tuple(Tally().to_json())
_SPEND = f"""
INSERT INTO longhold.spending AS s (tenant, holder, day, {", ".join(_FIELDS)})
VALUES (%s, %s, current_date, {", ".join(["%s"] * len(_FIELDS))})
ON CONFLICT (tenant, day, holder) DO UPDATE
SET {", ".join(f"{name} = s.{name} + excluded.{name}" for name in _FIELDS)}
"""
_SUMS = ", ".join(
    f"sum({name})::{'float8' if name == 'usd' else 'bigint'} AS {name}" for name in _FIELDS
)
_KEEP = """
INSERT INTO longhold.shared (tenant, name, body) VALUES (%s, %s, %s)
ON CONFLICT (tenant, name) DO UPDATE SET body = excluded.body, modified = now()
"""
_SINCE = """
SELECT id FROM longhold.sessions
WHERE tenant = %s AND project = %s AND modified > to_timestamp(%s) AND id NOT LIKE '%%/%%'
ORDER BY modified DESC, key DESC
"""
_SAID = """
SELECT e.body FROM longhold.entries e JOIN longhold.sessions s ON s.key = e.session
WHERE s.tenant = %s AND s.id = %s
    AND (%s OR starts_with(encode(substr(e.body, 1, 15), 'escape'), '{"entry":"said"')) ORDER BY e.n
"""
"""All encrypted rows are read, because the database cannot filter them."""
_COMMITS = """
SELECT n, body FROM longhold.commits WHERE tenant = %s AND project = %s AND n > %s ORDER BY n
"""
_COMMIT = """
INSERT INTO longhold.commits (tenant, project, n, body) VALUES (%s, %s, %s, %s)
ON CONFLICT (tenant, project, n) DO NOTHING
"""
_IS_OURS = """
SELECT 1 FROM longhold.commits WHERE tenant = %s AND project = %s AND n = %s AND body = %s
"""

_SEND = """
WITH found AS (
    SELECT key FROM longhold.sessions WHERE tenant = %(tenant)s AND id = %(id)s
), box AS (
    INSERT INTO longhold.boxes (session, last) SELECT key, 1 FROM found
    ON CONFLICT (session) DO UPDATE SET last = longhold.boxes.last + 1
    RETURNING session, last
), put AS (
    INSERT INTO longhold.mail (session, seq, key, body)
    SELECT session, last, %(key)s, %(body)s FROM box ON CONFLICT (session, key) DO NOTHING
)
SELECT key FROM found
"""


class PostgresLedger:
    """Spending per day by the database's clock. One row per process avoids lock waits."""

    def __init__(self, database: PostgresDatabase, tenant: str, holder: Holder) -> None:
        self._database = database
        self._tenant = tenant
        self._holder = holder

    def add(self, spent: Tally) -> None:
        """Add spending. Raises immediately if the database is down, because a turn waits."""
        given = (self._tenant, self._holder.id, *spent.to_json().values())
        self._database.run(lambda connection: connection.execute(_SPEND, given), retries=False)

    def today(self) -> Tally:
        rows = self._database.rows(
            f"SELECT {_SUMS} FROM longhold.spending WHERE tenant = %s AND day = current_date "
            "HAVING count(*) > 0",
            (self._tenant,),
        )
        return msgspec.convert(dict(zip(_FIELDS, rows[0], strict=True)), Tally) if rows else Tally()


class PostgresCommits:
    """The commits of a project's memories. The first writer of a number gets it."""

    def __init__(self, database: PostgresDatabase, tenant: str, project: str, place: Path) -> None:
        self.place = place
        self._database = database
        self._project = (tenant, project)

    def after(self, number: int) -> list[tuple[int, bytes]]:
        rows = self._database.run(
            lambda connection: select(connection, _COMMITS, (*self._project, number)), retries=False
        )
        return [(n, bytes(body)) for n, body in rows]

    def add(self, number: int, commit: bytes) -> bool:
        """Add a commit. If its confirmation was lost, a retry finds the same bytes and succeeds."""
        given = (*self._project, number, commit)

        def insert(connection: Connection[Any]) -> bool:
            connection.execute(_COMMIT, given)
            return bool(select(connection, _IS_OURS, given))

        return self._database.run(insert)


class PostgresRecords:
    def __init__(
        self,
        database: PostgresDatabase,
        tenant: str,
        holder: Holder,
        *,
        directory: Path,
        scratch: Path,
    ) -> None:
        self._database = database
        self._tenant = tenant
        self._project = slug(project_root(directory))
        self.ledger: DayLedger = PostgresLedger(database, tenant, holder)
        self.memory: SharedCommits | None = PostgresCommits(
            database, tenant, self._project, scratch / "memory" / self._project
        )

    def read(self, name: str) -> bytes:
        rows = self._database.rows(
            "SELECT body FROM longhold.shared WHERE tenant = %s AND name = %s", (self._tenant, name)
        )
        return bytes(rows[0][0]) if rows else b""

    def keep(self, name: str, data: bytes) -> None:
        given = (self._tenant, name, data)
        self._database.run(lambda connection: connection.execute(_KEEP, given), retries=False)

    def sessions_since(self, since: float) -> list[str]:
        rows = self._database.rows(_SINCE, (self._tenant, self._project, since))
        return [id for (id,) in rows]

    def read_said(self, session: str) -> Iterator[Said]:
        given = (self._tenant, session, self._database.codec is not None)
        for (body,) in self._database.rows(_SAID, given):
            yield from decode_said(bytes(body))


class PostgresMail:
    """Mail between a tenant's sessions on any machine.

    A mailbox numbers its mail under a row lock, so that readers do not skip a late commit. The
    session's log stores the read position and the mailbox's id, so both move with the session.
    """

    def __init__(self, database: PostgresDatabase, tenant: str, key: int) -> None:
        self._database = database
        self._tenant = tenant
        self._key = key

    def send(self, session: str, key: str, body: bytes) -> None:
        given = {"tenant": self._tenant, "id": session, "key": key, "body": body}
        if not is_id(session) or not self._database.rows(_SEND, given):
            raise SessionNotFound(f"there is no session {session!r} in the store")

    def after(self, cursors: Mapping[str, int]) -> list[tuple[str, bytes]]:
        boxes = self._database.rows(
            "SELECT id FROM longhold.boxes WHERE session = %s", (self._key,)
        )
        if not boxes:
            return []
        box = str(boxes[0][0])
        rows = self._database.rows(
            "SELECT seq, body FROM longhold.mail WHERE session = %s AND seq > %s ORDER BY seq",
            (self._key, cursors.get(box, 0)),
        )
        return [(f"{box}:{seq}", bytes(body)) for seq, body in rows]


ROWS = 500


def load_entries(connection: Connection[Any], key: int, header: bytes, *, after: int) -> Loaded:
    loaded = Loaded(header=msgspec.json.decode(header, type=Header))
    rows = select(
        connection,
        "SELECT body FROM longhold.entries WHERE session = %s AND n > %s ORDER BY n",
        (key, after),
    )
    if rows:
        decode_chunk(b"\n".join(chain.from_iterable(rows)) + b"\n", after + 1, loaded)
    return loaded


def list_bodies(connection: Connection[Any], key: int) -> list[StoredBody]:
    rows = select(
        connection,
        "SELECT name, bytes, extract(epoch FROM modified)::float8 FROM longhold.bodies "
        "WHERE session = %s AND starts_with(name, %s)",
        (key, f"{DIRECTORY}/"),
    )
    return [
        StoredBody(name=name.rpartition("/")[2], bytes=size, modified=modified)
        for name, size, modified in rows
    ]


def decode_session(id: str, modified: float, size: int, header: bytes) -> StoredSession:
    decoded = msgspec.json.decode(header, type=Header)
    return StoredSession(id=id, modified=modified, bytes=size, header=decoded)


def fill(
    connection: Connection[Any], key: int, entries: Iterable[AnyEntry], beside: Mapping[str, bytes]
) -> None:
    last, size, rest = 0, 0, iter(entries)
    while some := list(islice(rest, ROWS)):
        numbers, lines = [one.n for one in some], [msgspec.json.encode(one) for one in some]
        connection.execute(
            "INSERT INTO longhold.entries (session, n, body) "
            "SELECT %b, e.n, e.body FROM unnest(%b::bigint[], %b::bytea[]) AS e (n, body)",
            (key, numbers, lines),
        )
        last, size = numbers[-1], size + sum(map(len, lines))
    connection.execute(
        "UPDATE longhold.sessions SET last_n = %s, bytes = %s WHERE key = %s", (last, size, key)
    )
    for name, data in beside.items():
        connection.execute(
            "INSERT INTO longhold.bodies (session, name, sha256, bytes, body) "
            "VALUES (%b, %b, %b, %b, %b)",
            (key, name, sha256_of(data), len(data), data),
        )
