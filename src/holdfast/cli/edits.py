"""What `undo`, `redo` and `pin` share: writing to a session of ours, and listing its changes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from holdfast.cli.show import plain, tokens
from holdfast.log.entries import AnyEntry, Redone, Undone, ViewChange
from holdfast.log.store import FileStore
from holdfast.reports.explain import explain
from holdfast.settings import load_settings
from holdfast.turn.engine import Engine
from holdfast.view import fold


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedChange:
    """One entry that changed what the model sees."""

    n: int
    kind: str
    state: str
    """In force, undone, or gone with something that was undone."""
    text: str
    saved_tokens: int


@contextmanager
def writing(session: str) -> Iterator[Engine]:
    """Become a session's writer for one entry; tools that a dead process left open stay as they are."""
    engine = Engine(FileStore().open(session), load_settings())
    try:
        yield engine
    finally:
        engine.log.close()


def changes(history: list[AnyEntry]) -> list[ListedChange]:
    """List what changed the view, oldest first."""
    dead, undone = fold(history).in_force.dead, _undone(history)
    shaped = {entry.n for entry in history if isinstance(entry, ViewChange)}
    acts = (act for turn in explain(history) for act in turn.acts if act.n in shaped)
    return [
        ListedChange(
            n=act.n,
            kind=act.kind,
            state="undone" if act.n in undone else "gone with it" if act.n in dead else "in force",
            text=act.text,
            saved_tokens=act.saved_tokens,
        )
        for act in acts
    ]


def _undone(history: list[AnyEntry]) -> set[int]:
    undone: set[int] = set()
    for entry in history:
        if isinstance(entry, Undone):
            undone.add(entry.target)
        elif isinstance(entry, Redone):
            undone.discard(entry.target)
    return undone


def change_line(change: ListedChange) -> str:
    """Write one change for people."""
    saved = f"  saved {tokens(change.saved_tokens)}" if change.saved_tokens > 0 else ""
    return f"[{change.n}] {change.kind}, {change.state}: {plain(change.text)}{saved}"
