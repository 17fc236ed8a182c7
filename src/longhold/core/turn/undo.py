"""Undo and redo changes of the view. Both add entries, and the change stays in the log."""

from collections.abc import Callable

from longhold.core.log import entries as log
from longhold.core.turn.engine import Engine
from longhold.core.view.in_force import find_in_force
from longhold.errors import NotInHistory

UNDOABLE = (log.Cleared, log.Collapsed, log.Compacted, log.Snipped)
"""By default, undo reverts the newest of these changes. Any other change must be named."""


def undo(engine: Engine, n: int = 0) -> str:
    """Undo a change and describe it. The default is the newest that removed history."""
    dead = engine.view.in_force.dead
    found = _find(engine, n) if n else _find_newest(engine, lambda n: n not in dead)
    if found is None:
        raise NotInHistory("there is no change of the view to undo")
    if found.n in dead:
        raise NotInHistory(f"#{found.n} is already undone; `/redo {found.n}` re-applies it")
    if isinstance(found, log.Rewound):
        raise NotInHistory(
            f"#{found.n} comes from the program's message list; pass the earlier list again"
        )
    if _is_elsewhere(found):
        raise NotInHistory(f"#{found.n} cannot be undone: the provider made it or requires it")
    engine.record(log.Undone(target=found.n))
    return f"#{found.n} was undone: {found.why or 'the view does not include it any more'}"


def redo(engine: Engine, n: int = 0) -> str:
    found = _find(engine, n) if n else _find_newest(engine, _list_undone(engine).__contains__)
    if found is None or found.n not in engine.view.in_force.dead:
        raise NotInHistory("there is no undone change to re-apply")
    redone = log.Redone(n=engine.view.history[-1].n + 1, target=found.n)
    if found.n in find_in_force((*engine.view.history, redone)).dead:
        raise NotInHistory(
            f"#{found.n} depends on a change that is also undone; re-apply that first"
        )
    engine.record(redone)
    return f"#{found.n} is re-applied: {found.why or 'the view includes it again'}"


def _find_newest(engine: Engine, is_wanted: Callable[[int], bool]) -> log.ViewChange | None:
    changes = (entry for entry in reversed(engine.view.history) if isinstance(entry, UNDOABLE))
    return next((one for one in changes if is_wanted(one.n) and not _is_elsewhere(one)), None)


def _is_elsewhere(entry: log.ViewChange) -> bool:
    """Return whether the provider made or requires this change, so that no entry can undo it."""
    return isinstance(entry, log.Cleared) and entry.how in ("server", "limit")


def _list_undone(engine: Engine) -> set[int]:
    """Return the changes that were undone themselves, not through a change they depend on."""
    undone: set[int] = set()
    for entry in engine.view.history:
        match entry:
            case log.Undone(target=target):
                undone.add(target)
            case log.Redone(target=target):
                undone.discard(target)
    return undone


def _find(engine: Engine, n: int) -> log.ViewChange:
    entry = next((entry for entry in reversed(engine.view.history) if entry.n == n), None)
    if not isinstance(entry, log.ViewChange):
        raise NotInHistory(f"#{n} is not a change of the view; `longhold explain` lists them")
    return entry
