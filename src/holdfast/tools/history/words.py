"""Words looked up in a growing history: first in the index, then in the text itself.

The index is brought up to date with every question and rebuilt where it is damaged, or where a
body it knows was removed. What asks and answers about the past is left out of it: it holds the
very words that are looked for, and would only ever find itself.
"""

import sqlite3
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path

from msgspec import structs

from holdfast.log.entries import AnyEntry, Replied, Swept
from holdfast.messages import ToolUse
from holdfast.tools.describe import HISTORY
from holdfast.tools.history.catalogue import Catalogue
from holdfast.tools.history.index import Index
from holdfast.tools.history.records import Record

INDEX_TRIES = 3
"""As it is, built anew, and in memory; past that only the text itself is looked through."""


class WordSearch:
    """Finds entries by what they say."""

    def __init__(
        self,
        directory: Path | None,
        session: str,
        *,
        catalogue: Catalogue,
        tell: Callable[[AnyEntry], Record | None],
        limit_chars: int,
    ) -> None:
        self._directory, self._session = directory, session
        self._catalogue = catalogue
        self._tell = tell
        self._limit_chars = limit_chars
        self._index: Index | None = None

    def find(self, entries: Sequence[AnyEntry], query: str) -> list[int]:
        """Find entries by words, the best first; else by the query as it stands, newest first."""
        return self._indexed(entries, query) or self._scanned(entries, query)

    def close(self) -> None:
        """Let the index go."""
        if self._index is not None:
            self._index.close()
        self._index = None

    def _indexed(self, entries: Sequence[AnyEntry], query: str) -> list[int]:
        index = self._index = self._index or Index(self._directory, self._session)
        for _ in range(INDEX_TRIES):
            try:
                self._extend(index, entries)
                return index.search(query)
            except sqlite3.Error as error:
                index.mend(error)
        return []

    def _extend(self, index: Index, entries: Sequence[AnyEntry]) -> None:
        """Take in what is new."""
        upto = index.upto
        fresh = entries[bisect_right(entries, upto, key=attrgetter("n")) :]
        if upto and any(isinstance(entry, Swept) for entry in fresh):
            index.renew()  # what was removed is not to be found by its words either
            fresh = entries
        if fresh:
            index.add(self._texts(fresh), fresh[-1].n)

    def _texts(self, entries: Iterable[AnyEntry]) -> Iterator[tuple[int, str]]:
        for entry in entries:
            call = self._catalogue.call_of(entry)
            if call is not None and call.use.name == HISTORY:
                continue
            record = self._tell(_without_questions(entry))
            if record is not None and record.text:
                yield entry.n, record.text[: self._limit_chars]

    def _scanned(self, entries: Iterable[AnyEntry], query: str) -> list[int]:
        """Look for the query as it stands: for scripts without spaces, and for bits of words."""
        wanted = query.strip().strip('"').casefold()
        found = [n for n, text in self._texts(entries) if wanted in text.casefold()]
        return found[::-1]


def _without_questions(entry: AnyEntry) -> AnyEntry:
    """Leave out calls of the history itself."""
    if not isinstance(entry, Replied):
        return entry
    kept = tuple(b for b in entry.content if not (isinstance(b, ToolUse) and b.name == HISTORY))
    return entry if len(kept) == len(entry.content) else structs.replace(entry, content=kept)
