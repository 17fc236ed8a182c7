"""Which entries are in force: what undo and redo have left of a log.

Undoing an entry takes with it whatever rests on it. It is also a veto: stages do not act
on the same targets again of their own accord. And a size that a provider reported between
an entry and its undo was that of another view, so the gauge must not trust it.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from holdfast.entries import AnyEntry, Redone, Shaped, Undone, references, targets


@dataclass(frozen=True, slots=True)
class Fate:
    """The entries not in force, and what follows from that."""

    dead: frozenset[int] = frozenset()
    """Numbers of entries that were undone or rest on one that was."""
    vetoes: frozenset[int | str] = frozenset()
    """Message numbers and tool use ids that undone entries acted on."""
    spans: tuple[tuple[int, int], ...] = ()
    """From an entry to its undo or redo."""

    def distrusts(self, n: int) -> bool:
        """Say whether the size reported at entry `n` was that of a view that is no more."""
        return any(first < n < last for first, last in self.spans)

    def joined_by(self, entry: Shaped) -> "Fate":
        """Take in a new entry: one that rests on a dead one is dead from the start."""
        if _rests_on_any(entry, self.dead):
            return replace(self, dead=self.dead | {entry.n})
        return self


def fate(entries: Iterable[AnyEntry]) -> Fate:
    """Work out which entries undo and redo have left in force."""
    shaped: dict[int, Shaped] = {}
    undone: set[int] = set()
    spans: list[tuple[int, int]] = []
    for entry in entries:
        if isinstance(entry, Shaped):
            shaped[entry.n] = entry
        elif isinstance(entry, Undone | Redone) and entry.target in shaped:
            (undone.add if isinstance(entry, Undone) else undone.discard)(entry.target)
            spans.append((entry.target, entry.n))
    if not spans:
        return Fate()
    dead = set(undone)
    for n, shaping in shaped.items():
        if _rests_on_any(shaping, dead):
            dead.add(n)
    vetoes = frozenset(target for n in undone for target in targets(shaped[n]))
    return Fate(dead=frozenset(dead), vetoes=vetoes, spans=tuple(spans))


def _rests_on_any(entry: Shaped, dead: AbstractSet[int]) -> bool:
    """Say whether an entry rests on one of these; only what came before can carry it."""
    return any(n in dead and n < entry.n for n in references(entry))
