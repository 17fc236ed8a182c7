"""Search a session's whole log and open any part of it verbatim.

The log grows while the session runs. Each question reads only the entries added since the last
question. Only a private index is written.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import islice
from operator import attrgetter
from pathlib import Path
from threading import Lock

from msgspec import structs

from longhold.core.log.entries import AnyEntry, Ran, Replied
from longhold.core.log.results import Results
from longhold.core.messages.text import clean_line
from longhold.core.tools.describe import HISTORY
from longhold.core.tools.history.catalogue import Catalogue, RecordedCall
from longhold.core.tools.history.log_index import WordSearch
from longhold.core.tools.history.pages import (
    PASSAGE_CHARS,
    LineRange,
    NoSuchRange,
    find_words,
    mask_range,
    page,
    passages,
    snippet,
)
from longhold.core.tools.history.question import (
    HistoryQuestion,
    PassageMatch,
    kinds_of,
    parse_question,
)
from longhold.core.tools.history.records import (
    FoundRecords,
    Media,
    Missing,
    OpenedRecord,
    Record,
    RecordHit,
    Searchable,
    answer_text,
    call_text,
    read_body,
    record_of,
)
from longhold.core.view import View
from longhold.core.view.items import Round
from longhold.errors import NotInHistory

HITS = 12
SNIPPET_CHARS = 200
INDEX_LIMIT_CHARS = 8 << 20
"""In a longer body, only the beginning is searched for words."""
Entries = Sequence[AnyEntry]

ID_CHARS = 80
"""Limit for an unknown id quoted in an error."""

FOLLOWING = 8
"""Number of entries that may extend a short passage: a step and the next one's beginning."""

_n = attrgetter("n")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Whole:
    key: tuple[int, ...]
    title: str
    lines: LineRange
    media: Media
    trouble: str


