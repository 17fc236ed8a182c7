"""The cost of every session in one SQLite file. Only changed sessions are read again.

The file can be deleted at any time. It is rebuilt when this package or its prices change. Sessions
whose files are gone remain, because the money was spent.
"""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
from msgspec import structs

from longhold.core.messages.usage import Tally
from longhold.core.models.prices import FILE as PRICES_FILE
from longhold.core.settings import home
from longhold.core.settings.private_files import PRIVATE_FILE, private_directory
from longhold.errors import StoreError
from longhold.insight.cost import SessionCall, SessionCalls, decode
from longhold.insight.session_files import (
    Advance,
    SessionFile,
    each_in_processes,
    index_path,
    processes_for,
)

VERSION = 7
NAME = "sessions.sqlite"
BUSY_SECONDS = 30.0

SUMMED = (*Tally.__struct_fields__, "hour_usd")
"""Columns that are summed over all calls except copies, so that a report reads few rows."""
SLOT_SECONDS = 900  # calls are summed by quarters of an hour, which add up to days in any time zone
LONG_SECONDS = 3_600  # idle time that outlasts every cache lifetime a user can choose

_CALL = tuple(name for name in SessionCall.__struct_fields__ if name != "tally")
_COLUMNS = (*_CALL, *Tally.__struct_fields__)
_SCHEMA = f"""
CREATE TABLE stamp (stamp TEXT);
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY, path TEXT UNIQUE, stamp TEXT, agent TEXT, session TEXT,
    directory TEXT, title TEXT, window_tokens INTEGER, turns INTEGER, compactions INTEGER,
    is_import INTEGER, problem TEXT, at_best_usd REAL
);
CREATE TABLE calls (
    file INTEGER REFERENCES sessions (id) ON DELETE CASCADE, is_copy INTEGER DEFAULT 0,
    {", ".join(_COLUMNS)}
);
CREATE TABLE sums (
    file INTEGER, slot INTEGER, model TEXT, source TEXT, cause TEXT, is_expected INTEGER,
    is_long INTEGER, {", ".join(SUMMED)}
);
CREATE INDEX of_file ON calls (file);
CREATE INDEX of_key ON calls (key);
"""
_INSERT = (
    f"INSERT INTO calls (file, {', '.join(_COLUMNS)}) VALUES (?, {', '.join('?' * len(_COLUMNS))})"
)
_REPEATED = "key IN (SELECT key FROM calls GROUP BY key HAVING count(*) > 1)"
_WITHIN = "calls JOIN sessions ON sessions.id = calls.file WHERE {scope}"
_FIRST = f"""
SELECT n FROM (
    SELECT calls.rowid AS n, row_number() OVER (PARTITION BY key ORDER BY is_import, calls.rowid) AS place
    FROM {_WITHIN}
) WHERE place = 1
"""
_MARK_COPIES = f"""
UPDATE calls SET is_copy = rowid NOT IN ({_FIRST.format(scope=_REPEATED)}) WHERE {_REPEATED}
"""
"""If a resumed session repeats its beginning, the calls belong to the file that was read first.
Calls of an imported session belong to the original file."""

_SUMMED_UP = f"""
SELECT file, cast(nullif(at, 0) / {SLOT_SECONDS} AS INTEGER) * {SLOT_SECONDS} AS slot, model,
    CASE WHEN source LIKE 'agent:%' THEN 'sub-agents' ELSE source END AS source, cause,
    is_expected, idle_seconds > {LONG_SECONDS} AS is_long,
    {", ".join(f"sum({name}) AS {name}" for name in SUMMED)}
FROM calls WHERE {{counted}} GROUP BY 1, 2, 3, 4, 5, 6, 7
"""
_SUMS = """
SELECT sums.*, date(slot, 'unixepoch', 'localtime') AS day, agent, session, directory, title, path
FROM {table} JOIN sessions ON sessions.id = sums.file
WHERE {scope} AND (day >= ? OR ? = '')
"""
_SUM_UP = "INSERT INTO sums " + _SUMMED_UP.format(counted="NOT is_copy")
_IS_ELSEWHERE = f"""
SELECT 1 FROM {_WITHIN} AND is_copy
AND key NOT IN (SELECT key FROM {_WITHIN} AND NOT is_copy) LIMIT 1
"""
_FIRST_WITHIN = f"calls.rowid IN ({_FIRST})"


@contextmanager
def open_index(path: Path | None = None) -> Iterator["SessionIndex"]:
    """Open the index at `path` or in the home directory. If that is not writable, use memory."""
    path = path or home() / NAME
    try:
        with closing(_connection_at(path)) as connection:
            yield SessionIndex(connection)
    except sqlite3.OperationalError as error:
        advice = "free some space, or set LONGHOLD_HOME to another directory"
        raise StoreError(f"{path}: {error}; {advice}") from error


