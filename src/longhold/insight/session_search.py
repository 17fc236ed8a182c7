"""Searches all sessions with a word index in one SQLite file, which contains no texts.

The file can be deleted at any time. If a session grew, only its new entries are added. Matches are
quoted from their own files.
"""

import re
import sqlite3
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import msgspec
from msgspec import Struct
from msgspec.structs import astuple

from longhold.core.log.entries import AnyEntry
from longhold.core.messages.words import STOP_WORDS, words_of
from longhold.core.settings import home
from longhold.core.tools.history.history import HITS, History
from longhold.core.tools.history.log_index import Index
from longhold.core.tools.history.question import (
    PASSAGE_BITS,
    HistoryQuestion,
    PassageMatch,
    TermRows,
    parse_question,
)
from longhold.core.tools.history.records import RecordHit
from longhold.errors import LongholdError
from longhold.insight.session_files import (
    Advance,
    SessionFile,
    each_in_processes,
    index_path,
    processes_for,
)
from longhold.insight.transcripts.formats import read_lines

if TYPE_CHECKING:
    from longhold.insight.session_texts import SessionTexts

ALL = "all sessions, second form"
"""The name of the index, in place of a session's id. An index with another name is rebuilt."""
ELSEWHERE = 0.3  # factor for the weight of a word that is in the session but not in the passage
OFTEN = 0.1
"""The extra weight of a word, per logarithm of the number of passages that contain the word."""
EXACT = 2.0  # factor for an identifier that is found whole, because its parts are common words
SPOKEN = 1.5
"""The factor for passages of the user's own words, because people remember their own words."""

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
    last_line: int
    digest: int
    """A checksum of the text, because a session resumed under a new name repeats its beginning."""


class TextJob(NamedTuple):
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


class SessionMatch(NamedTuple):
    score: float
    row: int
    span: SessionSpan
    records: int


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
        """Read new entries and return the number of files. If the disk is full, use memory."""
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
    ) -> list[tuple[SessionMatch, SearchedRecord]]:
        """Find sessions by their best passage, newest first, without older copies of a record."""
        terms, allowed = self.search(question)
        terms += self._search_exact(question.text.replace('"', "").split())
        if question.kinds:
            known = self._records(
                allowed or {row >> PASSAGE_BITS for term in terms for row in term.rows}
            )
            allowed = {n for n, one in known.items() if not question.kinds.isdisjoint(one.kinds)}
        spans = [span for span in self._spans() if is_wanted(span)]
        firsts = [span.first for span in spans]
        spoken = {n for (n,) in self._connection.execute(_SPOKEN_RECORDS)}
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
        weights = {word.lower(): self.weigh(len(self.find_text(word))) for word in question.words}
        for score in found.values():
            score.add_title(weights)
        ranked = sorted((score.best() for score in found.values()), reverse=True)
        records = self._records(best.row >> PASSAGE_BITS for best in ranked)
        unique: dict[int, tuple[SessionMatch, SearchedRecord]] = {}
        for best in ranked:
            record = records[best.row >> PASSAGE_BITS]
            unique.setdefault(record.digest, (best, record))
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
        self._weights: dict[int, float] = {}
        self._counts: Counter[int] = Counter()
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

    def best(self) -> SessionMatch:
        weight, row = max((weight, row) for row, weight in self._inside.items())
        score = weight + self._title
        for term, count in self._counts.items():
            score += self._weights[term] * (ELSEWHERE + OFTEN * log(1 + count))
        return SessionMatch(score, row, self._spans[row >> PASSAGE_BITS], len(self._spans))


QUOTED_BYTES = 8 << 20
"""The limit for bytes read to quote one record. A longer record is listed without a quote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHit:
    agent: str
    session: str
    path: str
    directory: str
    title: str
    records: int
    n: int
    at: float
    """When the record was made, or when the file was last written if the record has no time."""
    hit: RecordHit | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSessions:
    hits: tuple[SessionHit, ...]
    total: int
    reached: int


def search_sessions(
    words: SessionWords, files: Sequence[SessionFile], query: str, *, agent: str = "", skip: int = 0
) -> FoundSessions:
    question = parse_question(query)
    known = {index_path(file.path): file.path for file in files}
    asked = replace(question, phrases=(*question.phrases, *question.files), files=())
    found = words.find(asked, lambda span: span.path in known and agent in ("", span.agent))
    shown = found[skip : skip + HITS]
    hits = tuple(_hit(match, record, known[match.span.path], asked) for match, record in shown)
    return FoundSessions(hits=hits, total=len(found), reached=skip + len(shown))


def _hit(
    match: SessionMatch, record: SearchedRecord, path: Path, question: HistoryQuestion
) -> SessionHit:
    span, quoted, written = match.span, None, 0.0
    with suppress(LongholdError, OSError):
        written = path.stat().st_mtime
        quoted = _read_quote(match, record, path, question)
    return SessionHit(
        agent=span.agent,
        session=span.session,
        path=str(path),
        directory=span.directory,
        title=span.title,
        records=match.records,
        n=record.n,
        at=(quoted.at if quoted else 0.0) or written,
        hit=quoted,
    )


def _read_quote(
    match: SessionMatch, record: SearchedRecord, path: Path, question: HistoryQuestion
) -> RecordHit | None:
    """Read a record again. If a result's call is not near it, look for it in the whole file."""
    entries = _read_again(path, match.span.agent, record.first_line, record.last_line)
    history = History(lambda: entries)
    local = [
        n for n, text, _, _ in history.list_searched() if crc32(text.encode()) == record.digest
    ]
    passage = match.row & ((1 << PASSAGE_BITS) - 1)
    places = [PassageMatch(n=n, passage=passage) for n in local[-1:]]
    with closing(history):
        hits = history.listing(places or history.find(question), question, limit=1).hits
    return replace(hits[0], n=record.n) if hits else None


def _read_again(path: Path, agent: str, first: int, last: int) -> list[AnyEntry]:
    if not last:
        from longhold.insight.read_session import read_entries

        return read_entries(path) if path.stat().st_size <= QUOTED_BYTES else []
    if last - first > QUOTED_BYTES:
        return []
    with path.open("rb") as file:
        file.seek(first)
        lines = [*file.read(last - first).split(b"\n"), file.readline(QUOTED_BYTES)]
    return list(read_lines(lines, agent))
