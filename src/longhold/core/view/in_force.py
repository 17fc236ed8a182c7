"""Find the entries of a log that are in force after undo, redo and rewind.

An undo is also a veto. Stages do not automatically act on the same targets again. The gauge ignores
sizes reported between an entry and its undo.
"""

from bisect import bisect_left
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from longhold.core.log import entries as log


@dataclass(frozen=True, slots=True)
class InForce:
    dead: frozenset[int] = frozenset()  # undone entries and entries that depend on them
    vetoes: frozenset[int | str] = frozenset()  # messages and tool uses that undone entries changed
    spans: tuple[tuple[int, int], ...] = ()

    def is_distrusted(self, n: int) -> bool:
        """Return whether the size reported at entry `n` belongs to a view that was later undone."""
        i = bisect_left(self.spans, (n,)) - 1
        return i >= 0 and n < self.spans[i][1]

    def add_entry(self, entry: log.ViewChange) -> "InForce":
        if _rests_on_any(entry, self.dead):
            return replace(self, dead=self.dead | {entry.n})
        return self


def find_in_force(entries: Iterable[log.AnyEntry]) -> InForce:
    shaped: dict[int, log.ViewChange] = {}
    frames: list[log.Framed] = []
    undone: set[int] = set()
    spans: list[tuple[int, int]] = []
    gone: set[int] = set()
    said: list[int] = []
    for entry in entries:
        if isinstance(entry, _TAKEN_BACK):
            said.append(entry.n)
        elif isinstance(entry, log.Rewound):
            first = bisect_left(said, entry.after + 1)
            gone.update(said[first:])
            del said[first:]
            spans.append((entry.after, entry.n))
        if isinstance(entry, log.ViewChange):
            shaped[entry.n] = entry
        elif isinstance(entry, log.Undone | log.Redone) and entry.target in shaped:
            (undone.add if isinstance(entry, log.Undone) else undone.discard)(entry.target)
            spans.append((entry.target, entry.n))
        elif isinstance(entry, log.Framed) and entry.rests_on:
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


_TAKEN_BACK = (log.Said, log.Replied, log.Ran, log.Asked)
"""Entries that a rewind removes. Requests are included, because they describe the old view."""


def _join_spans(spans: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Join overlapping spans, so that bisection finds the span of a number."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if joined and first < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return tuple(joined)


def _rests_on_any(
    entry: log.ViewChange, dead: AbstractSet[int], gone: AbstractSet[int] = frozenset()
) -> bool:
    """Return whether an entry depends on one of these. Snips and pins survive a rewind."""
    spared = gone if isinstance(entry, log.Snipped | log.Pinned) else ()
    return any(n in dead and n < entry.n and n not in spared for n in references(entry))


def references(entry: log.ViewChange) -> tuple[int, ...]:
    match entry:
        case log.Snipped(targets=targets) | log.Pinned(targets=targets):
            return targets + entry.rests_on
        case log.Collapsed(first=first, last=last) | log.Compacted(first=first, last=last):
            return (first, last, *entry.rests_on)
        case log.Restored(compaction=compaction):
            return (compaction, *entry.rests_on)
    return entry.rests_on


def targets(entry: log.ViewChange) -> frozenset[int | str]:
    match entry:
        case log.Spilled(tool_use_id=id):
            return frozenset({id})
        case log.Cleared(ids=ids, inputs=inputs, thinking=thinking):
            return frozenset({*ids, *(short.tool_use_id for short in inputs), *thinking})
        case log.Snipped(targets=numbers) | log.Pinned(targets=numbers):
            return frozenset(numbers)
        case log.Collapsed(first=first, last=last) | log.Compacted(first=first, last=last):
            return frozenset({first, last})
    return frozenset()
