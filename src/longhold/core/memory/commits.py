"""The commits of a memory store, in one private SQLite file.

The file keeps every version of every text. A commit is one transaction, so a killed process leaves
the old state or the new one. The Markdown files are written from this file and survive its loss.
"""

import difflib
import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from longhold.core.log.shared import MemoryBackend
from longhold.core.memory.memory import (
    MemoryBusy,
    MemoryConflict,
    MemoryRefused,
    NoSuchMemory,
    parse,
)
from longhold.core.memory.paths import INDEX, name_looks
from longhold.core.messages.words import split_unspaced
from longhold.core.settings.private_files import private_directory
from longhold.errors import StoreError

BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
SCHEMA_VERSION = 1

DatabaseRow: TypeAlias = tuple[Any, ...]

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
    def __init__(self, path: Path, *, wait_seconds: float) -> None:
        """Open or create the file. Calls wait up to `wait_seconds` while another process writes."""
        self.path = path
        private_directory(path.parent)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        with self._translate_errors():
            self._sql = sqlite3.connect(path, timeout=wait_seconds, isolation_level=None)
            try:
                self._sql.execute("PRAGMA journal_mode = WAL")
                self._prepare()
            except BaseException:
                self._sql.close()
                raise

    def _prepare(self) -> None:
        """Create the tables of a new file. Refuse a file from a newer version."""
        version = self._version()
        if version > SCHEMA_VERSION:
            raise StoreError(f"{self.path} was written by a newer version; update Longhold")
        if version == SCHEMA_VERSION:
            return
        with self.writing():
            if self._version() == 0:  # no other process was faster
                for statement in _SCHEMA.split(";\n"):
                    self._sql.execute(statement)
                self._sql.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _version(self) -> int:
        return int(self.one("PRAGMA user_version")[0])

    def close(self) -> None:
        self._sql.close()

    def all(self, sql: str, *values: object) -> list[DatabaseRow]:
        with self._translate_errors():
            return self._sql.execute(sql, values).fetchall()

    def one(self, sql: str, *values: object) -> DatabaseRow:
        return self.all(sql, *values)[0]

    def insert(self, sql: str, *values: object) -> int:
        with self._translate_errors():
            return self._sql.execute(sql, values).lastrowid or 0

    @contextmanager
    def writing(self, *, is_lasting: bool = True) -> Iterator[None]:
        """Run one transaction or join the current one. Any error rolls it back.

        Without `is_lasting` the commit does not wait for the disk, so a power failure may lose it.
        """
        if self._sql.in_transaction:
            yield
            return
        with self._translate_errors():
            self._sql.execute(f"PRAGMA synchronous = {'FULL' if is_lasting else 'NORMAL'}")
            self._sql.execute("BEGIN IMMEDIATE")
        try:
            yield
            with self._translate_errors():
                self._sql.execute("COMMIT")
        except BaseException:
            if self._sql.in_transaction:
                self._sql.execute("ROLLBACK")
            raise

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in BUSY:
                raise MemoryBusy(
                    f"{self.path} is being written by another process; try again"
                ) from error
            raise StoreError(
                f"{self.path} cannot be used: {error}; if it is damaged, move it away: a new history"
                " is started from the Markdown files next to it"
            ) from error


CommitAuthor: TypeAlias = Literal["agent", "extraction", "dream", "person", "repository"]

