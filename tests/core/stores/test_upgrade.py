"""A database for years: it is migrated and partitioned while an older version writes to it."""

import threading
from pathlib import Path

import pytest

from lazy import LazyModule, needs
from longhold.core.log.entries import Said
from longhold.core.messages import Text
from longhold.errors import LogLocked

needs("psycopg")
pytestmark = pytest.mark.slow
psycopg = LazyModule("psycopg")

from longhold.core.log.stores.postgres import PostgresStore  # noqa: E402
from longhold.core.log.stores.postgres.schema import MIGRATIONS, migrate  # noqa: E402
from partitions import partition_statements  # noqa: E402
from postgres_server import PostgresServer  # noqa: E402

OLD = 3
"""Tables of version 0.2.0, whose statements these are."""
TAKE = """
UPDATE longhold.sessions s SET fence = fence + 1, holder = %(me)s
WHERE tenant = '' AND id = %(id)s AND (holder IS NULL OR holder = %(me)s OR NOT
EXISTS (SELECT 1 FROM longhold.holders h WHERE h.id = s.holder AND h.until > clock_timestamp()))
RETURNING key, fence, last_n
"""
APPEND = """
WITH moved AS (
    UPDATE longhold.sessions SET last_n = %(n)s, bytes = bytes + 1, modified = clock_timestamp()
    WHERE key = %(key)s AND fence = %(fence)s AND last_n = %(n)s - 1 RETURNING key
)
INSERT INTO longhold.entries (session, n, body) SELECT key, %(n)s, %(body)s FROM moved RETURNING n
"""
ME = "00000000-0000-0000-0000-000000000007"


class OldWriter(threading.Thread):
    """Takes two sessions in turn, appends to each and releases it, as version 0.2.0 does."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url, self._is_over = url, threading.Event()
        self.written = {"old": 0, "shared": 0}
        self.missed = 0

    def run(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(
                "INSERT INTO longhold.holders VALUES (%s, 'old', now() + interval '1 h')", (ME,)
            )
            while not self._is_over.is_set():
                for id in self.written:
                    self._append(connection, id)

    def _append(self, connection, id: str) -> None:
        row = connection.execute(TAKE, {"me": ME, "id": id}).fetchone()
        if row is None:
            self.missed += 1
            return
        key, fence, last_n = row
        body = f'{{"entry":"said","n":{last_n + 1},"content":[{{"type":"text","text":"old"}}]}}'
        given = {"key": key, "fence": fence, "n": last_n + 1, "body": body.encode()}
        [n] = connection.execute(APPEND, given).fetchone()
        assert n == last_n + 1
        self.written[id] += 1
        connection.execute("UPDATE longhold.sessions SET holder = NULL WHERE key = %s", (key,))

    def stop(self) -> None:
        self._is_over.set()
        self.join(30)


def append(store, id: str, text: str) -> int:
    """Append as the present version does; return 0 while the old one holds the session."""
    try:
        with store.open(id) as log:
            return log.append(Said(content=(Text(text=text),))).n
    except LogLocked:
        return 0


def appended(store, id: str, times: int) -> int:
    count = 0
    while count < times:
        count += bool(append(store, id, "new"))
    return count


@pytest.fixture
def old_database():
    """A server with the tables of version 0.2.0 and two sessions."""
    server = PostgresServer()
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA longhold")
        connection.execute("CREATE TABLE longhold.versions (version int, at timestamptz)")
        for number, text in enumerate(MIGRATIONS[:OLD], 1):
            connection.execute(text)
            connection.execute("INSERT INTO longhold.versions VALUES (%s, now())", (number,))
        for id in ("old", "shared"):
            header = f'{{"session":"{id}","created":1.0,"directory":"/p"}}'.encode()
            query = "INSERT INTO longhold.sessions (tenant, id, project, header) VALUES ('', %s, '', %s)"
            connection.execute(query, (id, header))
    yield server.url
    server.stop()


def test_an_older_version_writes_while_the_database_is_migrated_and_partitioned(old_database):
    old = OldWriter(old_database)
    old.start()
    try:
        with psycopg.connect(old_database, autocommit=True) as connection:
            assert migrate(connection) == len(MIGRATIONS) - OLD
        store = PostgresStore(old_database)
        new = appended(store, "shared", 20)
        for statement in partition_statements():
            with psycopg.connect(old_database, autocommit=True) as connection:
                connection.execute(statement)
        new += appended(store, "shared", 20)
    finally:
        old.stop()
    for id, more in (("old", 0), ("shared", new)):
        loaded = store.load(id)
        assert [one.n for one in loaded.entries] == [*range(1, old.written[id] + more + 1)]
        assert not loaded.damage
    assert old.written["old"] > 40
    check_partitions(store, old_database)
    store.close()


def check_partitions(store, url: str) -> None:
    """A later session is in another partition, where rows have the same places as in the first."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER SEQUENCE longhold.sessions_key_seq RESTART 1000000")
    with store.create(directory=Path("/p"), session="later") as log:
        for n in range(5):
            log.append(Said(content=(Text(text=f"{n} needle"),)))
    with psycopg.connect(url) as connection:
        query = (
            "SELECT tableoid::regclass::text, ctid::text FROM longhold.entries WHERE ctid = '(0,1)'"
        )
        assert len(connection.execute(query).fetchall()) == 2
    before = [one.content[0].text for one in store.load("old").entries]
    assert store.redact("later", "needle") == 5
    assert [one.content[0].text for one in store.load("old").entries] == before
    assert all("needle" not in one.content[0].text for one in store.load("later").entries)
    store.delete("later")
    assert store.load("old").entries
