"""What a log says about its compactions, without what they wrote: kept up to date entry by entry."""

from collections.abc import Sequence

from msgspec import structs

from holdfast.log.cursor import LogCursor
from holdfast.log.entries import AnyEntry, Compacted, Failed, Replied
from holdfast.messages import Usage

ANSWERED = Replied(response_id="", content=(), usage=Usage())
"""Stands for every answer: only how many there were matters."""


class CompactionOutcomes:
    """The compactions, failures and answers of a log, in order."""

    def __init__(self) -> None:
        self._cursor = LogCursor()
        self._entries: list[AnyEntry] = []

    def follow(self, history: Sequence[AnyEntry]) -> Sequence[AnyEntry]:
        if self._cursor.is_past(history):
            self._entries.clear()
        for entry in self._cursor.advance(history):
            match entry:
                case Compacted():
                    self._entries.append(structs.replace(entry, summary=()))
                case Failed():
                    self._entries.append(entry)
                case Replied(usage=Usage()):
                    self._entries.append(ANSWERED)
        return self._entries