_COMMITS = "SELECT id, at, by, why, undoes FROM commits"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChange:
    file: str
    text: str | None
    """The new content. None removes the memory and leaves a tombstone."""
    expected: str = ""
    """The version that this change replaces, or ''. Any other current version is a conflict."""
    reason: str = ""
    """The reason, which is required for removals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedChange:
    """One written or removed file with its versions before and after. '' means no file."""

    file: str
    before: str
    after: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    id: int
    at: float
    by: CommitAuthor
    why: str
    changes: tuple[CommittedChange, ...]
    undoes: int = 0


@dataclass(frozen=True, slots=True)
class Tombstone:
    file: str
    version: str
    reason: str
    by: CommitAuthor
    at: float
    commit: int
    evidence: tuple[str, ...]


class CommitHistory:
    def __init__(self, database: Database) -> None:
        self._sql = database

    @property
    def head(self) -> int:
        last: int | None = self._sql.one("SELECT max(id) FROM commits")[0]
        return last or 0

    def log(self, limit: int = -1, *, file: str = "") -> list[Commit]:
        chosen = ' WHERE id IN (SELECT "commit" FROM changes WHERE file = ?)' if file else ""
        values = (file, limit) if file else (limit,)
        rows = self._sql.all(f"{_COMMITS}{chosen} ORDER BY id DESC LIMIT ?", *values)
        return [self._commit(row) for row in rows]

    def commit(self, id: int) -> Commit:
        rows = self._sql.all(f"{_COMMITS} WHERE id = ?", id)
        if not rows:
            raise NoSuchMemory(f"there is no commit {id}; `longhold memory log` lists them")
        return self._commit(rows[0])

    def version(self, file: str) -> str:
        rows = self._sql.all("SELECT sha FROM tree WHERE file = ?", file)
        return rows[0][0] if rows else ""

    def text(self, version: str) -> str:
        rows = self._sql.all("SELECT text FROM texts WHERE sha = ?", version)
        return rows[0][0] if rows else ""

    def diff(self, changes: Sequence[CommittedChange]) -> str:
        return "".join(
            diff(one.file, self.text(one.before), self.text(one.after)) for one in changes
        )

    def tombstones(self) -> list[Tombstone]:
        """Return the removed memories that were not restored, newest first."""
        rows = self._sql.all(
            "SELECT c.file, c.before, c.reason, k.by, k.at, k.id, t.text FROM changes c"
            ' JOIN commits k ON k.id = c."commit" JOIN texts t ON t.sha = c.before'
            " WHERE c.after IS NULL AND c.file != ? AND c.file NOT IN (SELECT file FROM tree)"
            ' AND c."commit" = (SELECT max("commit") FROM changes m WHERE m.file = c.file)'
            " ORDER BY k.id DESC, c.file",
            INDEX,
        )
        return [
            Tombstone(file, version, reason, by, at, id, parse(file, text).evidence)
            for file, version, reason, by, at, id, text in rows
        ]

    def list_vetoed(self) -> frozenset[str]:
        """Return the unchanged files in which the user undid a model's change."""
        rows = self._sql.all(
            "SELECT c.file FROM commits undo JOIN commits k"
            " ON k.id = undo.undoes AND k.by != 'person'"
            ' JOIN changes c ON c."commit" = undo.id JOIN tree t'
            " ON t.file = c.file AND t.sha = c.after"
        )
        return frozenset(row[0] for row in rows)

    def _commit(self, row: DatabaseRow) -> Commit:
        id, at, by, why, undoes = row
        rows = self._sql.all(
            'SELECT file, before, after, reason FROM changes WHERE "commit" = ? ORDER BY rowid', id
        )
        changes = tuple(
            CommittedChange(file=file, before=before or "", after=after or "", reason=reason)
            for file, before, after, reason in rows
        )
        return Commit(id=id, at=at, by=by, why=why, changes=changes, undoes=undoes or 0)