class SessionIndex:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def stale(self, files: Sequence[SessionFile]) -> list[SessionFile]:
        known = {row["path"]: row["stamp"] for row in self.rows("SELECT path, stamp FROM sessions")}
        return [file for file in files if known.get(index_path(file.path)) != file.stamp]

    def refresh(
        self,
        files: Sequence[SessionFile],
        progress: Advance = lambda _: None,
        *,
        processes: int = 0,
    ) -> int:
        changed = self.stale(files)
        if not changed:
            return 0
        from longhold.insight.read_session import read_encoded  # because it loads every reader

        largest_first = sorted(changed, key=lambda file: -file.bytes)
        processes = processes or processes_for(changed)
        for file, encoded in each_in_processes(read_encoded, largest_first, processes):
            progress(file.bytes)
            found = decode(encoded)
            if found.problem and not file.path.exists():
                continue  # because a file was deleted while others were read
            with self._connection:
                self._put(file, found)
        self._sum_up()
        return len(changed)

    def find_limits(self, files: Sequence[SessionFile], progress: Advance = lambda _: None) -> None:
        """Compute the least that each session could have cost. This loads a tokenizer and reads
        every text, so reports do it only on request.
        """
        query = "SELECT path FROM sessions WHERE at_best_usd IS NULL AND problem = ''"
        unknown = {row["path"] for row in self.rows(query)}
        wanted = [file for file in files if index_path(file.path) in unknown]
        if not wanted:
            return
        from longhold.insight.replay.limit import read_limit

        for file, encoded in each_in_processes(read_limit, wanted, processes_for(wanted)):
            progress(file.bytes)
            with self._connection as connection:
                connection.execute(
                    "UPDATE sessions SET at_best_usd = ? WHERE path = ?",
                    (msgspec.msgpack.decode(encoded), index_path(file.path)),
                )

    def _sum_up(self) -> None:
        with self._connection as connection:
            connection.execute(_MARK_COPIES)
            connection.execute("DELETE FROM sums")
            connection.execute(_SUM_UP)

    def forget(self, paths: Iterable[Path]) -> None:
        with self._connection as connection:
            values = [(index_path(Path(os.path.realpath(path))),) for path in paths]
            connection.executemany("DELETE FROM sessions WHERE path = ?", values)
        self._sum_up()

    def rows(self, query: str, values: Sequence[object] = ()) -> list[sqlite3.Row]:
        return self._connection.execute(query, values).fetchall()

    def sums(self, scope: str, values: Sequence[object], since: str) -> list[sqlite3.Row]:
        """Add up the calls of some sessions since a day. A call in several sessions counts once."""
        table, inner = "sums", list[object]()
        if self.rows(_IS_ELSEWHERE.format(scope=scope), [*values, *values]):
            counted = _FIRST_WITHIN.format(scope=scope)
            table, inner = f"({_SUMMED_UP.format(counted=counted)}) AS sums", list(values)
        query = _SUMS.format(table=table, scope=scope)
        return self.rows(query, [*inner, *values, since, since])

    def _put(self, file: SessionFile, found: SessionCalls) -> None:
        execute = self._connection.execute
        execute("DELETE FROM sessions WHERE path = ?", (index_path(file.path),))
        put = execute(
            "INSERT INTO sessions (path, stamp, agent, session, directory, title, window_tokens,"
            " turns, compactions, is_import, problem) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(index_path(file.path), file.stamp, found.agent, found.session, found.directory),
                *(found.title, found.window_tokens, found.turns, found.compactions),
                *(found.is_import, found.problem),
            ),
        )
        self._connection.executemany(
            _INSERT,
            (
                (
                    put.lastrowid,
                    *(getattr(call, name) for name in _CALL),
                    *structs.astuple(call.tally),
                )
                for call in found.calls
            ),
        )


class _Connection(sqlite3.Connection):
    def __init__(self, path: Path | str, *, timeout: float) -> None:
        super().__init__(path, timeout=timeout)
        self.row_factory = sqlite3.Row
        self.execute("PRAGMA foreign_keys = ON")


def _connection_at(path: Path) -> sqlite3.Connection:
    try:
        return _connect(path)
    except OSError:
        connection = _Connection(":memory:", timeout=BUSY_SECONDS)
        _begin(connection)
        return connection


def _connect(path: Path) -> sqlite3.Connection:
    private_directory(path.parent)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE_FILE))
    connection = _Connection(path, timeout=BUSY_SECONDS)
    try:
        if _stamp_in(connection) != _stamp():
            connection.close()
            path.unlink(missing_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE_FILE))
            connection = _Connection(path, timeout=BUSY_SECONDS)
            _begin(connection)
        connection.execute("PRAGMA synchronous = OFF")  # because it can be rebuilt
    except BaseException:
        connection.close()
        raise
    return connection


def _begin(connection: sqlite3.Connection) -> None:
    connection.executescript(_SCHEMA)
    with connection:
        connection.execute("INSERT INTO stamp VALUES (?)", (_stamp(),))


def _stamp_in(connection: sqlite3.Connection) -> str:
    try:
        found = connection.execute("SELECT stamp FROM stamp").fetchone()
    except sqlite3.DatabaseError:
        return ""
    return str(found[0]) if found else ""


def _stamp() -> str:
    prices = home() / PRICES_FILE
    stated = prices.stat().st_mtime_ns if prices.exists() else 0
    return f"{VERSION} {_version('longhold')} {_version('genai-prices')} {stated}"


def _version(package: str) -> str:
    from importlib import metadata  # because it is slow to load and not needed for a search

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "none"


def select_below(roots: Iterable[Path]) -> tuple[str, list[str]]:
    tests: list[str] = []
    values: list[str] = []
    for root in roots:
        place = index_path(Path(os.path.realpath(root)))
        tests.append("(path = ? OR substr(path, 1, ?) = ?)")
        values += [place, str(len(place) + 1), f"{place}{os.sep}"]
    return f"({' OR '.join(tests)})" if tests else "1", values
