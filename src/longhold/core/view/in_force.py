"""Which entries are in force: what undo and redo have left of a log.

Undoing an entry takes with it whatever rests on it. It is also a veto: stages do not act on the
same targets again by themselves. And a size that a provider reported between an entry and its undo
was that of another view, so the gauge must not trust it. A rewind takes what was said since an
entry, and the summaries that cover some of it.
"""

from bisect import bisect_left
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from longhold.core.log.entries import (
    AnyEntry,
    Asked,
    Cleared,
    Collapsed,
    Compacted,
    Framed,
    Pinned,
    Ran,
    Redone,
    Replied,
    Restored,
    Rewound,
    Said,
    Snipped,
    Spilled,
    Undone,
    ViewChange,
)


@dataclass(frozen=True, slots=True)
class InForce:
    """The entries that are not in force, and what follows from that."""

    dead: frozenset[int] = frozenset()
    """Numbers of entries that were undone or rest on one that was."""
    vetoes: frozenset[int | str] = frozenset()
    """Message numbers and tool use ids that undone entries acted on."""
    spans: tuple[tuple[int, int], ...] = ()
    """From an entry to its undo or redo, in order and apart from one another."""

    def is_distrusted(self, n: int) -> bool:
        """Return whether the size reported at entry `n` is that of a view that was undone since."""
        i = bisect_left(self.spans, (n,)) - 1
        return i >= 0 and n < self.spans[i][1]

    def add_entry(self, entry: ViewChange) -> "InForce":
        if _rests_on_any(entry, self.dead):
            return replace(self, dead=self.dead | {entry.n})
        return self


def find_in_force(entries: Iterable[AnyEntry]) -> InForce:
    shaped: dict[int, ViewChange] = {}
    frames: list[Framed] = []
    undone: set[int] = set()
    spans: list[tuple[int, int]] = []
    gone: set[int] = set()
    said: list[int] = []
    """Entries that a rewind may take, in order."""
    for entry in entries:
        if isinstance(entry, _TAKEN_BACK):
            said.append(entry.n)
        elif isinstance(entry, Rewound):
            first = bisect_left(said, entry.after + 1)
            gone.update(said[first:])
            del said[first:]
            spans.append((entry.after, entry.n))
        if isinstance(entry, ViewChange):
            shaped[entry.n] = entry
        elif isinstance(entry, Undone | Redone) and entry.target in shaped:
            (undone.add if isinstance(entry, Undone) else undone.discard)(entry.target)
            spans.append((entry.target, entry.n))
        elif isinstance(entry, Framed) and entry.rests_on:
            frames.append(entry)
    if not spans:
        return InForce()
    dead = undone | gone
    for n, shaping in shaped.items():
        if _rests_on_any(shaping, dead, gone):
            dead.add(n)
    dead.update(frame.n for frame in frames if not dead.isdisjoint(frame.rests_on))
    vetoes = frozenset(target for n in undone for target in targets(shaped[n]))
    return InForce(dead=frozenset(dead), vetoes=vetoes, spans=_join_spans(spans))


_TAKEN_BACK = (Said, Replied, Ran, Asked)
"""What a rewind takes. A request that was sent since is no measure of what is left."""


def _join_spans(spans: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Join overlapping spans, so that a number is found in one of them by bisection."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if joined and first < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return tuple(joined)


def _rests_on_any(
    entry: ViewChange, dead: AbstractSet[int], gone: AbstractSet[int] = frozenset()
) -> bool:
    """Return whether an entry rests on one of these; only earlier entries count.

    Snips and pins hold for those of their messages that a rewind left.
    """
    spared = gone if isinstance(entry, Snipped | Pinned) else ()
    return any(n in dead and n < entry.n and n not in spared for n in references(entry))


def references(entry: ViewChange) -> tuple[int, ...]:
    """List the numbers of the entries that a view change rests on."""
    match entry:
        case Snipped(targets=targets) | Pinned(targets=targets):
            return targets + entry.rests_on
        case Collapsed(first=first, last=last) | Compacted(first=first, last=last):
            return (first, last, *entry.rests_on)
        case Restored(compaction=compaction):
            return (compaction, *entry.rests_on)
    return entry.rests_on


def targets(entry: ViewChange) -> frozenset[int | str]:
    """Return what a view change acts on: message numbers and tool use ids."""
    match entry:
        case Spilled(tool_use_id=id):
            return frozenset({id})
        case Cleared(ids=ids, inputs=inputs, thinking=thinking):
            return frozenset({*ids, *(short.tool_use_id for short in inputs), *thinking})
        case Snipped(targets=numbers) | Pinned(targets=numbers):
            return frozenset(numbers)
        case Collapsed(first=first, last=last) | Compacted(first=first, last=last):
            return frozenset({first, last})
    return frozenset()
