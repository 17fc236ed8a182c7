"""A word index over all sessions in one SQLite file, without the texts.

The file can be deleted at any time. If a session grew, only its new entries are added.
"""

import re
import sqlite3
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from longhold.core.messages.words import STOP_WORDS, words_of
from longhold.core.settings import home
from longhold.core.tools.history.log_index import Index
from longhold.core.tools.history.question import PASSAGE_BITS, HistoryQuestion, TermRows
from longhold.insight.session_files import (
    Advance,
    SessionFile,
    each_in_processes,
    index_path,
    processes_for,
)

if TYPE_CHECKING:
    from longhold.insight.session_texts import SessionTexts

ALL = "all sessions, second form"
"""Name of the index, in place of a session's id. An index with another name is rebuilt."""
ELSEWHERE = 0.3
"""Factor for the weight of a word that is in the session but not in the passage."""
OFTEN = 0.1
"""Share of a word's weight that is added, times the logarithm of the passages that contain it."""
EXACT = 2.0
"""Factor for an identifier found as it was written, because its parts are common words."""
SPOKEN = 1.5
"""Factor for a passage of the user's own words, because people remember those of a session."""

_IDENTIFIER = re.compile(r"\w*[._/:-]\w[\w._/:-]*|\w*[a-z][A-Z]\w*|\w*_\w+")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS spans (
    first INTEGER, count INTEGER, path TEXT, agent TEXT, session TEXT, directory TEXT, title TEXT,
    stamp TEXT, bytes INTEGER, last_n INTEGER
);
CREATE TABLE IF NOT EXISTS records (
    number INTEGER PRIMARY KEY, n INTEGER, kinds TEXT, first_line INTEGER, last_line INTEGER,
    digest INTEGER
);
"""

_SPOKEN_RECORDS = "SELECT number FROM records WHERE kinds = 'user'"


class SearchedRecord(Struct, frozen=True, array_like=True):
    n: int
    kinds: tuple[str, ...]
    first_line: int
    """File offset of the first line to read it from."""
    last_line: int
    """File offset of the last line; 0 if the whole file must be read."""
    digest: int
    """Checksum of the text, because a session resumed under a new name repeats its beginning."""


class TextJob(NamedTuple):
    """A session to read, from the entry after `last_n`."""

    file: SessionFile
    last_n: int


class SessionSpan(Struct, frozen=True):
    """Consecutively numbered records of one session. A session that grew has several spans."""

    first: int
    count: int
    path: str
    agent: str
    session: str
    directory: str
    title: str


@dataclass(frozen=True, kw_only=True)
class SessionMatch:
    span: SessionSpan
    record: SearchedRecord
    passage: int
    """The number of its best passage, from 0."""
    records: int
    """Records that contain any of the words."""


class SessionWords(Index):
    """The words of all sessions. Records are numbered in reading order."""

    def __init__(self, directory: Path | None = None) -> None:
        super().__init__(directory or home(), ALL)

    def _check(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        connection = super()._check(connection)
        connection.executescript(_SCHEMA)
        return connection

    def stale(self, files: Sequence[SessionFile]) -> list[SessionFile]:
        known = dict(self._connection.execute("SELECT path, stamp FROM spans ORDER BY rowid"))
        changed = [file for file in files if known.get(index_path(file.path)) != file.stamp]
        return sorted(changed, key=attrgetter("modified"))

    def refresh(self, files: Sequence[SessionFile], progress: Advance = lambda _: None) -> int:
        """Read new entries and return the number of files. A full disk means an index in memory."""
        try:
            return self._read(files, progress)
        except sqlite3.OperationalError as error:
            self.mend(error)
            return self._read(files, progress)

    def _read(self, files: Sequence[SessionFile], progress: Advance) -> int:
        changed = self.stale(files)
        if not changed:
            return 0
        from longhold.insight.session_texts import decode, read_encoded  # loads every reader

        jobs = [TextJob(file, self._read_upto(file)) for file in changed]
        for job, encoded in each_in_processes(read_encoded, jobs, processes_for(changed)):
            self._put(job, decode(encoded))
            progress(job.file.bytes)
        return len(changed)

    def _read_upto(self, file: SessionFile) -> int:
        """Return the number of the last entry read, or 0 if a shorter file replaced the old one."""
        path = index_path(file.path)
        query = "SELECT max(last_n), max(bytes) FROM spans WHERE path = ?"
        last, size = self._connection.execute(query, (path,)).fetchone()
        if size is not None and size > file.bytes:
            self._connection.execute("DELETE FROM spans WHERE path = ?", (path,))
            return 0
        return last or 0

    def _put(self, job: TextJob, found: "SessionTexts") -> None:
        records = found.records
        with self._connection as connection:
            connection.execute("BEGIN IMMEDIATE")
            first = self.upto + 1
            numbered = ((n, *text) for n, text in enumerate(found.texts, first))
            self._insert(numbered, first + len(records) - 1)
            connection.executemany(
                "INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?, ?)",
                (
                    (number, n, " ".join(kinds), *place)
                    for number, (n, kinds, *place) in enumerate(map(astuple, records), first)
                ),
            )
            connection.execute(
                f"INSERT INTO spans VALUES ({', '.join('?' * 10)})",
                (
                    *(first, len(records), index_path(job.file.path)),
                    *(found.agent, found.session, found.directory, found.title),
                    *(job.file.stamp, job.file.bytes),
                    records[-1].n if records else job.last_n,
                ),
            )

    def find(
        self, question: HistoryQuestion, is_wanted: Callable[[SessionSpan], bool]
    ) -> list[SessionMatch]:
        """Find sessions by their best passage, newer first, without older copies of a record."""
        terms, allowed = self.search(question)
        terms += self._search_exact(question.text.replace('"', "").split())
        if question.kinds:
            allowed = self._select_kinds(question.kinds, terms, allowed)
        spans = [span for span in self._spans() if is_wanted(span)]
        firsts = [span.first for span in spans]
        spoken = self._spoken()
        found: defaultdict[str, _SessionScore] = defaultdict(_SessionScore)
        for term in terms:
            for row in term.rows:
                number = row >> PASSAGE_BITS
                span = spans[place - 1] if (place := bisect_right(firsts, number)) else None
                if span is None or number >= span.first + span.count:
                    continue  # because its session is gone or not wanted
                if allowed is None or number in allowed:
                    factor = SPOKEN if number in spoken else 1.0
                    found[span.path].add(row, term, span, factor)
        self._add_titles(question, found.values())
        ranked = sorted((score.best() for score in found.values()), reverse=True)
        records = self._records(best.row >> PASSAGE_BITS for best in ranked)
        unique: dict[int, SessionMatch] = {}
        for best in ranked:
            record = records[best.row >> PASSAGE_BITS]
            unique.setdefault(record.digest, best.match(record))
        return list(unique.values())

    def _search_exact(self, written: Sequence[str]) -> list[TermRows]:
        """Find identifiers and neighbouring words as they were written, not their parts."""
        names = [(word, EXACT) for word in written if _IDENTIFIER.fullmatch(word)]
        pairs = [
            (f"{first} {second}", 1.0)
            for first, second in pairwise(written)
            if not STOP_WORDS.issuperset((first.lower(), second.lower()))
        ]
        return [
            TermRows(weight=factor * self.weigh(len(rows)), rows=rows)
            for text, factor in (*names, *pairs)
            if (rows := self.find_text(text))
        ]

    def _spoken(self) -> set[int]:
        return {n for (n,) in self._connection.execute(_SPOKEN_RECORDS)}

    def _add_titles(self, question: HistoryQuestion, scores: Iterable["_SessionScore"]) -> None:
        weights = {word.lower(): self.weigh(len(self.find_text(word))) for word in question.words}
        for score in scores:
            score.add_title(weights)

    def _select_kinds(
        self, kinds: frozenset[str], terms: Sequence[TermRows], allowed: set[int] | None
    ) -> set[int]:
        numbers = allowed or {row >> PASSAGE_BITS for term in terms for row in term.rows}
        found = self._records(numbers)
        return {number for number, record in found.items() if not kinds.isdisjoint(record.kinds)}

    def _records(self, numbers: Iterable[int]) -> dict[int, SearchedRecord]:
        query = "SELECT records.* FROM json_each(?) JOIN records ON number = value"
        rows = self._connection.execute(query, (msgspec.json.encode(list(numbers)).decode(),))
        return {
            number: SearchedRecord(n, tuple(kinds.split()), first, last, digest)
            for number, n, kinds, first, last, digest in rows
        }

    def _spans(self) -> list[SessionSpan]:
        names = ", ".join(SessionSpan.__struct_fields__)
        rows = self._connection.execute(f"SELECT {names} FROM spans WHERE count ORDER BY first")
        return [SessionSpan(*row) for row in rows]


class _SessionScore:
    def __init__(self) -> None:
        self._inside: defaultdict[int, float] = defaultdict(float)
        self._spans: dict[int, SessionSpan] = {}
        """By record number."""
        self._weights: dict[int, float] = {}
        self._counts: Counter[int] = Counter()
        """By term: its weight, and the passages that contain it."""
        self._title = 0.0

    def add(self, row: int, term: TermRows, span: SessionSpan, factor: float) -> None:
        self._inside[row] += factor * term.weight
        self._spans[row >> PASSAGE_BITS] = span
        self._weights[id(term)] = term.weight
        self._counts[id(term)] += 1

    def add_title(self, weights: Mapping[str, float]) -> None:
        titles = {span.title for span in self._spans.values()}
        words = {word for title in titles for word in words_of(title)}
        self._title = sum(weight for word, weight in weights.items() if word in words)

    def best(self) -> "_BestPassage":
        weight, row = max((weight, row) for row, weight in self._inside.items())
        score = weight + self._title
        for term, count in self._counts.items():
            score += self._weights[term] * (ELSEWHERE + OFTEN * log(1 + count))
        return _BestPassage(score, row, self._spans[row >> PASSAGE_BITS], len(self._spans))


class _BestPassage(NamedTuple):
    score: float
    row: int
    span: SessionSpan
    records: int

    def match(self, record: SearchedRecord) -> SessionMatch:
        passage = self.row & ((1 << PASSAGE_BITS) - 1)
        return SessionMatch(span=self.span, record=record, passage=passage, records=self.records)
