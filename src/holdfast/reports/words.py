"""Where the words of all sessions stand: one SQLite file under the home directory, without any text.

It can be thrown away at any time. Of a session that grew, only what is new is added.
"""

import sqlite3
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Struct

from holdfast.reports.index import index_path
from holdfast.reports.places import SessionFile
from holdfast.reports.workers import Advance, each_in_processes, processes_for
from holdfast.settings import home
from holdfast.tools.history.index import Index
from holdfast.tools.history.question import HistoryQuestion
from holdfast.tools.history.ranking import PASSAGE_BITS, TermRows

if TYPE_CHECKING:
    from holdfast.reports.session_texts import SessionTexts

ALL = "all sessions"
"""What the index is of, where that of one session has the session's id."""
ELSEWHERE = 0.3
"""Of a word's weight, where it stands in the session but not in the passage."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS spans (
    first INTEGER, count INTEGER, path TEXT, agent TEXT, session TEXT, directory TEXT, title TEXT,
    stamp TEXT, bytes INTEGER, last_n INTEGER, records BLOB
)
"""


class SearchedRecord(Struct, frozen=True, array_like=True):
    n: int
    kinds: tuple[str, ...]
    first_line: int
    """Where the lines begin that it is read from again."""
    last_line: int
    """Where the last of them begins; 0 where only the whole file gives it."""
    digest: int
    """Of its text: a session that was resumed under a new name repeats its beginning."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[SearchedRecord, ...]).decode


class TextJob(NamedTuple):
    """A session to read, from the entry after `last_n` on."""

    file: SessionFile
    last_n: int


@dataclass(frozen=True, kw_only=True)
class SessionSpan:
    """Records of one session that are numbered in a row; a session that grew has several."""

    first: int
    count: int
    path: str
    agent: str
    session: str
    directory: str
    title: str
    encoded: bytes

    @cached_property
    def records(self) -> tuple[SearchedRecord, ...]:
        return _decode(self.encoded)

    def record(self, number: int) -> SearchedRecord:
        return self.records[number - self.first]

    def is_of(self, number: int, kinds: frozenset[str]) -> bool:
        """Return whether a record is of one of these kinds; without any, every one will do."""
        return not kinds or not kinds.isdisjoint(self.record(number).kinds)


@dataclass(frozen=True, kw_only=True)
class SessionMatch:
    """A session in which words were found."""

    span: SessionSpan
    record: SearchedRecord
    """The one that answers best."""
    passage: int
    """The best of its passages, counted from 0."""
    records: int
    """How many have any of the words."""


class SessionWords(Index):
    """The words of all sessions; records are numbered through, in the order they were read."""

    def __init__(self, directory: Path | None = None) -> None:
        super().__init__(directory or home(), ALL)

    def _open(self) -> sqlite3.Connection:
        connection = super()._open()
        connection.execute(_SCHEMA)
        return connection

    def stale(self, files: Sequence[SessionFile]) -> list[SessionFile]:
        """List the sessions that are new or were written to since, the oldest first."""
        known = dict(self._connection.execute("SELECT path, stamp FROM spans ORDER BY rowid"))
        changed = [file for file in files if known.get(index_path(file.path)) != file.stamp]
        return sorted(changed, key=attrgetter("modified"))

    def refresh(self, files: Sequence[SessionFile], progress: Advance = lambda _: None) -> int:
        """Read what is new and return how many files that were."""
        changed = self.stale(files)
        if not changed:
            return 0
        from holdfast.reports.session_texts import decode, read_encoded  # loads every reader

        jobs = [TextJob(file, self._known_upto(file)) for file in changed]
        for job, encoded in each_in_processes(read_encoded, jobs, processes_for(changed)):
            self._put(job, decode(encoded))
            progress(job.file.bytes)
        return len(changed)

    def _known_upto(self, file: SessionFile) -> int:
        """Return the last entry that was read; 0 for a file that was replaced by a shorter one."""
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
            connection.execute(
                f"INSERT INTO spans VALUES ({', '.join('?' * 11)})",
                (
                    *(first, len(records), index_path(job.file.path)),
                    *(found.agent, found.session, found.directory, found.title),
                    *(job.file.stamp, job.file.bytes),
                    *(records[-1].n if records else job.last_n, _encode(records)),
                ),
            )

    def find(
        self, question: HistoryQuestion, is_wanted: Callable[[SessionSpan], bool]
    ) -> list[SessionMatch]:
        """Find sessions: those with most of the question in one place first, of equals the newest.

        Of sessions whose best record is the same, only the newest.
        """
        terms, having = self.search(question)
        spans = [span for span in self._spans() if is_wanted(span)]
        firsts = [span.first for span in spans]
        found: dict[str, _SessionScore] = {}
        for term in terms:
            for row in term.rows:
                number = row >> PASSAGE_BITS
                span = spans[place - 1] if (place := bisect_right(firsts, number)) else None
                if span is None or number >= span.first + span.count:
                    continue  # of a session that is gone or not asked for
                if (having is None or number in having) and span.is_of(number, question.kinds):
                    found.setdefault(span.path, _SessionScore()).add(row, term, span)
        ranked = sorted(found.values(), key=_SessionScore.score, reverse=True)
        unique: dict[int, SessionMatch] = {}
        for match in (score.match() for score in ranked):
            unique.setdefault(match.record.digest, match)
        return list(unique.values())

    def _spans(self) -> list[SessionSpan]:
        query = (
            "SELECT first, count, path, agent, session, directory, title, records AS encoded"
            " FROM spans WHERE count ORDER BY first"
        )
        rows = self._connection.execute(query)
        names = [column[0] for column in rows.description]
        return [SessionSpan(**dict(zip(names, row, strict=True))) for row in rows]


class _SessionScore:
    """Adds up what was found of one session."""

    def __init__(self) -> None:
        self._inside: defaultdict[int, float] = defaultdict(float)
        """The weight of the words in each passage."""
        self._spans: dict[int, SessionSpan] = {}
        """By the number of the record."""
        self._terms: dict[int, float] = {}

    def add(self, row: int, term: TermRows, span: SessionSpan) -> None:
        self._inside[row] += term.weight
        self._spans[row >> PASSAGE_BITS] = span
        self._terms[id(term)] = term.weight

    def _best(self) -> tuple[float, int]:
        return max((weight, row) for row, weight in self._inside.items())

    def score(self) -> tuple[float, int]:
        weight, row = self._best()
        return weight + ELSEWHERE * (sum(self._terms.values()) - weight), row

    def match(self) -> SessionMatch:
        row = self._best()[1]
        span = self._spans[row >> PASSAGE_BITS]
        return SessionMatch(
            span=span,
            record=span.record(row >> PASSAGE_BITS),
            passage=row & ((1 << PASSAGE_BITS) - 1),
            records=len(self._spans),
        )
