"""Pin messages, so that every compaction keeps them word for word, if necessary as a copy."""

from collections.abc import Iterable, Sequence

from longhold.core.log.entries import Collapsed, Compacted, Pinned, Restored, Snipped, ViewChange
from longhold.core.messages import Text, text_of
from longhold.core.tools.history.history import History
from longhold.core.turn.engine import Engine
from longhold.core.view import View
from longhold.errors import NotInHistory

WHY = "the user asked for it"


def pin(engine: Engine, numbers: Sequence[int]) -> None:
    """Pin messages. If any of them is not in the log, pin none."""
    gone = [n for n in numbers if engine.view.item_of(n) is None]
    made = [_copy(engine, n) for n in gone if not _copies(engine.view, [n])]
    engine.record(Pinned(targets=tuple(numbers), why=WHY))
    for copy in made:
        engine.record(copy)
    if copies := _copies(engine.view, gone):
        engine.record(Pinned(targets=copies, why=WHY))


def unpin(engine: Engine, numbers: Sequence[int]) -> None:
    for n in numbers:
        if engine.view.item_of(n) is None and not _copies(engine.view, [n]):
            raise NotInHistory(
                f"message {n} is not in the view; `longhold pin` lists the pinned messages"
            )
    targets = (*numbers, *_copies(engine.view, numbers))
    engine.record(Pinned(targets=targets, on=False, why=WHY))


def list_pinned(view: View) -> list[tuple[int, str]]:
    originals = {
        entry.n: entry.rests_on[0]
        for entry in view.history
        if isinstance(entry, Restored) and entry.rests_on
    }
    return [
        (originals.get(item.id, item.id), text_of(item.content))
        for item in view.items
        if view.is_pinned(item)
    ]


def _copies(view: View, numbers: Iterable[int]) -> tuple[int, ...]:
    wanted = set(numbers)
    return tuple(
        entry.n
        for entry in view.history
        if isinstance(entry, Restored) and wanted.intersection(entry.rests_on)
        if view.item_of(entry.n) is not None
    )


def _copy(engine: Engine, n: int) -> Restored:
    change = _find_removal(engine.view, n)
    history = History(
        lambda: engine.view.history, directory=engine.directory, results=engine.results
    )
    opened = history.open(str(n))
    history.close()
    text = f"[{opened.title}, kept word for word because the user pinned it]\n{opened.page.text}"
    return Restored(
        compaction=change.n,
        content=(Text(text=text), *opened.media),
        rests_on=(n,),
        why=f"#{n} was pinned",
    )


def _find_removal(view: View, n: int) -> ViewChange:
    for entry in reversed(view.history):
        match entry:
            case Compacted(first=first, last=last) | Collapsed(first=first, last=last):
                is_it = first <= n <= last
            case Snipped(targets=targets):
                is_it = n in targets
            case _:
                continue
        if is_it and entry.n not in view.in_force.dead:
            return entry
    raise NotInHistory(f"there is no message {n}; `longhold history` finds its number")
