"""Full-text search over a log with SQLite FTS5. The index can be deleted at any time.

The index contains passages of about 1,000 characters, so that a word counts equally in long and
short results. The file contains no text and is rebuilt if damaged. Calls of the History tool are
not indexed, because they repeat the search words.
"""

import os
import sqlite3
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate
from math import log
from operator import attrgetter
from pathlib import Path

from longhold.core.log.entries import AnyEntry, Swept
from longhold.core.messages.words import name_parts, unspaced_words
from longhold.core.settings.private_files import open_flags, private_directory
from longhold.core.tools.describe import HISTORY
from longhold.core.tools.history.catalogue import Catalogue
from longhold.core.tools.history.pages import passage_at, passages
from longhold.core.tools.history.question import (
    PASSAGE_BITS,
    HistoryQuestion,
    PassageMatch,
    TermRows,
    rank,
)
from longhold.core.tools.history.records import Searchable

VERSION = 3

BUSY_SECONDS = 2.0
"""Seconds to wait for another process before using an index in memory."""

NAME = "history.sqlite"

READ_PASSAGES = 10_000
"""Maximum number of ranked matches, which limits the time. The commonest words are dropped."""
LEAST_WEIGHT = 0.1
"""Weight of a word that is in half of all passages or more."""

_SCHEMA = (
    "CREATE TABLE stamp (version INTEGER, session TEXT, upto INTEGER, passages INTEGER)",
    "CREATE VIRTUAL TABLE words USING fts5(text, names, content='', tokenize='porter unicode61')",
)
_NOT_NOW = (sqlite3.OperationalError, PermissionError)
"""Errors of the disk or another process. Other errors indicate a damaged index."""