class History:
    """The searchable log of one session. It is thread-safe."""

    def __init__(
        self,
        entries: Callable[[], Entries],
        *,
        directory: Path | None = None,
        results: Results | None = None,
        session: str = "",
        shows: Callable[[int], bool] = lambda n: False,
    ) -> None:
        self._entries = entries
        self._shows = shows
        self._results = results or (Results(directory) if directory is not None else None)
        self._catalogue = Catalogue()
        self._catalogued = 0
        self._words = WordSearch(
            directory,
            session,
            catalogue=self._catalogue,
            read=self._make_searchable,
            limit_chars=INDEX_LIMIT_CHARS,
        )
        self._last: _Whole | None = None
        self._lock = Lock()

    def search(
        self, query: str = "", *, file: str = "", skip: int = 0, limit: int = 0
    ) -> FoundRecords:
        question = parse_question(query, file)
        found = self.find(question)
        shown = self.find_shown(match.n for match in found)
        return self.listing(found, question, shown=shown, skip=skip, limit=limit)

    def find(self, question: HistoryQuestion) -> list[PassageMatch]:
        """Find records, best first. Without words in the question, the newest come first."""
        with self._lock:
            entries = self._catch_up()
            touching = [set(self._catalogue.find_touching(file)) for file in question.files]

            def is_asked_for(n: int) -> bool:
                entry = _entry(entries, n)
                kinds = self._kinds(entry) if entry else frozenset()
                is_kind = bool(kinds & question.kinds if question.kinds else kinds)
                return is_kind and all(n in touched for touched in touching)

            if not question.has_words:
                numbers = touching[0] if touching else (entry.n for entry in entries)
                return [PassageMatch(n=n) for n in sorted(numbers, reverse=True) if is_asked_for(n)]
            found = self._words.find(entries, question, is_asked_for)
            chosen = ((match, _entry(entries, match.n)) for match in found)
            weights = {
                match.n: match.score * question.weight_of(self._kinds(entry))
                for match, entry in chosen
                if entry
            }
        return sorted(found, key=lambda match: weights.get(match.n, 0.0), reverse=True)

    def _kinds(self, entry: AnyEntry) -> frozenset[str]:
        """Return an entry's kinds. Results of History itself have none, so no search finds them."""
        call = self._catalogue.call_of(entry)
        tool = call.use.name if call else ""
        return kinds_of(entry, tool) if tool != HISTORY else frozenset()

    def find_shown(self, numbers: Iterable[int]) -> frozenset[int]:
        """Return the visible numbers. Call this on the thread that changes the view."""
        return frozenset(filter(self._shows, numbers))

    def listing(
        self,
        found: Sequence[PassageMatch],
        question: HistoryQuestion,
        *,
        shown: AbstractSet[int] = frozenset(),
        skip: int = 0,
        limit: int = 0,
        passage_chars: int = PASSAGE_CHARS,
    ) -> FoundRecords:
        """Describe some of the matches. Matches outside the view come first.

        A short record is extended with the next ones. Records that are shown are skipped.
        """
        hits: list[RecordHit] = []
        covered: set[int] = set()
        reached = skip
        with self._lock:
            entries = self._catch_up()
            for match in found[skip:]:
                if len(hits) == (limit or HITS):
                    break
                reached += 1
                if match.n in covered:
                    continue
                hit = self._hit(entries, match, question, is_shown=match.n in shown)
                if question.has_words:
                    if any(hit.passage == other.passage for other in hits):
                        continue
                    covered.add(match.n)
                    filled = self._fill_passage(
                        entries, match.n, hit.passage, passage_chars, covered
                    )
                    hit = replace(hit, passage=filled)
                hits.append(hit)
        if question.has_words:
            hits.sort(key=attrgetter("is_shown"))
        return FoundRecords(hits=tuple(hits), total=len(found), reached=reached)

    def open(
        self, id: str, *, lines: str = "", chars: str = "", limit_chars: int = 0
    ) -> OpenedRecord:
        with self._lock:
            whole = self._assemble_whole(id)
        try:
            shown = page(whole.lines, lines=lines, chars=chars, limit_chars=limit_chars)
        except NoSuchRange as error:
            raise NotInHistory(f"{whole.title}: {error}") from None
        media = whole.media if shown.chars[0] <= 1 else ()
        return OpenedRecord(title=whole.title, page=shown, media=media, trouble=whole.trouble)

    def list_searched(self) -> Iterator[tuple[int, str, str, frozenset[str]]]:
        entries = self._catch_up()
        by_number = {entry.n: entry for entry in entries}
        for n, text, names in self._words.texts(entries):
            yield n, text, names, self._kinds(by_number[n])

    def close(self) -> None:
        with self._lock:
            self._words.close()

    def _catch_up(self) -> Entries:
        entries = self._entries()
        for entry in entries[self._catalogued :]:
            self._catalogue.take(entry)
        self._catalogued = len(entries)
        return entries

    def _hit(
        self, entries: Entries, match: PassageMatch, question: HistoryQuestion, *, is_shown: bool
    ) -> RecordHit:
        entry = _entry(entries, match.n)
        assert entry is not None, "only entries are found"
        record, _ = self._record(entry)
        searched = self._make_searchable(entry)
        assert record is not None and searched is not None, "only records with text are found"
        call = self._catalogue.call_of(entry)
        start, stop = next(islice(passages(searched.text), match.passage, None), (0, 0))
        place = find_words(searched.text, question, start, stop)
        lines = LineRange(record.text)
        has_line = place is not None and place >= searched.body and not isinstance(entry, Replied)
        return RecordHit(
            n=match.n,
            kind=record.kind,
            at=entry.at,
            tool=call.use.name if call else "",
            tool_use_id=call.use.id if call else "",
            target=call.target if call else "",
            is_error=isinstance(entry, Ran) and entry.is_error,
            is_shown=is_shown,
            chars=len(record.text),
            lines=len(lines.ends),
            line=lines.line_at(place - searched.body) if place is not None and has_line else 0,
            snippet=snippet(searched.text, start if place is None else place, SNIPPET_CHARS),
            passage=mask_range(searched.text, start, stop),
        )

    def _fill_passage(
        self, entries: Entries, n: int, passage: str, limit_chars: int, covered: set[int]
    ) -> str:
        """Append the following records. Add those that fit completely to `covered`."""
        i = bisect_left(entries, n, key=_n) + 1
        for entry in entries[i : i + FOLLOWING]:
            room = limit_chars - len(passage)
            if room <= 0 or entry.n in covered:
                break
            searched = self._make_searchable(entry) if (kinds := self._kinds(entry)) else None
            if searched and searched.text.strip():
                name = "result" if "result" in kinds else min(kinds)
                shown = mask_range(searched.text, 0, min(room, len(searched.text)))
                passage = f"{passage.rstrip()}\n[#{entry.n} {name}] {shown}"
                if len(searched.text) <= room:
                    covered.add(entry.n)
        return passage[:limit_chars]

    def _make_searchable(self, entry: AnyEntry) -> Searchable | None:
        """Return a record's text. The text of a result begins with its call."""
        if isinstance(entry, Replied):
            known = self._catalogue.results
            return Searchable(
                text=answer_text(entry, lambda use: use.name == HISTORY or use.id in known)
            )
        record, _ = self._record(entry)
        call = self._catalogue.call_of(entry)
        if record is None or call is None:
            return Searchable(text=record.text) if record else None
        asked = f"{call_text(call.use)}\n"
        return Searchable(text=asked + record.text, body=len(asked))

    def _assemble_whole(self, id: str) -> _Whole:
        entries = self._catch_up()
        spans = self._spans(entries, id)
        chosen = [entry for span in spans for entry in _slice_entries(entries, span)]
        key = (*(entry.n for entry in chosen), -len(self._catalogue.swept))
        if self._last is None or self._last.key != key:
            self._last = self._assemble(key, id, chosen)
        return self._last

    def _spans(self, entries: Entries, id: str) -> list[range]:
        """Return the entries to which an id refers.

        An entry that replaced others includes them. An answer includes the results of its calls.
        """
        numbers = self._catalogue.numbers(id)
        if numbers is None:
            raise NotInHistory(
                f"{clean_line(id, ID_CHARS)!r} is not a message or tool use here; search for its words"
            )
        if isinstance(numbers, range):
            _check_span(entries, numbers)
            return [numbers, *self._find_rest(entries, numbers)]
        entry = _entry(entries, numbers[0])
        if entry is None:
            raise NotInHistory(f"there is no #{numbers[0]}; {_extent(entries)}")
        step = self._catalogue.step(entry.n) if isinstance(entry, Replied) else []
        chosen = step if len(step) > 1 else numbers
        return [range(n, n + 1) for n in chosen] + self._catalogue.find_covered(entry)

    def _find_rest(self, entries: Entries, span: range) -> list[range]:
        """Return the records after a range that belong to its last step."""
        chosen = reversed(_slice_entries(entries, span))
        last = next((entry for entry in chosen if isinstance(entry, Replied)), None)
        step = self._catalogue.step(last.n) if last and len(span) > 1 else []
        return [range(n, n + 1) for n in step if n >= span.stop]

    def _assemble(self, key: tuple[int, ...], id: str, chosen: Entries) -> _Whole:
        found = [(record, trouble) for record, trouble in map(self._record, chosen) if record]
        if not found:
            name = clean_line(id, ID_CHARS)
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
        """Read an entry, including a body stored on disk, and return any error text."""
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
    if not _slice_entries(entries, span):
        raise NotInHistory(f"there is no #{first} to #{last}; {_extent(entries)}")


