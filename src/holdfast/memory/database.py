"""The history of a memory store: one SQLite file, private to the user.

It holds every text that ever existed, every commit with author, reason, before and after, which
text is current, what is on disk, how often each memory was used, and the search index. A commit is
one transaction, so a killed process leaves the old state or the new one. The Markdown files beside
it are written from here and survive its loss.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from holdfast.errors import StoreError
from holdfast.settings.files import private_directory

WAIT_SECONDS = 10.0
"""A commit takes milliseconds; a longer wait means that something is stuck."""
SCHEMA_VERSION = 1

DatabaseRow: TypeAlias = tuple[Any, ...]
"""A row as SQLite returns it; the caller knows the types of the columns."""

_SCHEMA = """
CREATE TABLE texts (sha TEXT PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE commits (
  id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, by TEXT NOT NULL, why TEXT NOT NULL,
  undoes INTEGER
);
CREATE TABLE changes (
  "commit" INTEGER NOT NULL, file TEXT NOT NULL, before TEXT, after TEXT, reason TEXT NOT NULL
);
CREATE INDEX changes_by_commit ON changes ("commit");
CREATE INDEX changes_by_file ON changes (file);
CREATE TABLE tree (
  id INTEGER PRIMARY KEY AUTOINCREMENT, file TEXT UNIQUE NOT NULL, sha TEXT NOT NULL,
  name TEXT NOT NULL, description TEXT NOT NULL, type TEXT NOT NULL,
  modified REAL NOT NULL, superseded_by TEXT NOT NULL
);
CREATE TABLE state (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE VIEW current AS
  SELECT file, sha FROM tree UNION ALL SELECT 'MEMORY.md', value FROM state WHERE key = 'index';
CREATE TABLE on_disk (file TEXT PRIMARY KEY, sha TEXT NOT NULL, size INTEGER, mtime_ns INTEGER);
CREATE TABLE uses (file TEXT PRIMARY KEY, count INTEGER NOT NULL, last REAL NOT NULL);
CREATE TABLE inbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, by TEXT NOT NULL, why TEXT NOT NULL,
  file TEXT NOT NULL, text TEXT NOT NULL, before TEXT, session TEXT NOT NULL,
  is_outside INTEGER NOT NULL, state TEXT NOT NULL
);
CREATE VIRTUAL TABLE words USING fts5(
  name, description, body, tokenize = 'porter unicode61 remove_diacritics 2'
);
"""


class Database:
    """An open history; reads see the last commit, writes are serialised."""

    def __init__(self, path: Path) -> None:
        self.path = path
        private_directory(path.parent)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        with self._errors_translated():
            self._sql = sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None)
            self._sql.execute("PRAGMA journal_mode = WAL")
            self._prepare()

    def _prepare(self) -> None:
        """Create the tables of a new file; refuse one that a newer version wrote."""
        with self.writing():
            version = self.one("PRAGMA user_version")[0]
            if version > SCHEMA_VERSION:
                raise StoreError(f"{self.path} was written by a newer version; update Holdfast")
            if version == 0:
                for statement in _SCHEMA.split(";\n"):
                    self._sql.execute(statement)
                self._sql.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def close(self) -> None:
        self._sql.close()

    def all(self, sql: str, *values: object) -> list[DatabaseRow]:
        with self._errors_translated():
            return self._sql.execute(sql, values).fetchall()

    def one(self, sql: str, *values: object) -> DatabaseRow:
        return self.all(sql, *values)[0]

    def insert(self, sql: str, *values: object) -> int:
        with self._errors_translated():
            return self._sql.execute(sql, values).lastrowid or 0

    @contextmanager
    def writing(self, *, is_lasting: bool = True) -> Iterator[None]:
        """Run the block as one transaction, rolled back on any error.

        Without `is_lasting` the result survives the process but perhaps not a power failure, and
        the commit does not wait for the disk.
        """
        with self._errors_translated():
            self._sql.execute(f"PRAGMA synchronous = {'FULL' if is_lasting else 'NORMAL'}")
            self._sql.execute("BEGIN IMMEDIATE")
        try:
            yield
            with self._errors_translated():
                self._sql.execute("COMMIT")
        except BaseException:
            if self._sql.in_transaction:
                self._sql.execute("ROLLBACK")
            raise

    @contextmanager
    def _errors_translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(
                f"{self.path} cannot be used: {error}; if it is damaged, move it away: a new history"
                " is started from the Markdown files beside it"
            ) from error
