"""Undo and redo of a change of the view.

Undo is an entry: the view is folded as if the change had never been, with everything that rests
on it, the frame that was made anew for it included. The change stays in the log, so redo is an
entry, too. Both act on what is named by its number, or on the newest there is.
"""

from collections.abc import Iterator

from holdfast.errors import NotInHistory
from holdfast.log.entries import Cleared, Collapsed, Compacted, Redone, Snipped, Undone, ViewChange
from holdfast.turn.engine import Engine

UNDOABLE = (Cleared, Collapsed, Compacted, Snipped)
"""What undo reverts by default; any other change of the view must be named."""


def undo(engine: Engine, n: int = 0) -> str:
    """Undo a change, by default the newest that took history out of the view; describe it."""
    in_force = engine.view.in_force
    found = _find(engine, n) if n else next(_newest(engine, is_dead=False), None)
    if found is None:
        raise NotInHistory("there is no change of the view to undo")
    if found.n in in_force.dead:
        raise NotInHistory(f"#{found.n} is already undone; `/redo {found.n}` re-applies it")
    if _is_elsewhere(found):
        raise NotInHistory(
            f"#{found.n} was done by the provider; switch off `clear.server` to prevent it"
        )
    engine.record(Undone(target=found.n))
    return f"#{found.n} was undone: {found.why or 'the view is as before it'}"


def redo(engine: Engine, n: int = 0) -> str:
    """Re-apply an undone change, by default the newest; describe it."""
    found = _find(engine, n) if n else next(_newest(engine, is_dead=True), None)
    if found is None or found.n not in engine.view.in_force.dead:
        raise NotInHistory("there is no undone change to re-apply")
    engine.record(Redone(target=found.n))
    if found.n in engine.view.in_force.dead:
        raise NotInHistory(
            f"#{found.n} rests on a change that is undone itself; re-apply that first"
        )
    return f"#{found.n} is re-applied: {found.why or 'the view is as after it'}"


def _newest(engine: Engine, *, is_dead: bool) -> Iterator[ViewChange]:
    undone = _undone(engine) if is_dead else frozenset()
    for entry in reversed(engine.view.history):
        if not isinstance(entry, UNDOABLE) or _is_elsewhere(entry):
            continue
        if entry.n in undone if is_dead else entry.n not in engine.view.in_force.dead:
            yield entry


def _is_elsewhere(entry: ViewChange) -> bool:
    """True for a change that the provider made, which no entry of ours can undo."""
    return isinstance(entry, Cleared) and entry.how == "server"


def _undone(engine: Engine) -> frozenset[int]:
    """Return what was undone by name, not along with something else."""
    undone: set[int] = set()
    for entry in engine.view.history:
        match entry:
            case Undone(target=target):
                undone.add(target)
            case Redone(target=target):
                undone.discard(target)
    return frozenset(undone)


def _find(engine: Engine, n: int) -> ViewChange:
    entry = next((entry for entry in reversed(engine.view.history) if entry.n == n), None)
    if not isinstance(entry, ViewChange):
        raise NotInHistory(f"#{n} is not a change of the view; `holdfast explain` lists them")
    return entry
