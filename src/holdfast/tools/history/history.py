"""Search a session's whole log and open any part of it, exactly as it was.

The log grows while the session runs: each question first catches up with what is new and costs
no more than that. Bodies on disk are read from the session's own directory. Nothing is written
but a private index.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from threading import Lock

from msgspec import structs

from holdfast.errors import NotInHistory
from holdfast.log.entries import AnyEntry, Ran
from holdfast.log.results import Results
from holdfast.messages.cut import printable_line
from holdfast.settings import HistorySettings
from holdfast.tools.history.catalogue import Catalogue, RecordedCall
from holdfast.tools.history.index import WordSearch
from holdfast.tools.history.pages import LineRange, NoSuchRange, find_words, page, snippet
from holdfast.tools.history.records import (
    FoundRecords,
    Media,
    Missing,
    OpenedRecord,
    Record,
    RecordHit,
    read_body,
    record_of,
)
from holdfast.view import View
from holdfast.view.items import Round

Entries = Sequence[AnyEntry]

ID_CHARS = 80
"""Of an id that is not known, in what is said about it."""

_n = attrgetter("n")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Whole:
    key: tuple[int, ...]
    """The entries it is made of."""
    title: str
    lines: LineRange
    media: Media
    trouble: str


class History:
    """The past of one session. Thread-safe."""

    def __init__(
        self,
        entries: Callable[[], Entries],
        *,
        directory: Path | None = None,
        session: str = "",
        settings: HistorySettings | None = None,
        shows: Callable[[int], bool] = lambda n: False,
    ) -> None:
        self._entries = entries
        self.settings = settings or HistorySettings()
        self._shows = shows
        self._results = Results(directory) if directory is not None else None
        self._catalogue = Catalogue()
        self._catalogued = 0
        self._words = WordSearch(
            directory,
            session,
            catalogue=self._catalogue,
            read=lambda entry: self._record(entry)[0],
            limit_chars=self.settings.index_limit_chars,
        )
        self._last: _Whole | None = None
        """What was opened last, so that turning its pages reads nothing again."""
        self._lock = Lock()

    def search(
        self, query: str = "", *, file: str = "", skip: int = 0, limit: int = 0
    ) -> FoundRecords:
        """Find records by words, by the file they touch, or by both, and describe some of them."""
        numbers = self.find(query, file=file)
        return self.listing(numbers, query=query, shown=self.shown(numbers), skip=skip, limit=limit)

    def find(self, query: str = "", *, file: str = "") -> list[int]:
        """Return numbers of records; by words the best first, by file alone the newest."""
        with self._lock:
            entries = self._caught_up()
            touching = self._catalogue.touching(file) if file else []
            if not query.strip():
                return touching[::-1]
            wanted = set(touching)
            return [
                n
                for n in self._words.find(entries, query)
                if (n in wanted or not file) and _entry(entries, n) is not None
            ]

    def shown(self, numbers: Iterable[int]) -> frozenset[int]:
        """Return the ids still visible to the model; call it on the thread that changes the view."""
        return frozenset(filter(self._shows, numbers))

    def listing(
        self,
        numbers: Sequence[int],
        *,
        query: str = "",
        shown: AbstractSet[int] = frozenset(),
        skip: int = 0,
        limit: int = 0,
    ) -> FoundRecords:
        """Describe some of the records found; of those found by words, what left the view comes first."""
        ranked = sorted(numbers, key=shown.__contains__) if query.strip() else numbers
        chosen = ranked[skip : skip + (limit or self.settings.hits)]
        with self._lock:
            entries = self._caught_up()
            hits = tuple(self._hit(entries, n, query, is_shown=n in shown) for n in chosen)
        return FoundRecords(hits=hits, total=len(numbers))

    def open(
        self, id: str, *, lines: str = "", chars: str = "", limit_chars: int = 0
    ) -> OpenedRecord:
        """Return a page of a record, a tool use's result, or a span of records."""
        with self._lock:
            whole = self._whole(id)
        try:
            shown = page(whole.lines, lines=lines, chars=chars, limit_chars=limit_chars)
        except NoSuchRange as error:
            raise NotInHistory(f"{whole.title}: {error}") from None
        media = whole.media if shown.chars[0] <= 1 else ()
        return OpenedRecord(title=whole.title, page=shown, media=media, trouble=whole.trouble)

    def close(self) -> None:
        with self._lock:
            self._words.close()

    def _caught_up(self) -> Entries:
        """Catalogue what is new since the last question."""
        entries = self._entries()
        for entry in entries[self._catalogued :]:
            self._catalogue.take(entry)
        self._catalogued = len(entries)
        return entries

    def _hit(self, entries: Entries, n: int, query: str, *, is_shown: bool) -> RecordHit:
        entry = _entry(entries, n)
        assert entry is not None, "only entries are found"
        record, _ = self._record(entry)
        assert record is not None, "only what has something to say is found"
        call = self._catalogue.call_of(entry)
        whole = LineRange(record.text)
        place = find_words(record.text, query) if query else None
        return RecordHit(
            n=n,
            kind=record.kind,
            at=entry.at,
            tool=call.use.name if call else "",
            tool_use_id=call.use.id if call else "",
            target=call.target if call else "",
            is_error=isinstance(entry, Ran) and entry.is_error,
            is_shown=is_shown,
            chars=len(record.text),
            lines=len(whole.ends),
            line=whole.line_at(place) if place is not None else 0,
            snippet=snippet(record.text, place or 0, self.settings.snippet_chars),
        )

    def _whole(self, id: str) -> _Whole:
        """Assemble what an id refers to, or reuse the last one assembled."""
        entries = self._caught_up()
        chosen = [entry for span in self._spans(entries, id) for entry in _within(entries, span)]
        key = (*(entry.n for entry in chosen), -len(self._catalogue.swept))
        if self._last is None or self._last.key != key:
            self._last = self._assemble(key, id, chosen)
        return self._last

    def _spans(self, entries: Entries, id: str) -> list[range]:
        """Return the numbers an id refers to; one that stands for others includes those."""
        numbers = self._catalogue.numbers(id)
        if numbers is None:
            raise NotInHistory(
                f"{printable_line(id, ID_CHARS)!r} is not a message or tool use here; search for its words"
            )
        if isinstance(numbers, range):
            _check_span(entries, numbers)
            return [numbers]
        entry = _entry(entries, numbers[0])
        if entry is None:
            raise NotInHistory(f"there is no #{numbers[0]}; {_extent(entries)}")
        return [range(n, n + 1) for n in numbers] + self._catalogue.behind(entry)

    def _assemble(self, key: tuple[int, ...], id: str, chosen: Entries) -> _Whole:
        found = [(record, trouble) for record, trouble in map(self._record, chosen) if record]
        if not found:
            name = printable_line(id, ID_CHARS)
            raise NotInHistory(f"{name!r} holds no text; search for the words it should hold")
        records = [record for record, _ in found]
        text = "".join(f"[#{each.n} {each.kind}]\n{each.text}\n" for each in records)
        return _Whole(
            key=key,
            title=_title(records, self._catalogue.call_of(chosen[0])),
            lines=LineRange(records[0].text if len(records) == 1 else text),
            media=tuple(block for record in records for block in record.media),
            trouble="; ".join(trouble for _, trouble in found if trouble),
        )

    def _record(self, entry: AnyEntry) -> tuple[Record | None, str]:
        """Read an entry, with its body from the disk where it was stored there."""
        record = record_of(entry)
        if record is None or not isinstance(entry, Ran) or not entry.file:
            return record, ""
        try:
            body = read_body(self._results, entry.file, entry.sha256)
            return record_of(structs.replace(entry, content=body)), ""
        except Missing as reason:
            name = entry.file.rpartition("/")[2]
            why = self._catalogue.swept.get(name, "")
            why = f" ({why})" if why else ""
            return record, f"only the beginning of #{entry.n} is left, from the log: {reason}{why}"


