"""Regret: what a later call or answer needed while its source had left the view.

Two kinds of need. A result is needed again where a later call asks for what it held, or edits what
was read (`needs`). A source is needed where a call or an answer uses an exact name (a path, an identifier,
an id, an address) that earlier messages held and nothing in the view shows any more. Each source
counts once: the model would have it back then.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from holdfast.log.entries import AnyEntry, Compacted, Ran, Replied, Restored, Said
from holdfast.messages import Text, text_of
from holdfast.messages.measure import Measure
from holdfast.simulator.needs import Need, Needs, SeenResult
from holdfast.simulator.replay.recorded_session import RecordedSession
from holdfast.tools.recovered import restored_head
from holdfast.view import View
from holdfast.view.items import Round, Spoken

NEWEST_SOURCES = 8
"""Of those that hold a name, so many are looked at, and the first: one that shows is found there."""


CLEARED = "cleared and asked again"
COMPACTED = "compacted and asked again"
ASKED_AGAIN = (CLEARED, COMPACTED)


class RegretSource(NamedTuple):
    """A message or a result on record."""

    n: int
    tool_use_id: str
    kind: str
    """`result`, `message` or `answer`; one of `ASKED_AGAIN` for a result that a later call asked for."""
    measure: Measure


@dataclass(slots=True)
class Regrets:
    """Follows a recording, and its replay's view, entry by entry."""

    recording: RecordedSession
    view: Callable[[], View]
    number: Callable[[int], int]
    """The number of a recorded entry in the replay's own log; 0 if it is not there."""
    needs: Needs = field(default_factory=Needs)
    restored: frozenset[str] = frozenset()
    """Results that a compaction brought back."""
    _offered: dict[str, list[str]] = field(default_factory=dict)
    """The results that each text holds which the next compaction may bring back."""
    _holders: dict[str, list[RegretSource]] = field(default_factory=lambda: defaultdict(list))
    _results: dict[str, RegretSource] = field(default_factory=dict)
    _back: set[int] = field(default_factory=set)
    """Sources that were missed once, and would be in the view again."""

    def offer(self, files: int, chars: int, *, without: Iterable[str] = ()) -> list[str]:
        """Return the files read last, the newest first, each with all that was read of it if it fits."""
        self._offered = {}
        for path, readings in self.needs.newest_files(files, without):
            ids, text = _within(readings, chars)
            self._offered[f"{restored_head(Path(path))}]\n{text}"] = ids
        return list(self._offered)

    def see(self, made: AnyEntry) -> None:
        """Take a change of the replay's own: what is offered need not have found room."""
        match made:
            case Compacted():
                self.restored = frozenset()
            case Restored(content=content):
                texts = [block.text for block in content if isinstance(block, Text)]
                self.restored = frozenset(
                    id for text in texts for id in self._offered.get(text, ())
                )

    def follow(self, entry: AnyEntry) -> Iterator[RegretSource]:
        """Take an entry that is in the replay's log; yield the sources that it missed."""
        need = self.needs.follow(entry)
        if need is not None and (missed := self._missed_result(need)) is not None:
            is_there = self.view().round_of(missed.tool_use_id) is not None
            yield missed._replace(kind=CLEARED if is_there else COMPACTED)
        if isinstance(entry, Replied):
            yield from self._missed_names(entry)
        source = _source(entry)
        if source is None or not self._is_placed(source):
            return
        if source.tool_use_id:
            self._results[source.tool_use_id] = source
        for name in self.recording.names(entry):
            self._holders[name].append(source)

    def forget(self, numbers: Iterable[int]) -> None:
        """Take it that the recording itself went on without these messages."""
        gone = [one.n for id, one in self._results.items() if self.view().round_of(id) is None]
        self._back.update(numbers, gone)

    def _is_placed(self, source: RegretSource) -> bool:
        """Return whether the view shows it at all: a result whose call is not on record is not."""
        if source.tool_use_id:
            return self.view().round_of(source.tool_use_id) is not None
        return self.view().item_of(self.number(source.n)) is not None

    def _missed_result(self, need: Need) -> RegretSource | None:
        source = self._results.get(need.result.tool_use_id)
        if source is None or source.n in self._back:
            return None
        if source.tool_use_id in self.restored or self._shown(source) is None:
            return None
        self._back.add(source.n)
        return source

    def _missed_names(self, entry: Replied) -> Iterator[RegretSource]:
        summaries: str | None = None
        for name in self.recording.names(entry):
            holders = self._holders.get(name)
            if not holders or any(self._has(holder, name) for holder in _likely(holders)):
                continue
            if summaries is None:
                summaries = self._summaries()
            if _known_by(name) in summaries:
                continue
            newest = holders[-1]
            if newest.n not in self._back:
                self._back.add(newest.n)
                yield newest

    def _has(self, source: RegretSource, name: str) -> bool:
        if source.n in self._back or source.tool_use_id in self.restored:
            return True
        shown = self._shown(source)
        return shown is None or name in shown

    def _shown(self, source: RegretSource) -> str | None:
        """Return what stands in place of a source, "" for nothing; None if it is shown whole."""
        view = self.view()
        if source.tool_use_id:
            return _shown_result(view, source.tool_use_id)
        item = view.item_of(self.number(source.n))
        if item is None:
            return ""
        if isinstance(item, Round) and item.inputs:
            return f"{text_of(item.content)}\n{item.inputs}"
        return None

    def _summaries(self) -> str:
        items = (item for item in self.view().items if isinstance(item, Spoken))
        return "\n".join(text_of(item.content) for item in items if item.kind != "said")


def _source(entry: AnyEntry) -> RegretSource | None:
    match entry:
        case Ran(n=n, tool_use_id=id, measure=measure):
            return RegretSource(n, id, "result", measure)
        case Said(n=n, measure=measure):
            return RegretSource(n, "", "message", measure)
        case Replied(n=n, measure=measure):
            return RegretSource(n, "", "answer", measure)
    return None


def _known_by(name: str) -> str:
    """Return what of a name a summary must hold: of a path its end, since the root goes without saying."""
    return "/".join(name.rstrip("/").split("/")[-2:])


def _within(readings: list[SeenResult], chars: int) -> tuple[list[str], str]:
    """Show a file's newest reading, and the lines of older ones that fit beside it.

    Also return which of them are shown whole.
    """
    newest = readings[0]
    is_whole = len(newest.text) <= chars
    text, lines = newest.text[:chars], newest.lines if is_whole else frozenset()
    ids = [newest.tool_use_id] if is_whole else []
    for one in readings[1:]:
        more = "\n".join(("", *sorted(one.lines - lines)))
        if len(text) + len(more) <= chars:
            ids.append(one.tool_use_id)
            text, lines = text + more, lines | one.lines
    return ids, text


def _likely(holders: list[RegretSource]) -> list[RegretSource]:
    return [*reversed(holders[-NEWEST_SOURCES:]), holders[0]]


def _shown_result(view: View, id: str) -> str | None:
    owner = view.round_of(id)
    result = owner.result_of(id) if owner is not None else None
    if result is None:
        return ""
    instead = result.placeholder("seen")
    if instead is not None and instead.same_as:
        return _shown_result(view, instead.same_as)
    return instead.text if instead is not None else None
