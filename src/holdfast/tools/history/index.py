"""Full-text search over a log with SQLite's FTS5; the index can be thrown away at any time.

The file lies in the session's directory and holds no text, only where each word stands. It is
private, stamped with its version and session, and rebuilt when it is damaged, missing or
another's; where no file can be kept, the index lives in memory. Calls of the History tool are
not indexed: they contain the words searched for and would only find themselves.
"""

import os
import re
import sqlite3
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from operator import attrgetter
from pathlib import Path

from msgspec import structs

from holdfast.log.entries import AnyEntry, Replied, Swept
from holdfast.messages import ToolUse
from holdfast.settings.files import private_directory
from holdfast.tools.describe import HISTORY
from holdfast.tools.history.catalogue import Catalogue
from holdfast.tools.history.records import Record

VERSION = 1
"""What this module builds; an index of another version is rebuilt."""

BUSY_SECONDS = 2.0
"""How long another process may be at it before we do without the file."""

NAME = "history.sqlite"

_SCHEMA = (
    "CREATE TABLE stamp (version INTEGER, session TEXT, upto INTEGER)",
    "CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='unicode61')",
)
_NOT_NOW = frozenset(
    getattr(sqlite3, f"SQLITE_{name}")
    for name in ("BUSY", "LOCKED", "READONLY", "IOERR", "FULL", "CANTOPEN")
)
"""What says nothing about the index itself."""
_WORDS = re.compile(r'"([^"]*)"|(\S+)')


class Index:
    """An FTS5 index of texts by number. Not thread-safe."""

    def __init__(self, directory: Path | None, session: str) -> None:
        self._session = session
        self._file = directory / NAME if directory is not None else None
        self._connection = self._open()

    @property
    def upto(self) -> int:
        """The number of the last entry that is in it."""
        row = self._connection.execute("SELECT upto FROM stamp").fetchone()
        return int(row[0]) if row else 0

    def add(self, texts: Iterable[tuple[int, str]], upto: int) -> None:
        """Add texts by number, all or none; what another process has added is left alone."""
        with self._connection as connection:
            connection.execute("BEGIN IMMEDIATE")
            known = self.upto
            connection.executemany(
                "INSERT INTO words (rowid, text) VALUES (?, ?)",
                ((n, text) for n, text in texts if n > known),
            )
            connection.execute("UPDATE stamp SET upto = max(upto, ?)", (upto,))

    def search(self, query: str) -> list[int]:
        """Find texts with all of these words, or with any if none has all; best first."""
        words = quoted(query)
        for joint in (" AND ", " OR ") if len(words) > 1 else (" ",):
            rows = self._connection.execute(
                "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank, rowid DESC",
                (joint.join(words),),
            ).fetchall()
            if rows:
                return [int(row[0]) for row in rows]
        return []

    def renew(self) -> None:
        self.close()
        if self._file is not None and not self._file.parent.is_symlink():
            with suppress(OSError):
                self._file.unlink(missing_ok=True)
        self._connection = self._open()

    def mend(self, error: sqlite3.Error) -> None:
        """Recover from an error: continue in memory if the disk is to blame, else with a new file."""
        if _is_the_disks(error):
            self.close()
            self._file = None
        self.renew()

    def close(self) -> None:
        with suppress(sqlite3.Error):
            self._connection.close()

    def _open(self) -> sqlite3.Connection:
        """Open the file, or a new one in its place, or one in memory if the disk refuses."""
        if self._file is None or self._file.parent.is_symlink():
            return self._check(_connect(":memory:"))
        for _ in range(2):
            try:
                return self._check(_connect_file(self._file))
            except (sqlite3.Error, OSError) as error:
                if _is_the_disks(error):
                    break  # in use by another process, or forbidden: not ours to remove
                with suppress(OSError):
                    self._file.unlink(missing_ok=True)
        return self._check(_connect(":memory:"))

    def _check(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        """Initialise an empty index; refuse a file that is some other database."""
        try:
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
            if not tables:
                self._begin(connection)
            elif not {"stamp", "words"} <= set(tables):
                raise sqlite3.DatabaseError("an index of another make")
            row = connection.execute("SELECT version, session FROM stamp").fetchone()
            if row != (VERSION, self._session):
                raise sqlite3.DatabaseError("an index of something else")
        except BaseException:
            connection.close()
            raise
        return connection

    def _begin(self, connection: sqlite3.Connection) -> None:
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA:
                connection.execute(statement)
            connection.execute("INSERT INTO stamp VALUES (?, ?, 0)", (VERSION, self._session))


def _is_the_disks(error: Exception) -> bool:
    """Return whether the disk is to blame rather than the file's content."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in _NOT_NOW or isinstance(error, PermissionError)


def quoted(query: str) -> list[str]:
    """Write a query's words and "phrases" in FTS5 syntax; a word also matches as a prefix."""
    found = []
    for phrase, word in _WORDS.findall(query):
        text = phrase or word.strip('"')
        if re.search(r"\w", text):
            plain = '"' + text.replace('"', '""') + '"'
            found.append(plain if phrase else f"{plain} *")
    return found


def _connect_file(file: Path) -> sqlite3.Connection:
    """Open a plain file, private to the user; a link in its place is an error."""
    private_directory(file.parent)
    os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600))
    return _connect(str(file))


