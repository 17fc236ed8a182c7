"""Which messages and compactions are in force while a conversation is read.

So the reader knows what a compaction covers, and what going back to an earlier message takes back.
"""

from typing import Literal, NamedTuple


class Cut(NamedTuple):
    """What a compaction covered, and what it kept word for word."""

    covered: list[int]
    kept: list[int]

    @property
    def kind(self) -> Literal["full", "from", "up_to"]:
        if not self.kept:
            return "full"
        return "up_to" if self.covered[0] < self.kept[0] else "from"


class RewoundEntries(NamedTuple):
    """What going back to an earlier message takes out of force."""

    compactions: list[int]
    messages: list[int]


class Standing:
    def __init__(self) -> None:
        self._shown: list[int] = []
        self._compactions: dict[int, list[int]] = {}
        """Compactions in force, each with the messages that were in force before it."""

    def add(self, n: int) -> None:
        self._shown.append(n)

    def cut(self, head: int, tail: int) -> Cut:
        """Split what is in force into what a compaction covers and the segment it keeps."""
        shown = self._shown
        before = [n for n in shown if n < head]
        kept = [n for n in shown if head <= n <= tail]
        if not kept:
            return Cut(shown, [])
        if before:
            return Cut(before, [n for n in shown if n >= head])
        return Cut([n for n in shown if n > tail], kept)

    def rests_on(self, cut: Cut) -> tuple[int, ...]:
        """List the compactions whose summaries a new one covers."""
        return tuple(n for n in self._compactions if n in cut.covered)

    def compact(self, n: int, cut: Cut) -> None:
        self._compactions[n] = self._shown
        self._shown = [*cut.kept, n] if cut.kind == "from" else [n, *cut.kept]

    def go_back(self, place: int) -> RewoundEntries:
        """Take everything after a message out of force, and compactions that covered more."""
        undone = [n for n in reversed(self._compactions) if n > place]
        for n in undone:
            self._shown = self._compactions.pop(n) + [m for m in self._shown if m > n]
        left = RewoundEntries(undone, [n for n in self._shown if n > place])
        self._shown = [n for n in self._shown if n <= place]
        return left