def diff(file: str, before: str, after: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(keepends=True),
        after.splitlines(keepends=True),
        f"before/{file}" if before else "(none)",
        f"after/{file}" if after else "(none)",
        n=2,
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class CommitWriter:
    def __init__(self, database: Database, at: float) -> None:
        self._sql = database
        self._version = CommitHistory(database).version
        self._at = at
        self.id = 0

    def due(self, changes: Sequence[MemoryChange]) -> list[MemoryChange]:
        """Return the changes that have an effect. Raise if one is based on an old version."""
        chosen: list[MemoryChange] = []
        for change in changes:
            current = self._version(change.file)
            wanted = "" if change.text is None else sha(change.text)
            if current == wanted:
                continue
            if current != change.expected:
                raise MemoryConflict(self._conflict_message(change.file))
            if not current:
                self.check_new(change.file)
            chosen.append(change)
        return chosen

    def begin(self, by: CommitAuthor, why: str, undoes: int) -> None:
        self.id = self._sql.insert(
            "INSERT INTO commits (at, by, why, undoes) VALUES (?, ?, ?, ?)",
            *(self._at, by, why, undoes or None),
        )

    def put(self, change: MemoryChange) -> None:
        reason = change.reason if change.text is None else ""
        self._note(change.file, change.text, reason)
        self._sql.all(
            "DELETE FROM words WHERE rowid = (SELECT id FROM tree WHERE file = ?)", change.file
        )
        if change.text is None:
            self._sql.all("DELETE FROM tree WHERE file = ?", change.file)
        else:
            self._file(change.file, change.text)

    def _file(self, file: str, text: str) -> None:
        memory = parse(file, text, at=self._at)
        self._sql.all(
            "INSERT INTO tree (file, sha, name, description, type, modified, superseded_by)"
            " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (file) DO UPDATE SET sha = excluded.sha,"
            " name = excluded.name, description = excluded.description, type = excluded.type,"
            " modified = excluded.modified, superseded_by = excluded.superseded_by",
            *(file, sha(text), memory.name, memory.description),
            *(memory.type, memory.modified, memory.superseded_by),
        )
        self._sql.all(
            "INSERT INTO words (rowid, name, description, body)"
            " SELECT id, ?, ?, ? FROM tree WHERE file = ?",
            *map(split_unspaced, (memory.name, memory.description, memory.body)),
            file,
        )

    def _note(self, file: str, text: str | None, reason: str) -> None:
        before = self._version(file) or None
        after = None if text is None else sha(text)
        if text is not None:
            self._sql.all("INSERT OR IGNORE INTO texts VALUES (?, ?)", after, text)
        self._sql.all(
            "INSERT INTO changes VALUES (?, ?, ?, ?, ?)", self.id, file, before, after, reason
        )

    def check_new(self, file: str) -> None:
        """Raise if people or file systems could confuse a name with an existing one."""
        for look in name_looks(file):
            if (other := self._looks.setdefault(look, file)) != file:
                raise MemoryRefused(
                    f"{file} differs from {other} only in case or in letters that look alike;"
                    " use one of the two names"
                )

    @cached_property
    def _looks(self) -> dict[str, str]:
        files = self._sql.all("SELECT file FROM tree")
        return {look: file for (file,) in files for look in name_looks(file)}

    def _conflict_message(self, file: str) -> str:
        rows = self._sql.all(
            'SELECT id, by FROM commits WHERE id = (SELECT max("commit") FROM changes WHERE file = ?)',
            file,
        )
        culprit = f" by {rows[0][1]} in commit {rows[0][0]}" if rows else ""
        return f"{file} was changed{culprit} since it was read; read it again, then change it"


class SharedCommit(Struct, frozen=True, kw_only=True, omit_defaults=True):
    at: float
    by: CommitAuthor
    why: str
    changes: tuple[MemoryChange, ...]
    undoes: int = 0


class _NumberTaken(Exception):
    pass


@contextmanager
def _explain_failure() -> Iterator[None]:
    """Convert the errors of a plug-in to `StoreError`. Memory then works with its own copy."""
    try:
        yield
    except (StoreError, _NumberTaken):
        raise
    except Exception as error:
        raise StoreError(f"shared memories: {type(error).__name__}: {error}") from error


class Replica:
    """A copy of commits that several nodes share.

    A node pulls new commits before it adds a commit under the next number. If another node has
    taken the number, the node pulls and tries again.
    """

    def __init__(self, database: Database, commits: MemoryBackend | None) -> None:
        """`commits` are the shared commits, or None for a single node."""
        self._database = database
        self._history = CommitHistory(database)
        self._commits = commits

    def pull(self) -> bool:
        """Apply the commits of other nodes, and return whether there were any."""
        if self._commits is None:
            return False
        with _explain_failure():
            found = self._commits.after(self._history.head)
            new = [(n, msgspec.json.decode(data, type=SharedCommit)) for n, data in found]
        if not new:
            return False
        with self._database.writing():
            known = self._history.head
            for number, commit in new:
                if number > known:
                    self._apply(number, commit)
        return True

    def record_commit(self, record: Callable[[], int]) -> int:
        """Record and publish a commit in one transaction. Return its number, or 0 if empty."""
        while True:
            self.pull()
            with suppress(_NumberTaken), self._database.writing():
                id = record()
                self._push(id)
                return id

    def _push(self, id: int) -> None:
        if self._commits is None or not id:
            return
        made = self._history.commit(id)
        changes = tuple(
            MemoryChange(
                file=one.file,
                text=self._history.text(one.after) if one.after else None,
                reason=one.reason,
            )
            for one in made.changes
        )
        shared = SharedCommit(
            at=made.at, by=made.by, why=made.why, undoes=made.undoes, changes=changes
        )
        with _explain_failure():
            if not self._commits.add(id, msgspec.json.encode(shared)):
                raise _NumberTaken

    def _apply(self, number: int, commit: SharedCommit) -> None:
        writer = CommitWriter(self._database, commit.at)
        writer.begin(commit.by, commit.why, commit.undoes)
        if writer.id != number:
            raise StoreError(
                f"{self._database.path} ends at commit {writer.id - 1} and lacks those before {number}; "
                "move the file away, and it is fetched again from the store"
            )
        for change in commit.changes:
            if change.file != INDEX:  # earlier versions shared the index
                writer.put(change)