def _connect(place: str) -> sqlite3.Connection:
    """Connect without a journal on disk: a crash costs an index that is rebuilt, never a log."""
    connection = sqlite3.connect(
        place, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA journal_mode = MEMORY")
    connection.execute("PRAGMA synchronous = OFF")
    return connection


INDEX_TRIES = 3
"""As it is, built anew, and in memory; past that only the text itself is looked through."""


class WordSearch:
    def __init__(
        self,
        directory: Path | None,
        session: str,
        *,
        catalogue: Catalogue,
        read: Callable[[AnyEntry], Record | None],
        limit_chars: int,
    ) -> None:
        self._directory, self._session = directory, session
        self._catalogue = catalogue
        self._read = read
        self._limit_chars = limit_chars
        self._index: Index | None = None

    def find(self, entries: Sequence[AnyEntry], query: str) -> list[int]:
        """Find entries by words, the best first; else by the query as it stands, newest first."""
        return self._indexed(entries, query) or self._scanned(entries, query)

    def close(self) -> None:
        if self._index is not None:
            self._index.close()
        self._index = None

    def _indexed(self, entries: Sequence[AnyEntry], query: str) -> list[int]:
        index = self._index = self._index or Index(self._directory, self._session)
        for _ in range(INDEX_TRIES):
            try:
                self._extend(index, entries)
                return index.search(query)
            except sqlite3.Error as error:
                index.mend(error)
        return []

    def _extend(self, index: Index, entries: Sequence[AnyEntry]) -> None:
        upto = index.upto
        fresh = entries[bisect_right(entries, upto, key=attrgetter("n")) :]
        if upto and any(isinstance(entry, Swept) for entry in fresh):
            index.renew()  # what was removed is not to be found by its words either
            fresh = entries
        if fresh:
            index.add(self._texts(fresh), fresh[-1].n)

    def _texts(self, entries: Iterable[AnyEntry]) -> Iterator[tuple[int, str]]:
        for entry in entries:
            call = self._catalogue.call_of(entry)
            if call is not None and call.use.name == HISTORY:
                continue
            record = self._read(_without_questions(entry))
            if record is not None and record.text:
                yield entry.n, record.text[: self._limit_chars]

    def _scanned(self, entries: Iterable[AnyEntry], query: str) -> list[int]:
        """Search for the query as it stands: for scripts without spaces, and for parts of words."""
        wanted = query.strip().strip('"').casefold()
        found = [n for n, text in self._texts(entries) if wanted in text.casefold()]
        return found[::-1]


def _without_questions(entry: AnyEntry) -> AnyEntry:
    if not isinstance(entry, Replied):
        return entry
    kept = tuple(b for b in entry.content if not (isinstance(b, ToolUse) and b.name == HISTORY))
    return entry if len(kept) == len(entry.content) else structs.replace(entry, content=kept)
