"""Searches all sessions and quotes each match from its own file."""

from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from zlib import crc32

from longhold.core.log.entries import AnyEntry
from longhold.core.tools.history.history import HITS, History
from longhold.core.tools.history.question import HistoryQuestion, PassageMatch, parse_question
from longhold.core.tools.history.records import RecordHit
from longhold.errors import LongholdError
from longhold.insight.session_files import SessionFile, index_path
from longhold.insight.transcripts.formats import read_lines
from longhold.insight.words import SessionMatch, SessionWords

QUOTED_BYTES = 8 << 20
"""Bytes of a file read to quote one record. A longer record is listed without a quote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHit:
    agent: str
    session: str
    path: str
    directory: str
    title: str
    records: int
    """Records that contain any of the words."""
    n: int
    at: float
    """When the record was made, or when the file was last written if the record has no time."""
    hit: RecordHit | None
    """None if the file could not be read at that position."""


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
    hits = tuple(_hit(match, known[match.span.path], asked) for match in shown)
    return FoundSessions(hits=hits, total=len(found), reached=skip + len(shown))


def _hit(match: SessionMatch, path: Path, question: HistoryQuestion) -> SessionHit:
    span, record = match.span, match.record
    quoted, written = None, 0.0
    with suppress(LongholdError, OSError):
        written = path.stat().st_mtime
        quoted = _read_quote(match, path, question)
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


def _read_quote(match: SessionMatch, path: Path, question: HistoryQuestion) -> RecordHit | None:
    """Read a record again. If a result's call is not there, look for it in the whole file."""
    record = match.record
    entries = _read_again(path, match.span.agent, record.first_line, record.last_line)
    history = History(lambda: entries)
    local = [
        n for n, text, _, _ in history.list_searched() if crc32(text.encode()) == record.digest
    ]
    places = [PassageMatch(n=n, passage=match.passage) for n in local[-1:]]
    with closing(history):
        hits = history.listing(places or history.find(question), question, limit=1).hits
    return replace(hits[0], n=record.n) if hits else None


def _read_again(path: Path, agent: str, first: int, last: int) -> list[AnyEntry]:
    """Read the entries between two file offsets, or of the whole file if `last` is 0."""
    if not last:
        from longhold.insight.read_session import read_entries

        return read_entries(path) if path.stat().st_size <= QUOTED_BYTES else []
    if last - first > QUOTED_BYTES:
        return []
    with path.open("rb") as file:
        file.seek(first)
        lines = [*file.read(last - first).split(b"\n"), file.readline(QUOTED_BYTES)]
    return list(read_lines(lines, agent))
