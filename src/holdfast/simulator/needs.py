"""What a session needs again of the results it has seen: the price of information, counted.

A later call needs an earlier result if that already held its answer: the same file read again
without a change in what is shown, the same command or search with the same output, or an edit of
a file, which quotes the text that was read. A command that is run again because something changed
needs nothing of the earlier run.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

import msgspec

from holdfast.log.entries import AnyEntry, Ran, Replied
from holdfast.messages import JsonObject, ToolUse, text_of
from holdfast.messages.measure import measure_text
from holdfast.stages.clear.candidates import weight
from holdfast.tools.describe import Describe, Described, description_of
from holdfast.tools.protocol import ToolKind
from holdfast.view import View

SERVED_SHARE = 0.9
"""Of the lines read again that the earlier result must hold; less means that the file changed."""
AGES = (5, 10, 20, 40, 80)
"""Calls after which the rates of being needed are counted."""
READ = "read "
"""Begins what names a file that was read."""
_NUMBER = re.compile(r"^\s*\d+(→|\t|\||:)")
"""How tools number the lines of a file: the same line has another number after an edit above it."""


class SeenResult(NamedTuple):
    tool_use_id: str
    kind: ToolKind
    call: int
    """How many answers had come by then."""
    text: str
    lines: frozenset[str]


class Need(NamedTuple):
    """An earlier result that a later call needed."""

    result: SeenResult
    age: int
    """Calls between the two."""


@dataclass(slots=True)
class Needs:
    """Follows a session and returns, for each tool result, the earlier one that it needed."""

    describe: Describe = description_of
    calls: int = 0
    _response: str = ""
    _open: dict[str, ToolUse] = field(default_factory=dict)
    _seen: dict[str, list[SeenResult]] = field(default_factory=lambda: defaultdict(list))
    """Results by what was asked for, oldest first."""
    _touched: dict[str, None] = field(default_factory=dict)
    """Files that were read or edited, the newest last."""

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
        """Return every result that could be needed, oldest first."""
        found = {one.tool_use_id: one for many in self._seen.values() for one in many}
        return sorted(found.values(), key=lambda one: one.call)

    def newest_files(
        self, count: int, without: Iterable[str] = ()
    ) -> Iterator[tuple[str, list[SeenResult]]]:
        """Yield the files read or edited last, the newest first, and so the readings of each."""
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
            return self._edited(tool, use.input)
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

    def _edited(self, tool: Described, given: JsonObject) -> Need | None:
        """An edit that replaces text needs the newest reading of its file."""
        if not any("old" in key or key == "edits" for key in given):
            return None
        read = [one for path in tool.paths_in(given) for one in self._seen[READ + path][-1:]]
        return Need(read[0], self.calls - read[0].call) if read else None


def questions(use: ToolUse, tool: Described) -> tuple[str, ...]:
    """Name what a call asks for: a file by its path, anything else by its whole input."""
    if tool.kind == "read" and (paths := tool.paths_in(use.input)):
        return tuple(READ + path for path in paths)
    return (f"{use.name} {msgspec.json.encode(use.input, order='sorted').decode()}",)


def _lines(text: str) -> Iterator[str]:
    return (_NUMBER.sub("", line).strip() for line in text.splitlines())


def _serves(earlier: SeenResult, later: SeenResult) -> bool:
    if later.kind != "read":
        return earlier.text == later.text
    return len(later.lines & earlier.lines) >= SERVED_SHARE * len(later.lines)


def regret(entries: Iterable[AnyEntry]) -> tuple[int, int]:
    """Count the results that had left the view when a later call needed them, and their tokens.

    Each counts once: it would have been got again.
    """
    view, needs, shown = View(), Needs(), set[str]()
    count = tokens = 0
    for entry in entries:
        view.apply(entry)
        if isinstance(entry, Ran):
            shown.add(entry.tool_use_id)
        if (need := needs.follow(entry)) is None or need.result.tool_use_id not in shown:
            continue
        id = need.result.tool_use_id
        owner = view.round_of(id)
        result = owner.result_of(id) if owner and view.item_of(owner.id) else None
        if result is None or result.cleared is not None:
            shown.remove(id)
            count += 1
            tokens += round(weight(measure_text(need.result.text)))
    return count, tokens


def rates(sessions: Iterable[Iterable[AnyEntry]]) -> dict[str, dict[int, tuple[int, int]]]:
    """Count, by kind and age, how many results that grew so old were needed later than that.

    Gives pairs of those needed and all; a session that ended sooner says nothing about an age.
    """
    counted: dict[str, dict[int, tuple[int, int]]] = defaultdict(
        lambda: dict.fromkeys((0, *AGES), (0, 0))
    )
    for entries in sessions:
        needs, oldest = Needs(), dict[str, int]()
        for entry in entries:
            if (need := needs.follow(entry)) is not None:
                oldest[need.result.tool_use_id] = need.age
        for one in needs.results():
            by_age = counted[one.kind]
            for age, (needed, all_) in by_age.items():
                if needs.calls - one.call > age:
                    by_age[age] = needed + (oldest.get(one.tool_use_id, -1) > age), all_ + 1
    return dict(counted)
