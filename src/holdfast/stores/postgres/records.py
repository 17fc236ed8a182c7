"""What the sessions of a tenant share in the database: spending, calibrations, words, mail."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import structs
from psycopg import Connection

from holdfast.errors import SessionNotFound
from holdfast.log.entries import Said
from holdfast.log.shared import SharedCommits, decode_said
from holdfast.log.spending import DayLedger, Spent
from holdfast.log.store import is_id
from holdfast.settings.project import project_root, slug
from holdfast.stores.postgres.database import PostgresDatabase, select
from holdfast.stores.postgres.holder import Holder

_FIELDS = tuple(field.name for field in structs.fields(Spent))
_SPEND = f"""
INSERT INTO holdfast.spending AS s (tenant, holder, day, {", ".join(_FIELDS)})
VALUES (%s, %s, current_date, {", ".join(["%s"] * len(_FIELDS))})
ON CONFLICT (tenant, day, holder) DO UPDATE
SET {", ".join(f"{name} = s.{name} + excluded.{name}" for name in _FIELDS)}
"""
_SUMS = ", ".join(
    f"sum({name})::{'float8' if name == 'usd' else 'bigint'} AS {name}" for name in _FIELDS
)
_KEEP = """
INSERT INTO holdfast.shared (tenant, name, body) VALUES (%s, %s, %s)
ON CONFLICT (tenant, name) DO UPDATE SET body = excluded.body, modified = now()
"""
_SINCE = """
SELECT id FROM holdfast.sessions
WHERE tenant = %s AND project = %s AND modified > to_timestamp(%s) AND strpos(id, '/') = 0 ORDER BY modified DESC, key DESC
"""
_SAID = """
SELECT e.body FROM holdfast.entries e JOIN holdfast.sessions s ON s.key = e.session
WHERE s.tenant = %s AND s.id = %s AND starts_with(encode(substr(e.body, 1, 15), 'escape'),
    '{"entry":"said"') ORDER BY e.n
"""
_COMMITS = """
SELECT n, body FROM holdfast.commits WHERE tenant = %s AND project = %s AND n > %s ORDER BY n
"""
_COMMIT = """
INSERT INTO holdfast.commits (tenant, project, n, body) VALUES (%s, %s, %s, %s)
ON CONFLICT (tenant, project, n) DO NOTHING
"""
_IS_OURS = """
SELECT 1 FROM holdfast.commits WHERE tenant = %s AND project = %s AND n = %s AND body = %s
"""


_SEND = """
WITH found AS (
    SELECT key FROM holdfast.sessions WHERE tenant = %(tenant)s AND id = %(id)s
), box AS (
    INSERT INTO holdfast.boxes (session, last) SELECT key, 1 FROM found
    ON CONFLICT (session) DO UPDATE SET last = holdfast.boxes.last + 1
    RETURNING session, last
), put AS (
    INSERT INTO holdfast.mail (session, seq, key, body)
    SELECT session, last, %(key)s, %(body)s FROM box ON CONFLICT (session, key) DO NOTHING
)
SELECT key FROM found
"""


class PostgresLedger:
    """A day's spending, by the database's clock; a row for each process, so that none waits."""

    def __init__(self, database: PostgresDatabase, tenant: str, holder: Holder) -> None:
        self._database = database
        self._tenant = tenant
        self._holder = holder

    def add(self, spent: Spent) -> None:
        """Count what was spent; raises at once while the database is away: a turn waits for it."""
        given = (self._tenant, self._holder.id, *structs.astuple(spent))
        self._database.run(lambda connection: connection.execute(_SPEND, given), retries=False)

    def today(self) -> Spent:
        rows = self._database.rows(
            f"SELECT {_SUMS} FROM holdfast.spending WHERE tenant = %s AND day = current_date "
            "HAVING count(*) > 0",
            (self._tenant,),
        )
        return Spent(**dict(zip(_FIELDS, rows[0], strict=True))) if rows else Spent()

    def by_day(self) -> dict[str, Spent]:
        rows = self._database.rows(
            f"SELECT day::text, {_SUMS} FROM holdfast.spending WHERE tenant = %s "
            "GROUP BY day ORDER BY day",
            (self._tenant,),
        )
        return {day: Spent(**dict(zip(_FIELDS, sums, strict=True))) for day, *sums in rows}


class PostgresCommits:
    """The commits of a project's memories; a number is given once, whoever is faster."""

    def __init__(self, database: PostgresDatabase, tenant: str, project: str, place: Path) -> None:
        self.place = place
        self._database = database
        self._project = (tenant, project)

    def after(self, number: int) -> list[tuple[int, bytes]]:
        rows = self._database.run(
            lambda connection: select(connection, _COMMITS, (*self._project, number)),
            retries=False,
        )
        return [(n, bytes(body)) for n, body in rows]

    def add(self, number: int, commit: bytes) -> bool:
        """Commit under a number; one whose answer was lost is recognised by its bytes."""
        given = (*self._project, number, commit)

        def insert(connection: Connection[Any]) -> bool:
            connection.execute(_COMMIT, given)
            return bool(select(connection, _IS_OURS, given))

        return self._database.run(insert)


class PostgresRecords:
    """Those of one project of a tenant."""

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
            "SELECT body FROM holdfast.shared WHERE tenant = %s AND name = %s",
            (self._tenant, name),
        )
        return bytes(rows[0][0]) if rows else b""

    def keep(self, name: str, data: bytes) -> None:
        given = (self._tenant, name, data)
        self._database.run(lambda connection: connection.execute(_KEEP, given), retries=False)

    def sessions_since(self, since: float) -> list[str]:
        rows = self._database.rows(_SINCE, (self._tenant, self._project, since))
        return [id for (id,) in rows]

    def said(self, session: str) -> Iterator[Said]:
        for (body,) in self._database.rows(_SAID, (self._tenant, session)):
            yield from decode_said(bytes(body))


class PostgresMail:
    """Mail between the sessions of a tenant, on whatever machines they run.

    A box numbers its mail under the lock of its row, so that what is committed late is not skipped.
    How far a session has read is in its log, with the id of the box: it moves with the session.
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
            "SELECT id FROM holdfast.boxes WHERE session = %s", (self._key,)
        )
        if not boxes:
            return []
        box = str(boxes[0][0])
        rows = self._database.rows(
            "SELECT seq, body FROM holdfast.mail WHERE session = %s AND seq > %s ORDER BY seq",
            (self._key, cursors.get(box, 0)),
        )
        return [(f"{box}:{seq}", bytes(body)) for seq, body in rows]
