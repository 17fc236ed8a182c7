"""Sessions on disk, read on request and again when they have grown."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

from longhold.core.log.entries import AnyEntry
from longhold.core.log.spending import BilledFigures
from longhold.core.tools.history.history import History
from longhold.core.tools.history.question import parse_question
from longhold.errors import LongholdError, SessionNotFound
from longhold.insight.pages.html import SessionRow, row_of
from longhold.insight.pages.session_data import SessionData
from longhold.insight.pages.tables import changes, sanitise

OPEN_SESSIONS = 6
"""Sessions in memory; a 10 MB session takes about 60 MB."""
HEAD = (
    *("title", "model", "last_at", "entries", "totals"),
    *("avoidable_usd", "estimated_usd", "hit_share", "categories"),
)
"""Fields that change with every call, in addition to the tables."""
WHOLE_CHARS = 8 << 20
"""Limit for one text; browsers do not show more either."""
ROWS_SECONDS = 1.0
"""A list waits this long for titles and figures. Those of more sessions follow."""
FOLLOW_SHARE = 0.2
"""Share of one core for re-reading a growing session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSession:
    """A session that may be shown; no other file can be requested."""

    id: str
    name: str
    path: Path
    stamp: str
    """Changes when the session is written."""
    modified: float
    format: str = ""
    title: str = ""
    directory: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSession:
    history: Sequence[AnyEntry]
    data: SessionData
    directory: Path | None = None


@dataclass(slots=True, kw_only=True)
class _OpenSession:
    read: ReadSession
    records: History
    stamp: str
    next_look: float
    """Earliest next read, to keep re-reading a long session within its share of a core."""


class FollowedSessions:
    """Thread-safe; reads one session at a time."""

    def __init__(
        self,
        listing: Callable[[], Iterable[ListedSession]],
        read: Callable[[ListedSession], ReadSession],
        *,
        known: Mapping[str, SessionRow] | None = None,
        billed: Callable[[], Mapping[str, BilledFigures]] = dict,
    ) -> None:
        """`billed` returns the known costs and savings by session name."""
        self._billed = billed
        self._listing, self._read = listing, read
        self._listed: dict[str, ListedSession] = {}
        self._rows = dict(known or {})
        self._open: OrderedDict[str, _OpenSession] = OrderedDict()
        self._stamps: dict[str, str] = {}
        """Stamps of sessions when they were read only for their rows."""
        self._next_read = 0.0
        self._lock = Lock()

    def rows(self) -> list[SessionRow]:
        with self._lock:
            self._listed = {one.id: one for one in self._listing()}
            until = time.monotonic() + ROWS_SECONDS
            while self._read_row(now := time.monotonic()) and now < until:
                pass
            newest = sorted(self._listed.values(), key=lambda one: one.modified, reverse=True)
            rows = [self._rows.get(one.id) or _unread_row(one) for one in newest]
            billed = self._billed()
            return [_with_figures(row, billed.get(row.name)) for row in rows]

    def name(self, id: str) -> str:
        with self._lock:
            return self._session(id).read.data.name

    def data(self, id: str) -> SessionData:
        with self._lock:
            return self._session(id).read.data

    def text(self, id: str, n: int) -> str:
        """Return the text of one message, up to `WHOLE_CHARS`, without secrets."""
        with self._lock:
            opened = self._session(id).records.open(f"#{n}-#{n}", limit_chars=WHOLE_CHARS)
            return sanitise(opened.page.text, WHOLE_CHARS)

    def search(self, id: str, words: str) -> list[int]:
        with self._lock:
            found = self._session(id).records.find(parse_question(words))
            return [match.n for match in found]

    def changes(self) -> list[dict[str, Any]]:
        """Read the open sessions again if due, and return the additions for their pages."""
        with self._lock:
            now = time.monotonic()
            if now >= self._next_read:
                self._read_row(now)
            due = [id for id, one in self._open.items() if one.next_look <= now]
            return [found for id in due if (found := self._change(id))]

    def _read_row(self, now: float) -> bool:
        """Read one session without a row. One read once is read again when it changes."""
        due = [one for one in self._listed.values() if self._is_row_due(one)]
        if not due:
            return False
        newest = max(due, key=lambda one: one.modified)
        self._stamps[newest.id] = newest.stamp
        try:
            self._rows[newest.id] = self._row_for(newest, self._read(newest).data)
        except (LongholdError, OSError):
            self._rows[newest.id] = _unread_row(newest)
        self._next_read = now + (time.monotonic() - now) / FOLLOW_SHARE
        return True

    def _row_for(self, listed: ListedSession, data: SessionData) -> SessionRow:
        """Return the row of a session that was read, under the name and project it had before."""
        known, row = self._rows.get(listed.id), row_of(data, listed.directory)
        return replace(row, name=known.name, directory=known.directory) if known else row

    def _is_row_due(self, one: ListedSession) -> bool:
        if one.id in self._open:
            return False
        return one.id not in self._rows or self._stamps.get(one.id, one.stamp) != one.stamp

    def _change(self, id: str) -> dict[str, Any] | None:
        before, listed = self._open[id], self._listed.get(id)
        if listed is None or listed.stamp == before.stamp:
            return None
        try:
            after = self._read_again(listed)
        except (LongholdError, OSError):
            return None  # a partly written line; the next read finds all of it
        head = {name: getattr(after, name) for name in HEAD}
        tables = changes(before.read.data.tables, after.tables)
        return {"session": id, "head": head, "tables": tables}

    def _session(self, id: str) -> _OpenSession:
        if id not in self._listed:
            self._listed = {one.id: one for one in self._listing()}
        if id not in self._listed:
            raise SessionNotFound(f"there is no session {id!r} here")
        if id not in self._open:
            self._read_again(self._listed[id])
        self._open.move_to_end(id)
        return self._open[id]

    def _read_again(self, listed: ListedSession) -> SessionData:
        start = time.monotonic()
        read = self._read(listed)
        spent = time.monotonic() - start
        self._close(listed.id)
        self._open[listed.id] = _OpenSession(
            read=read,
            records=History(lambda: read.history, directory=read.directory, session=read.data.name),
            stamp=listed.stamp,
            next_look=start + spent / FOLLOW_SHARE,
        )
        self._rows[listed.id] = self._row_for(listed, read.data)
        while len(self._open) > OPEN_SESSIONS:
            self._close(next(iter(self._open)))
        return read.data

    def _close(self, id: str) -> None:
        if id in self._open:
            self._open.pop(id).records.close()

    def close(self) -> None:
        with self._lock:
            for id in list(self._open):
                self._close(id)


def _with_figures(row: SessionRow, billed: BilledFigures | None) -> SessionRow:
    if billed is None:
        return row
    own = replace(
        row,
        saved_usd=billed.saved_usd,
        decisions=billed.decisions,
        model=row.model or billed.model,
        format=billed.agent or row.format,
    )
    if row.calls is not None:
        return own
    tally = billed.tally
    return replace(own, calls=tally.calls, usd=tally.usd, hit_share=tally.hit_share)


def _unread_row(one: ListedSession) -> SessionRow:
    return SessionRow(
        id=one.id,
        name=one.name,
        format=one.format,
        title=one.title,
        directory=one.directory,
        last_at=one.modified,
    )
