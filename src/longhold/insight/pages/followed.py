"""Sessions on disk, read when a page asks for them and read again when they have grown."""

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
"""Kept in memory; one of 10 MB takes about 60."""
HEAD = (
    *("title", "model", "last_at", "entries", "totals"),
    *("avoidable_usd", "estimated_usd", "hit_share", "categories"),
)
"""What changes with every call, besides the tables."""
WHOLE_CHARS = 8 << 20
"""Of one text; a browser shows no more of it either."""
FOLLOW_SHARE = 0.2
"""Of one core, for reading a session again that grows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSession:
    """A session that may be shown; nothing else on the disk can be asked for."""

    id: str
    name: str
    path: Path
    stamp: str
    """Another one means that it was written to."""
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
    """No sooner, so that reading a long session again and again takes a share of a core only."""


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
        """`billed` says what sessions have cost and saved, by their names, where that is known."""
        self._billed = billed
        self._listing, self._read = listing, read
        self._listed: dict[str, ListedSession] = {}
        self._rows = dict(known or {})
        """What is known of sessions that were read, here or before, by id."""
        self._open: OrderedDict[str, _OpenSession] = OrderedDict()
        self._stamps: dict[str, str] = {}
        """The stamps that sessions had when they were read only for their rows."""
        self._next_read = 0.0
        self._lock = Lock()

    def rows(self) -> list[SessionRow]:
        with self._lock:
            self._listed = {one.id: one for one in self._listing()}
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
        """Return the whole text of one message and no more than that, without secrets."""
        with self._lock:
            opened = self._session(id).records.open(f"#{n}-#{n}", limit_chars=WHOLE_CHARS)
            return sanitise(opened.page.text, WHOLE_CHARS)

    def search(self, id: str, words: str) -> list[int]:
        with self._lock:
            found = self._session(id).records.find(parse_question(words))
            return [match.n for match in found]

    def changes(self) -> list[dict[str, Any]]:
        """Look at the sessions that are open, and return what to add to the pages of some."""
        with self._lock:
            now = time.monotonic()
            self._read_row(now)
            due = [id for id, one in self._open.items() if one.next_look <= now]
            return [found for id in due if (found := self._change(id))]

    def _read_row(self, now: float) -> None:
        """Read the newest session whose figures nobody knows: another gateway's, or an old one.

        What was read once is read again: a biller may know only a part of it, and only later.
        """
        if now < self._next_read:
            return
        billed, read = self._billed(), self._stamps
        unknown = (one for one in self._listed.values() if one.id in read or one.name not in billed)
        due = [one for one in unknown if self._is_row_due(one)]
        if not due:
            return
        newest = max(due, key=lambda one: one.modified)
        self._stamps[newest.id] = newest.stamp
        try:
            self._rows[newest.id] = row_of(self._read(newest).data, newest.directory)
        except (LongholdError, OSError):
            self._rows[newest.id] = _unread_row(newest)
        self._next_read = now + (time.monotonic() - now) / FOLLOW_SHARE

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
            return None  # half a line is there; the next look finds the whole
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
        self._rows[listed.id] = row_of(read.data, listed.directory)
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
    """Add what only the biller knows, and the rest where the session was not read yet."""
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
