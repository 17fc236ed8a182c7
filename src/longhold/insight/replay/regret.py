"""Regret: content that a later call or answer needed after it had left the view. A result is needed
if a later call requests its content again or edits the file it read. A source is needed if a later
answer uses an exact name that only hidden messages contain. Each source counts once, because the
model would then have it again.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from longhold.core.log.entries import AnyEntry, Compacted, Ran, Replied, Restored, Said
from longhold.core.messages import JsonObject, Text, ToolUse, text_of
from longhold.core.messages.measure import Measure
from longhold.core.tools.describe import Describe, Described, description_of
from longhold.core.tools.protocol import ToolKind
from longhold.core.tools.recovered import restored_head
from longhold.core.view import View
from longhold.core.view.items import Round, Spoken
from longhold.insight.replay.recorded_session import RecordedSession

SERVED_SHARE = 0.9
"""The share of lines that an earlier result must contain. Less means that the file changed."""
READ = "read "
_NUMBER = re.compile(r"^\s*\d+(→|\t|\||:)")
"""Line numbers of read tools. They are removed because edits above shift them."""


class SeenResult(NamedTuple):
    tool_use_id: str
    kind: ToolKind
    call: int
    text: str
    lines: frozenset[str]


class Need(NamedTuple):
    result: SeenResult
    age: int


@dataclass(slots=True)
class Needs:
    """Follows a session and returns, for each tool result, the earlier result that it needed."""

    describe: Describe = description_of
    calls: int = 0
    _response: str = ""
    _open: dict[str, ToolUse] = field(default_factory=dict)
    _seen: dict[str, list[SeenResult]] = field(default_factory=lambda: defaultdict(list))
    _touched: dict[str, None] = field(default_factory=dict)
    """Files that were read or edited, newest last."""

    def follow(self, entry: AnyEntry) -> Need | None:
        match entry:
            case Replied(response_id=response, content=content):
                self.calls += not response or response != self._response
                self._response = response
                self._open |= {block.id: block for block in content if isinstance(block, ToolUse)}
            case Ran(tool_use_id=id) if use := self._open.pop(id, None):
                return self._take(use, entry)
        return None

    def results(self) -> list[SeenResult]:
        found = {one.tool_use_id: one for many in self._seen.values() for one in many}
        return sorted(found.values(), key=lambda one: one.call)

    def newest_files(
        self, count: int, without: Iterable[str] = ()
    ) -> Iterator[tuple[str, list[SeenResult]]]:
        passed = {READ + path for path in without}
        read = (asked for asked in reversed(self._touched) if self._seen[asked])
        for asked in islice((asked for asked in read if asked not in passed), count):
            yield asked.removeprefix(READ), self._seen[asked][::-1]

    def _take(self, use: ToolUse, ran: Ran) -> Need | None:
        tool, text = self.describe(use.name), text_of(ran.content)
        if tool.kind in ("read", "write") and not ran.is_error:
            self._touch(tool.paths_in(use.input))
        if not tool.is_clearable or ran.is_error:
            return None
        if tool.kind == "write":
            return self._find_edited(tool, use.input)
        result = SeenResult(use.id, tool.kind, self.calls, text, frozenset(_lines(text)))
        found: Need | None = None
        for question in questions(use, tool):
            served = (one for one in reversed(self._seen[question]) if _serves(one, result))
            earlier = next(served, None)
            if earlier is not None and found is None:
                found = Need(earlier, self.calls - earlier.call)
            self._seen[question].append(result)
        return found

    def _touch(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._touched.pop(READ + path, None)
            self._touched[READ + path] = None

    def _find_edited(self, tool: Described, given: JsonObject) -> Need | None:
        """Return the newest reading of the edited file, which an edit that replaces text needs."""
        if not any("old" in key or key == "edits" for key in given):
            return None
        read = [one for path in tool.paths_in(given) for one in self._seen[READ + path][-1:]]
        return Need(read[0], self.calls - read[0].call) if read else None


def questions(use: ToolUse, tool: Described) -> tuple[str, ...]:
    if tool.kind == "read" and (paths := tool.paths_in(use.input)):
        return tuple(READ + path for path in paths)
    return (f"{use.name} {msgspec.json.encode(use.input, order='sorted').decode()}",)


def _lines(text: str) -> Iterator[str]:
    return (_NUMBER.sub("", line).strip() for line in text.splitlines())


def _serves(earlier: SeenResult, later: SeenResult) -> bool:
    if later.kind != "read":
        return earlier.text == later.text
    return len(later.lines & earlier.lines) >= SERVED_SHARE * len(later.lines)


NEWEST_SOURCES = 8
"""How many of a name's newest sources are checked, in addition to its first source."""


CLEARED = "cleared and asked again"
COMPACTED = "compacted and asked again"
ASKED_AGAIN = (CLEARED, COMPACTED)


