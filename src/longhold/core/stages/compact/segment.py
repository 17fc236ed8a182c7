"""Choose which part of a view a compaction covers.

An answer and its results are one item, so a segment can be cut between any two items. Messages and
results that the model has not answered yet are never covered.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from longhold.core.log.entries import Compacted, SpokenContent
from longhold.core.messages import text_of
from longhold.core.messages.measure import measure_content
from longhold.core.stages.compact.owner import SummaryKind
from longhold.core.tools.describe import description_of
from longhold.core.tools.recovered import UNCHANGED
from longhold.core.view import View
from longhold.core.view.items import Item, Result, Round, Spoken
from longhold.core.view.tokens import CLAUDE, weigh
from longhold.errors import RequestRejected

FEWEST_ITEMS = 2
"""A single message needs no summary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    items: tuple[Item, ...]
    kind: SummaryKind = "full"
    kept: tuple[int, int] | None = None
    pivot: str = ""
    """The text of the message at which a partial compaction begins."""

    @property
    def first(self) -> int:
        return self.items[0].id

    @property
    def last(self) -> int:
        return self.items[-1].id


def whole_segment(view: View, *, again: bool = False) -> Segment | None:
    """Cover everything allowed, or return None if it is too little. `again` allows one summary."""
    end = view.count_compactable()
    if again:
        summaries = [i + 1 for i, item in enumerate(view.items) if is_summary(item)]
        return _cut_at(view, max(end, *summaries[-1:], 0))
    return segment_before(view, end) if end >= FEWEST_ITEMS else None


def segment_before(view: View, start: int) -> Segment | None:
    end = min(start, view.count_compactable())
    return None if all(map(is_summary, view.items[:end])) else _cut_at(view, end)


def _cut_at(view: View, end: int) -> Segment | None:
    """Cover the items before `end`. The round at `end` stays."""
    items, tail = tuple(view.items[:end]), view.items[end:]
    if not any(isinstance(item, Round) for item in tail):
        return Segment(items=items) if items else None
    return Segment(items=items, kind="up_to", kept=(tail[0].id, tail[-1].id)) if items else None


def partial_segment(view: View, kind: SummaryKind, pivot: int) -> Segment:
    """Cover everything from a message on, or up to and including it. Raise if it is too little."""
    item = view.item_of(pivot)
    if item is None or (item.id != pivot and is_summary(item)):
        raise RequestRejected(_explain_missing(view, pivot))
    at = view.items.index(item)
    end = view.count_compactable()
    if kind == "up_to":
        items, kept = view.items[: min(at + 1, end)], view.items[min(at + 1, end) :]
    else:
        items, kept = view.items[at:end], view.items[:at]
    if len(items) < FEWEST_ITEMS:
        raise RequestRejected(f"there is too little to compact at message {pivot}")
    return Segment(
        items=tuple(items),
        kind=kind,
        kept=(kept[0].id, kept[-1].id) if kept else None,
        pivot=text_of(items[0].content) if kind == "from" else "",
    )


def _explain_missing(view: View, n: int) -> str:
    covers = (
        entry
        for entry in reversed(view.history)
        if isinstance(entry, Compacted) and entry.n not in view.in_force.dead
    )
    by = next((entry.n for entry in covers if entry.first <= n <= entry.last), None)
    if by is None:
        return f"message {n} is not in the view; `explain` lists those that are"
    return f"message {n} is in the summary #{by}; `undo {by}` reverts it, or cut at #{by}"


def is_summary(item: Item) -> bool:
    return isinstance(item, Spoken) and item.kind == "summary"


def tokens_of(content: SpokenContent) -> int:
    return round(weigh(measure_content(content), CLAUDE)) + 1


def kept_rounds(view: View, segment: Segment) -> list[Round]:
    gone = {item.order for item in segment.items if not view.is_pinned(item)}
    return [item for item in view.items if isinstance(item, Round) and item.order not in gone]


def shown_paths(rounds: Iterable[Round]) -> Iterator[str]:
    """Yield the files whose full text these rounds contain, because they read or wrote it."""
    for item in rounds:
        for use in item.tool_uses():
            described, result = description_of(use.name), item.result_of(use.id)
            if result is None or result.is_error:
                continue
            is_read = described.kind == "read" and is_whole(result)
            if is_read or (described.kind == "write" and "content" in use.input):
                yield from described.paths_in(use.input)


def is_whole(result: Result) -> bool:
    """Return whether a result is shown in full and not as a reference to another result."""
    return result.placeholder("seen") is None and UNCHANGED not in text_of(result.content)
