"""Search all sessions at once: find those with the words, and quote each from its own file."""

from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.errors import HoldfastError
from holdfast.log.entries import AnyEntry
from holdfast.reports.index import index_path
from holdfast.reports.places import SessionFile
from holdfast.reports.read_session import read_entries
from holdfast.reports.words import SessionMatch, SessionWords
from holdfast.settings import HistorySettings
from holdfast.tools.history.history import History
from holdfast.tools.history.question import HistoryQuestion, parse_question
from holdfast.tools.history.records import RecordHit
from holdfast.transcripts.formats import read_lines

QUOTED_BYTES = 8 << 20
"""Of a file, read to quote one record; where more is needed, it is named and not quoted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHit:
    agent: str
    session: str
    path: str
    directory: str
    title: str
    records: int
    """How many of its records have any of the words."""
    n: int
    """The record that answers best."""
    hit: RecordHit | None
    """What it says; None if its file could not be read there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSessions:
    hits: tuple[SessionHit, ...]
    total: int
    reached: int


def search_sessions(
    words: SessionWords,
    files: Sequence[SessionFile],
    query: str,
    *,
    agent: str = "",
    skip: int = 0,
    settings: HistorySettings,
) -> FoundSessions:
    """Find sessions among `files`, the best first, each with the record that answers best."""
    question = parse_question(query)
    known = {index_path(file.path): file.path for file in files}
    asked = replace(question, phrases=(*question.phrases, *question.files), files=())
    found = words.find(asked, lambda span: span.path in known and agent in ("", span.agent))
    hits: list[SessionHit] = []
    quoted: set[str] = set()
    reached = skip
    for match in found[skip:]:
        if len(hits) == settings.hits:
            break
        reached += 1
        hit = _hit(match, known[match.span.path], asked, settings)
        if hit.hit is not None and hit.hit.passage in quoted:
            continue  # a session that was resumed under a new name repeats its beginning
        quoted.update([hit.hit.passage] if hit.hit else [])
        hits.append(hit)
    return FoundSessions(hits=tuple(hits), total=len(found), reached=reached)


def _hit(
    match: SessionMatch, path: Path, question: HistoryQuestion, settings: HistorySettings
) -> SessionHit:
    span, record = match.span, match.record
    quoted = None
    with suppress(HoldfastError, OSError):
        entries = _read_again(path, span.agent, record.first_line, record.last_line)
        with closing(History(lambda: entries, settings=settings)) as history:
            listed = history.listing(history.find(question), question, limit=1)
            quoted = next(iter(listed.hits), None)
    n = quoted.n if quoted and not record.last_line else record.n
    return SessionHit(
        agent=span.agent,
        session=span.session,
        path=str(path),
        directory=span.directory,
        title=span.title,
        records=match.records,
        n=n,
        hit=replace(quoted, n=n) if quoted else None,
    )


def _read_again(path: Path, agent: str, first: int, last: int) -> list[AnyEntry]:
    """Read the entries of some lines of a transcript; without any, of the whole file."""
    if not last:
        return read_entries(path) if path.stat().st_size <= QUOTED_BYTES else []
    if last - first > QUOTED_BYTES:
        return []
    with path.open("rb") as file:
        file.seek(first)
        lines = [*file.read(last - first).split(b"\n"), file.readline(QUOTED_BYTES)]
    return list(read_lines(lines, agent))
