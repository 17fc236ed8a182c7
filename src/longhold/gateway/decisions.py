"""Decisions about a session and their expected savings.

A clearing states its own prediction. A spill saves one cache write and all later reads of the
tokens that it removes. A compaction saves later reads of the tokens that it removes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from longhold.core.log.cursor import LogCursor
from longhold.core.log.entries import AnyEntry, Cleared, Compacted, Spilled
from longhold.core.models.prices import cost
from longhold.core.view import View
from longhold.core.view.tokens import default_weights, weigh


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedDecision:
    n: int
    kind: str
    cost_usd: float
    """The expected extra cost of the first call, which is negative for a saving."""
    saves_usd: float
    """The expected saving of each later call."""


class Decisions:
    def __init__(self) -> None:
        self._made: list[PricedDecision] = []
        self._cursor = LogCursor()

    def in_force(self, view: View, model: str) -> tuple[PricedDecision, ...]:
        self._made += _price(self._cursor.advance(view.history), view, model)
        dead = view.in_force.dead
        return tuple(one for one in self._made if one.n not in dead)


def _price(entries: Iterable[AnyEntry], view: View, model: str) -> Iterator[PricedDecision]:
    for entry in entries:
        match entry:
            case Cleared():
                cost_usd, saves_usd = entry.cost_usd, entry.saves_usd
            case Spilled():
                gone = _spilled_tokens(entry, view, model)
                cost_usd, saves_usd = -_usd(model, written=gone), _usd(model, read=gone)
            case Compacted():
                rest = _usd(model, written=entry.after_tokens)
                cost_usd = rest - _usd(model, read=entry.before_tokens)
                saves_usd = _usd(model, read=entry.before_tokens - entry.after_tokens)
            case _:
                continue
        kind = type(entry).__name__.lower()
        yield PricedDecision(n=entry.n, kind=kind, cost_usd=cost_usd, saves_usd=saves_usd)


def _spilled_tokens(entry: Spilled, view: View, model: str) -> int:
    owner = view.round_of(entry.tool_use_id)
    result = owner.result_of(entry.tool_use_id) if owner else None
    if result is None:
        return 0
    return round(weigh(result.measure - entry.measure, default_weights(model)))


def _usd(model: str, *, written: int = 0, read: int = 0) -> float:
    found = cost(model, write_5m_tokens=max(0, written), read_tokens=max(0, read))
    return found.total if found else 0.0