def _check_span(entries: Entries, span: range) -> None:
    first, last = span.start, span.stop - 1
    if not span:
        raise NotInHistory(f"#{first}-#{last} ends before it begins; ask for #{last}-#{first}")
    if not _within(entries, span):
        raise NotInHistory(f"there is no #{first} to #{last}; {_extent(entries)}")


def _extent(entries: Entries) -> str:
    if not entries:
        return "nothing has happened yet"
    return f"the history reaches from #{entries[0].n} to #{entries[-1].n}"


def _entry(entries: Entries, n: int) -> AnyEntry | None:
    i = bisect_left(entries, n, key=_n)
    return entries[i] if i < len(entries) and entries[i].n == n else None


def _within(entries: Entries, span: range) -> Entries:
    lo = bisect_left(entries, span.start, key=_n)
    return entries[lo : bisect_left(entries, span.stop, key=_n)]


def _title(records: list[Record], call: RecordedCall | None) -> str:
    if len(records) > 1:
        return f"#{records[0].n} to #{max(record.n for record in records)}"
    title = f"#{records[0].n} {records[0].kind}"
    return f"{title} of {call.use.name} {call.use.id}" if call else title


def is_shown(view: View, n: int) -> bool:
    """Return whether a view shows entry `n` whole: not cleared, spilled, collapsed or gone."""
    item = view.item_of(n)
    if not isinstance(item, Round):
        return item is not None
    result = next((result for result in item.results if result.id == n), None)
    return result is None or result.placeholder("seen") is None