class RegretSource(NamedTuple):
    n: int
    tool_use_id: str
    kind: str
    """`result`, `message` or `answer`, or one of `ASKED_AGAIN`."""
    measure: Measure


@dataclass(slots=True)
class Regrets:
    recording: RecordedSession
    view: Callable[[], View]
    number: Callable[[int], int]
    """Returns the number of a recorded entry in the replay's log, or 0 if it is missing."""
    needs: Needs = field(default_factory=Needs)
    restored: frozenset[str] = frozenset()
    _offered: dict[str, list[str]] = field(default_factory=dict)
    """The results in each text that the next compaction may restore."""
    _holders: dict[str, list[RegretSource]] = field(default_factory=lambda: defaultdict(list))
    _results: dict[str, RegretSource] = field(default_factory=dict)
    _back: set[int] = field(default_factory=set)
    """Sources that were missed once. They count as restored."""

    def offer(self, files: int, chars: int, *, without: Iterable[str] = ()) -> list[str]:
        """Return the files that were read last, newest first, each with all readings that fit."""
        self._offered = {}
        for path, readings in self.needs.newest_files(files, without):
            ids, text = _fit_readings(readings, chars)
            self._offered[f"{restored_head(Path(path))}]\n{text}"] = ids
        return list(self._offered)

    def see(self, made: AnyEntry) -> None:
        """Follow a change made by the replay. An offered text may have been too long."""
        match made:
            case Compacted():
                self.restored = frozenset()
            case Restored(content=content):
                texts = [block.text for block in content if isinstance(block, Text)]
                self.restored = frozenset(
                    id for text in texts for id in self._offered.get(text, ())
                )

    def follow(self, entry: AnyEntry) -> Iterator[RegretSource]:
        """Follow an entry of the replay's log, and yield the sources that it missed."""
        need = self.needs.follow(entry)
        if need is not None and (missed := self._find_missed_result(need)) is not None:
            is_there = self.view().round_of(missed.tool_use_id) is not None
            yield missed._replace(kind=CLEARED if is_there else COMPACTED)
        if isinstance(entry, Replied):
            yield from self._find_missed_names(entry)
        source = _source(entry)
        if source is None or not self._is_placed(source):
            return
        if source.tool_use_id:
            self._results[source.tool_use_id] = source
        for name in self.recording.names(entry):
            self._holders[name].append(source)

    def forget(self, numbers: Iterable[int]) -> None:
        """Treat these messages as removed by the recording itself."""
        gone = [one.n for id, one in self._results.items() if self.view().round_of(id) is None]
        self._back.update(numbers, gone)

    def _is_placed(self, source: RegretSource) -> bool:
        """Return whether the view contains the source. Return False for a result without a call."""
        if source.tool_use_id:
            return self.view().round_of(source.tool_use_id) is not None
        return self.view().item_of(self.number(source.n)) is not None

    def _find_missed_result(self, need: Need) -> RegretSource | None:
        source = self._results.get(need.result.tool_use_id)
        if source is None or source.n in self._back:
            return None
        if source.tool_use_id in self.restored or self._find_shown(source) is None:
            return None
        self._back.add(source.n)
        return source

    def _find_missed_names(self, entry: Replied) -> Iterator[RegretSource]:
        summaries: str | None = None
        for name in self.recording.names(entry):
            holders = self._holders.get(name)
            if not holders or any(self._has(holder, name) for holder in _choose_likely(holders)):
                continue
            if summaries is None:
                summaries = self._summaries()
            if _shorten_name(name) in summaries:
                continue
            newest = holders[-1]
            if newest.n not in self._back:
                self._back.add(newest.n)
                yield newest

    def _has(self, source: RegretSource, name: str) -> bool:
        if source.n in self._back or source.tool_use_id in self.restored:
            return True
        shown = self._find_shown(source)
        return shown is None or name in shown

    def _find_shown(self, source: RegretSource) -> str | None:
        """Return the text shown instead of a source ("" if none), or None if all of it is shown."""
        view = self.view()
        if source.tool_use_id:
            return _find_result_text(view, source.tool_use_id)
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


def _shorten_name(name: str) -> str:
    """Return the part of a name that a summary must contain: of a path, its last two parts."""
    return "/".join(name.rstrip("/").split("/")[-2:])


def _fit_readings(readings: list[SeenResult], chars: int) -> tuple[list[str], str]:
    """Return the newest reading with matching lines of older ones, and the ids shown in full."""
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


def _choose_likely(holders: list[RegretSource]) -> list[RegretSource]:
    return [*reversed(holders[-NEWEST_SOURCES:]), holders[0]]


def _find_result_text(view: View, id: str) -> str | None:
    owner = view.round_of(id)
    result = owner.result_of(id) if owner is not None else None
    if result is None:
        return ""
    instead = result.placeholder("seen")
    if instead is not None and instead.same_as:
        return _find_result_text(view, instead.same_as)
    return instead.text if instead is not None else None
