"""The tool results that may be cleared, oldest first, updated as the view grows.

Refusals in the user's words and results the model has not answered yet are excluded. Weights only
compare parts of a view. For a size in tokens, use the gauge.
"""

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from operator import mul
from typing import NamedTuple

from msgspec.structs import astuple

from longhold.core.log.cursor import LogCursor
from longhold.core.log.entries import (
    AnyEntry,
    Cleared,
    Collapsed,
    Compacted,
    Pinned,
    Redone,
    Rewound,
    Said,
    Snipped,
    Spilled,
    Undone,
)
from longhold.core.messages import ToolUse
from longhold.core.messages.measure import Measure
from longhold.core.models.capabilities import capabilities
from longhold.core.tools.describe import Describe, Described, description_of
from longhold.core.tools.protocol import unwrap_call
from longhold.core.view import View
from longhold.core.view.items import Item, Result, Round
from longhold.core.view.tokens import CLAUDE

_MOVES = (Cleared, Collapsed, Compacted, Pinned, Redone, Rewound, Snipped, Undone)
"""Entries that change earlier items. After one of them, the whole view is read again."""


def weight(measure: Measure) -> float:
    return float(sum(map(mul, astuple(measure), CLAUDE)))


class Candidate(NamedTuple):
    result: Result
    use: ToolUse
    tool: Described
    order: int
    weight: float
    """The weight of the text that is sent now. For a cleared result, this is the placeholder."""
    before: float
    """The weight of everything before the result's round, excluding the frame."""
    paths: tuple[str, ...] = ()
    round: int = 0
    """The number of the round in the view."""

    @classmethod
    def of(
        cls,
        item: Round,
        use: ToolUse,
        result: Result,
        tool: Described,
        before: float = 0.0,
        round: int = 0,
    ) -> "Candidate":
        instead, paths = result.placeholder("sent"), tool.paths_in(use.input)
        shown = weight(instead.measure if instead else result.measure)
        return cls(result, use, tool, item.order, shown, before, paths, round)

    @property
    def id(self) -> str:
        return self.result.tool_use_id


@dataclass(slots=True)
class Batch:
    results: list[Candidate] = field(default_factory=list)
    weight: float = 0.0

    def add(self, result: Candidate) -> None:
        self.results.append(result)
        self.weight += result.weight

    def without(self, ids: AbstractSet[str]) -> "Batch":
        left = [result for result in self.results if result.id not in ids]
        gone = len(left) < len(self.results)
        return Batch(left, sum(result.weight for result in left)) if gone else self

    def since(self, start: int) -> "Batch":
        left = self.results[start:]
        return Batch(left, sum(result.weight for result in left)) if start else self

    def __len__(self) -> int:
        return len(self.results)

    def __add__(self, other: "Batch") -> "Batch":
        both = sorted((*self.results, *other.results), key=lambda result: result.result.id)
        return Batch(both, self.weight + other.weight)