def _extent(entries: Entries) -> str:
    if not entries:
        return "nothing has happened yet"
    return f"the history reaches from #{entries[0].n} to #{entries[-1].n}"


def _entry(entries: Entries, n: int) -> AnyEntry | None:
    i = bisect_left(entries, n, key=_n)
    return entries[i] if i < len(entries) and entries[i].n == n else None


def _slice_entries(entries: Entries, span: range) -> Entries:
    lo = bisect_left(entries, span.start, key=_n)
    return entries[lo : bisect_left(entries, span.stop, key=_n)]


def _title(records: list[Record], call: RecordedCall | None) -> str:
    if len(records) > 1:
        numbers = [record.n for record in records]
        return f"#{min(numbers)} to #{max(numbers)}"
    title = f"#{records[0].n} {records[0].kind}"
    return f"{title} of {call.use.name} {call.use.id}" if call else title


def is_shown(view: View, n: int) -> bool:
    """Return whether a view shows all of entry `n`, not cleared, spilled, collapsed or removed."""
    item = view.item_of(n)
    if not isinstance(item, Round):
        return item is not None
    place = bisect_left(item.results, n, key=lambda result: result.id)
    is_result = place < len(item.results) and item.results[place].id == n
    return not is_result or item.results[place].placeholder("seen") is None