class Index:
    """An FTS5 index of texts by number. It is not thread-safe."""

    def __init__(self, directory: Path | None, session: str) -> None:
        self._session = session
        self._file = directory / NAME if directory is not None else None
        self._connection = self._open()

    @property
    def upto(self) -> int:
        row = self._connection.execute("SELECT upto FROM stamp").fetchone()
        return int(row[0]) if row else 0

    def add(self, texts: Iterable[tuple[int, str, str]], upto: int) -> None:
        """Add (number, text, names) in one transaction, except those another process added."""
        with self._connection as connection:
            connection.execute("BEGIN IMMEDIATE")
            known = self.upto
            self._insert((each for each in texts if each[0] > known), upto)

    def _insert(self, texts: Iterable[tuple[int, str, str]], upto: int) -> None:
        added = self._connection.executemany(
            "INSERT INTO words (rowid, text, names) VALUES (?, ?, ?)",
            (
                (n << PASSAGE_BITS | i, part, f"{names} {name_parts(part)} {unspaced_words(part)}")
                for n, text, names in texts
                for i, (start, stop) in enumerate(passages(text))
                for part in [text[start:stop]]
            ),
        )
        self._connection.execute(
            "UPDATE stamp SET upto = max(upto, ?), passages = passages + ?",
            (upto, max(0, added.rowcount)),
        )

    def search(self, question: HistoryQuestion) -> tuple[list[TermRows], set[int] | None]:
        """Return the rows of each word, and the records with all phrases, if there are any."""
        phrases = [_quote(phrase) for phrase in question.phrases]
        found = self._find_rarest(question.words)
        required = [self._rows(phrase) for phrase in phrases]
        having = [{row >> PASSAGE_BITS for row in rows} for rows in required]
        terms = [
            TermRows(weight=self.weigh(len(rows)), rows=rows)
            for rows in (*found, *required)
            if rows
        ]
        return terms, set.intersection(*having) if having else None

    def _find_rarest(self, words: Iterable[str]) -> list[list[int]]:
        """Return the rows of the rarest words. A missing word is searched as a prefix."""
        quoted = map(_quote, words)
        found = [self._rows(word) or self._rows(f"{word} *") for word in quoted]
        found.sort(key=len)
        sums = accumulate(map(len, found))
        return [
            rows
            for i, (rows, read) in enumerate(zip(found, sums, strict=True))
            if not i or read <= READ_PASSAGES
        ]

    def find_text(self, text: str) -> list[int]:
        """Return the rows that contain this text literally, but not as part of a name."""
        return self._rows(f"text : {_quote(text)}")

    def weigh(self, count: int) -> float:
        total: int = self._connection.execute("SELECT passages FROM stamp").fetchone()[0]
        return max(LEAST_WEIGHT, log((total - count + 0.5) / (count + 0.5)))

    def _rows(self, term: str) -> list[int]:
        newest = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?"
        return [row for (row,) in self._connection.execute(newest, (term, READ_PASSAGES))]

    def renew(self) -> None:
        self.close()
        if self._file is not None and not self._file.parent.is_symlink():
            with suppress(OSError):
                self._file.unlink(missing_ok=True)
        self._connection = self._open()

    def mend(self, error: sqlite3.Error) -> None:
        """Recover from an error: continue in memory after a disk failure, else in a new file."""
        if isinstance(error, _NOT_NOW):
            self.close()
            self._file = None
        self.renew()

    def close(self) -> None:
        with suppress(sqlite3.Error):
            self._connection.close()

    def __del__(self) -> None:
        if hasattr(self, "_connection"):
            self.close()

    def _open(self) -> sqlite3.Connection:
        """Open the file. Replace a damaged file, or use memory if the file cannot be opened."""
        if self._file is None or self._file.parent.is_symlink():
            return self._check(_connect(":memory:"))
        for _ in range(2):
            try:
                private_directory(self._file.parent)
                flags = open_flags("O_RDWR", "O_CREAT", "O_NOFOLLOW")
                os.close(os.open(self._file, flags, 0o600))
                return self._check(_connect(str(self._file)))
            except (sqlite3.Error, OSError) as error:
                if isinstance(error, _NOT_NOW):
                    break  # another process uses it, or access is forbidden
                with suppress(OSError):
                    self._file.unlink(missing_ok=True)
        return self._check(_connect(":memory:"))

    def _check(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        """Initialise an empty index, or reject another database. After a crash it is rebuilt."""
        try:
            connection.execute("PRAGMA journal_mode = MEMORY")
            connection.execute("PRAGMA synchronous = OFF")
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
            if not tables:
                self._begin(connection)
            elif not {"stamp", "words"} <= set(tables):
                raise sqlite3.DatabaseError("the index has another format")
            row = connection.execute("SELECT version, session FROM stamp").fetchone()
            if row != (VERSION, self._session):
                raise sqlite3.DatabaseError("the index belongs to another session")
        except BaseException:
            connection.close()
            raise
        return connection

    def _begin(self, connection: sqlite3.Connection) -> None:
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            for statement in _SCHEMA:
                connection.execute(statement)
            connection.execute("INSERT INTO stamp VALUES (?, ?, 0, 0)", (VERSION, self._session))


def _quote(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


_connect = partial(
    sqlite3.connect, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
)

INDEX_TRIES = 3
"""The tries are the existing index, a new file, and memory. Then only texts are scanned."""


class WordSearch:
    """The current index of one log, with a text scan if the index finds nothing."""

    def __init__(
        self,
        directory: Path | None,
        session: str,
        *,
        catalogue: Catalogue,
        read: Callable[[AnyEntry], Searchable | None],
        limit_chars: int,
    ) -> None:
        self._directory, self._session = directory, session
        self._catalogue = catalogue
        self._read = read
        self._limit_chars = limit_chars
        self._index: Index | None = None

    def find(
        self,
        entries: Sequence[AnyEntry],
        question: HistoryQuestion,
        is_allowed: Callable[[int], bool],
    ) -> list[PassageMatch]:
        terms, having = self._query_index(entries, question)
        found = rank(
            terms,
            self._catalogue.place,
            lambda n: (having is None or n in having) and is_allowed(n),
        )
        return found or [one for one in self._scan_texts(entries, question) if is_allowed(one.n)]

    def close(self) -> None:
        if self._index is not None:
            self._index.close()
        self._index = None

    def _query_index(
        self, entries: Sequence[AnyEntry], question: HistoryQuestion
    ) -> tuple[list[TermRows], set[int] | None]:
        index = self._index = self._index or Index(self._directory, self._session)
        for _ in range(INDEX_TRIES):
            try:
                self._extend(index, entries)
                return index.search(question)
            except sqlite3.Error as error:
                index.mend(error)
        return [], None

    def _extend(self, index: Index, entries: Sequence[AnyEntry]) -> None:
        upto = index.upto
        fresh = entries[bisect_right(entries, upto, key=attrgetter("n")) :]
        if upto and any(isinstance(entry, Swept) for entry in fresh):
            index.renew()  # a search must not find deleted bodies
            fresh = entries
        if fresh:
            index.add(self.texts(fresh), fresh[-1].n)

    def texts(self, entries: Iterable[AnyEntry]) -> Iterator[tuple[int, str, str]]:
        for entry in entries:
            call = self._catalogue.call_of(entry)
            if call is not None and call.use.name == HISTORY:
                continue
            found = self._read(entry)
            if found is not None and found.text:
                yield entry.n, found.text[: self._limit_chars], call.target if call else ""

    def _scan_texts(
        self, entries: Iterable[AnyEntry], question: HistoryQuestion
    ) -> list[PassageMatch]:
        """Search for the literal text, for scripts without spaces and for parts of words."""
        wanted = question.text.strip('"').casefold()
        found = []
        for n, text, _ in self.texts(entries):
            place = text.casefold().find(wanted)
            if place >= 0:
                found.append(PassageMatch(n=n, passage=passage_at(text, place)))
        return found[::-1]