class Candidates:
    def __init__(
        self,
        describe: Describe = description_of,
        *,
        smallest: float = 0.0,
        is_kept: Callable[[str], bool] = lambda path: False,
    ) -> None:
        self.describe = describe
        self.smallest = smallest
        """Results below this weight are never cleared, but they count among the newest results."""
        self.is_kept = is_kept
        self._view: View | None = None
        self._cursor = LogCursor()
        self._known: dict[int, tuple[Item, float]] = {}
        """Each item with its weight. A changed item is a new object."""
        self._forget()

    def _forget(self) -> None:
        self.newest: list[Candidate] = []
        """Every result that the model has read and still sees, including small results."""
        self.heavy = Batch()
        self.edited = Batch()
        """Results that a cache edit deleted but that requests still contain."""
        self.served = Batch()
        """Results that the provider cleared on its side but that requests still contain."""
        self.unread = 0
        self._pointed: frozenset[str] = frozenset()
        """The ids of results to which unread results refer."""
        self._held: set[str] = set()
        """The ids of results to which uncleared results refer."""
        self.cleared_weight = 0.0
        self._ids: set[str] = set()
        self.rounds = 0
        self._taken = 0
        self._weight = 0.0

    def follow(self, view: View, *, is_forced: bool = False) -> None:
        """Read new entries. `is_forced` also includes results whose clearing the user undid."""
        vetoes = frozenset[int | str]() if is_forced else view.in_force.vetoes
        if view is not self._view or is_forced:
            self._view, self._cursor = None if is_forced else view, LogCursor()
            self._forget()
        if any(self._is_move(entry, view.model) for entry in self._cursor.advance(view.history)):
            self._forget()
            shown = {item.order for item in view.items}
            self._known = {order: one for order, one in self._known.items() if order in shown}
        items = view.items
        # The model has read everything before the last answer.
        end = next((i for i in range(len(items) - 1, -1, -1) if isinstance(items[i], Round)), 0)
        for item in items[self._taken : end]:
            self._take(item, vetoes, is_pinned=view.is_pinned(item))
        self._taken = max(self._taken, end)
        last = items[end] if end < len(items) else None
        self.unread = sum(1 for _ in self._answers(last)) if isinstance(last, Round) else 0
        unread = last.results if isinstance(last, Round) else ()
        self._pointed = frozenset(filter(None, map(_find_original, unread)))

    def batch(self, keep: int) -> Batch:
        """Return all results except the `keep` newest and the results to which these refer."""
        kept = max(0, max(1, keep) - self.unread)
        newest = self.newest[-kept:] if kept else []
        stays = [result for result in newest if result.weight >= self.smallest]
        count = len(self.heavy) - len(stays)
        left = sum(result.weight for result in stays)
        taken = Batch(self.heavy.results[:count], self.heavy.weight - left)
        held = {*self._held, *self._pointed, *(_find_original(one.result) for one in newest)} - {""}
        return taken.without(held) if held else taken

    def _is_move(self, entry: AnyEntry, model: str) -> bool:
        if isinstance(entry, Spilled):
            return entry.tool_use_id in self._ids
        if isinstance(entry, Said):  # some models drop a turn's thinking at its end
            return not entry.hidden and not capabilities(model).keeps_thinking
        return isinstance(entry, _MOVES)

    def _take(self, item: Item, vetoes: AbstractSet[int | str], *, is_pinned: bool) -> None:
        before = self._weight
        self._weight += self._weigh(item)
        if not isinstance(item, Round):
            return
        self.rounds += 1
        self._hold(item, vetoes, is_pinned=is_pinned)
        for use, tool, result in self._answers(item):
            self._ids.add(use.id)
            found = Candidate.of(item, use, result, tool, before, self.rounds)
            if result.cleared is not None and result.cleared.how == "rewritten":
                self.cleared_weight += weight(result.measure) - found.weight
            elif not (is_pinned or use.id in vetoes or any(map(self.is_kept, found.paths))):
                self._file(found)

    def _hold(self, item: Round, vetoes: AbstractSet[int | str], *, is_pinned: bool) -> None:
        references = [result for result in item.results if _find_original(result)]
        goes = {use.id for use, _, _ in self._answers(item)} if references else set()
        for result in references:
            if is_pinned or result.tool_use_id in vetoes or result.tool_use_id not in goes:
                self._held.add(_find_original(result))

    def _file(self, found: Candidate) -> None:
        cleared = found.result.cleared
        if cleared is not None:
            (self.edited if cleared.how == "edited" else self.served).add(found)
            return
        self.newest.append(found)
        if found.weight >= self.smallest:
            self.heavy.add(found)

    def _weigh(self, item: Item) -> float:
        known = self._known.get(item.order)
        if known is None or known[0] is not item:
            known = self._known[item.order] = item, weight(item.measure)
        return known[1]

    def _answers(self, item: Round) -> Iterator[tuple[ToolUse, Described, Result]]:
        results = {result.tool_use_id: result for result in item.results}
        for use in map(unwrap_call, item.tool_uses()):
            tool = self.describe(use.name)
            result = results.get(use.id)
            if tool.is_clearable and result is not None and not result.refused:
                yield use, tool, result


def _find_original(result: Result) -> str:
    return result.spilled.same_as if result.spilled and result.cleared is None else ""
