"""Reads sessions from disk on request, and again when they have grown."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

from longhold.core.log.spending import BilledFigures
from longhold.core.tools.history.history import History
from longhold.core.tools.history.question import parse_question
from longhold.errors import LongholdError, SessionNotFound
from longhold.insight.pages.html import SessionRow
from longhold.insight.pages.session_data import SessionData
from longhold.insight.pages.tables import changes, sanitise

OPEN_SESSIONS = 6  # how many sessions stay in memory. A 10 MB session takes about 60 MB.
HEAD = (
    *("title", "model", "last_at", "entries", "totals"),
    *("avoidable_usd", "estimated_usd", "hit_share", "categories"),
)
"""Fields that change with every call, in addition to the tables."""
WHOLE_CHARS = 8 << 20  # limit for one text, because browsers do not show more
FOLLOW_SHARE = 0.2
"""The share of one core for re-reading sessions. The list of sessions gets the same share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSession:
    """A session that may be shown. Clients cannot request any other file."""

    row: SessionRow
    path: Path
    stamp: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSession:
    data: SessionData
    records: History


@dataclass(frozen=True, slots=True, kw_only=True)
class _OpenSession:
    read: ReadSession
    stamp: str
    next_look: float
    """The time of the earliest next read, which limits the cost of re-reading a long session."""


class FollowedSessions:
    """Reads one session at a time. All methods are thread-safe."""

    def __init__(
        self,
        listing: Callable[[], Iterable[ListedSession]],
        read: Callable[[ListedSession], ReadSession],
        *,
        billed: Callable[[], Mapping[str, BilledFigures]] = dict,
    ) -> None:
        """`billed` returns the known costs and savings by session name."""
        self._billed = billed
        self._listing, self._read = listing, read
        self._listed: dict[str, ListedSession] = {}
        self._next_listing = 0.0
        self._open: OrderedDict[str, _OpenSession] = OrderedDict()
        self._lock = Lock()

    def rows(self) -> list[SessionRow]:
        with self._lock:
            start = time.monotonic()
            if start >= self._next_listing:
                self._list()
                self._next_listing = start + (time.monotonic() - start) / FOLLOW_SHARE
            billed = self._billed()
            rows = (one.row for one in self._listed.values())
            return [_with_figures(row, billed.get(row.name)) for row in rows]

    def _list(self) -> None:
        self._listed = {one.row.id: one for one in self._listing()}

    def name(self, id: str) -> str:
        with self._lock:
            return self._session(id).data.name

    def data(self, id: str) -> SessionData:
        with self._lock:
            return self._session(id).data

    def text(self, id: str, n: int) -> str:
        with self._lock:
            opened = self._session(id).records.open(f"#{n}-#{n}", limit_chars=WHOLE_CHARS)
            return sanitise(opened.page.text, WHOLE_CHARS)

    def search(self, id: str, words: str) -> list[int]:
        with self._lock:
            found = self._session(id).records.find(parse_question(words))
            return [match.n for match in found]

    def changes(self) -> list[dict[str, Any]]:
        """Read the open sessions again if it is time, and return the additions for their pages."""
        with self._lock:
            now = time.monotonic()
            due = [id for id, one in self._open.items() if one.next_look <= now]
            return [found for id in due if (found := self._change(id))]

    def _change(self, id: str) -> dict[str, Any] | None:
        before, listed = self._open[id], self._listed.get(id)
        if listed is None or listed.stamp == before.stamp:
            return None
        try:
            after = self._read_again(listed)
        except (LongholdError, OSError):
            return None  # because the last line may be incomplete until the next read
        head = {name: getattr(after, name) for name in HEAD}
        tables = changes(before.read.data.tables, after.tables)
        return {"session": id, "head": head, "tables": tables}

    def _session(self, id: str) -> ReadSession:
        if id not in self._listed:
            self._list()
        if id not in self._listed:
            raise SessionNotFound(f"there is no session {id!r} here")
        if id not in self._open:
            self._read_again(self._listed[id])
        self._open.move_to_end(id)
        return self._open[id].read

    def _read_again(self, listed: ListedSession) -> SessionData:
        start = time.monotonic()
        read = self._read(listed)
        self._close(listed.row.id)
        self._open[listed.row.id] = _OpenSession(
            read=read,
            stamp=listed.stamp,
            next_look=start + (time.monotonic() - start) / FOLLOW_SHARE,
        )
        while len(self._open) > OPEN_SESSIONS:
            self._close(next(iter(self._open)))
        return read.data

    def _close(self, id: str) -> None:
        if id in self._open:
            self._open.pop(id).read.records.close()

    def close(self) -> None:
        with self._lock:
            for id in list(self._open):
                self._close(id)


def _with_figures(row: SessionRow, billed: BilledFigures | None) -> SessionRow:
    """Add the gateway's figures. Until the log has been read, the gateway's call count is shown."""
    if billed is None:
        return row
    own = replace(
        row,
        saved_usd=billed.saved_usd,
        decisions=billed.decisions,
        model=row.model or billed.model,
        format=billed.agent or row.format,
    )
    if row.calls:
        return own
    tally = billed.tally
    return replace(own, calls=tally.calls, usd=tally.usd, hit_share=tally.hit_share)
