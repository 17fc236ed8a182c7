"""Snip: remove messages that the user or a tool marked as dropped, except in the newest turn."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

from msgspec import structs

from longhold.core.log.cursor import LogCursor
from longhold.core.log.entries import AnyEntry, Dropped, Snipped
from longhold.core.policy.decide import CarryOut, SpaceDecision
from longhold.core.stages.space import Part, drops_thinking
from longhold.core.turn.engine import Engine
from longhold.core.view import View
from longhold.core.view.items import Item, Spoken
from longhold.errors import NotInHistory

Marks: TypeAlias = Mapping[int, Dropped]


class Snip(Part):
    steps = ("snip",)

    def __init__(self) -> None:
        self._marks: dict[int, Dropped] = {}
        self._cursor = LogCursor()

    def facts(self, engine: Engine) -> dict[str, Any]:
        self._read_marks(engine.view.history)
        if not self._marks:
            return {}
        drops = drops_thinking(engine)
        return {"marked": partial(plan_snip, engine.view, self._marks, drops=drops)}

    async def carry_out(self, engine: Engine, decision: SpaceDecision) -> None:
        assert isinstance(decision.plan, CarryOut)
        engine.record(structs.replace(decision.plan.subject, rule=decision.rule))

    def _read_marks(self, history: Sequence[AnyEntry]) -> None:
        for entry in self._cursor.advance(history):
            match entry:
                case Dropped(targets=targets, on=True):
                    self._marks |= dict.fromkeys(targets, entry)
                case Dropped(targets=targets) | Snipped(targets=targets):
                    for n in targets:
                        self._marks.pop(n, None)


def plan_snip(view: View, marks: Marks, *, drops: bool = False) -> Snipped | None:
    """Choose the marked messages to remove now. A user's undo overrides a tool's marks."""
    end = newest_turn(view)
    chosen = {
        n: mark
        for n, mark in marks.items()
        if (item := view.item_of(n)) is not None
        and item.order < end
        and not _explain_undroppable(view, item)
        and (mark.by == "user" or n not in view.in_force.vetoes)
    }
    if not chosen:
        return None
    reasons = dict.fromkeys(mark.why or f"dropped by the {mark.by}" for mark in chosen.values())
    return Snipped(targets=tuple(sorted(chosen)), drops_thinking=drops, why="; ".join(reasons))


def newest_turn(view: View) -> int:
    """Return the order of the user's last message. Nothing from there on is removed."""
    for item in reversed(view.items):
        if isinstance(item, Spoken) and item.is_asked():
            return item.order
    return 0


def drop(
    engine: Engine, numbers: Iterable[int], *, by: Literal["user", "tool"] = "user", why: str = ""
) -> Dropped:
    wanted = tuple(dict.fromkeys(numbers))
    for n in wanted:
        item = engine.view.item_of(n)
        if item is None:
            raise NotInHistory(f"#{n} is not in the view; `longhold history` finds it")
        if reason := _explain_undroppable(engine.view, item):
            raise NotInHistory(f"#{n} {reason}")
    mark = engine.record(Dropped(targets=wanted, by=by, why=why))
    assert isinstance(mark, Dropped)
    return mark


def keep(engine: Engine, numbers: Iterable[int]) -> None:
    """Unmark messages. A message that was already removed returns only by undoing the removal."""
    engine.record(Dropped(targets=tuple(dict.fromkeys(numbers)), on=False))


def _explain_undroppable(view: View, item: Item) -> str:
    if view.is_pinned(item):
        return "is pinned; unpin it first"
    if isinstance(item, Spoken) and item.kind in ("summary", "restored"):
        return "is the summary of a compaction; undo the compaction instead"
    return ""
