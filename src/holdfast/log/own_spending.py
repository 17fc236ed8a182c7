"""What an engine spends on calls of its own (summaries, notes, memories), and whether it may make another.

An agent's calls are not among them: they are work that somebody asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from holdfast.log.answers import MAIN, day_of
from holdfast.log.cursor import LogCursor
from holdfast.log.entries import AnyEntry, Asked, Forked, Replied
from holdfast.log.spending import Spent, spent_on
from holdfast.settings import BudgetSettings

COMPACT = "compact"
"""The layer that makes room, which a young session may need as well."""
SAVING = (COMPACT, "notes")
"""Layers whose calls spare others; the rest together may use half of the share."""


ASIDE = "aside"
"""A question that the user asks beside the conversation."""


def is_own(source: str) -> bool:
    return source not in (MAIN, ASIDE) and not source.startswith("agent:")


@dataclass(slots=True)
class OwnSpending:
    """Follows a log: what the engine spent on itself, by layer, and what all others did."""

    main: Spent = field(default_factory=Spent)
    layers: dict[str, Spent] = field(default_factory=dict)
    _cursor: LogCursor = field(default_factory=LogCursor)
    _response: str = ""
    _piece: Spent = field(default_factory=Spent)
    """Of the last answer so far: each of its pieces says what all of it used."""

    @property
    def own(self) -> Spent:
        return sum(self.layers.values(), Spent())

    @property
    def total(self) -> Spent:
        return self.main + self._piece + self.own

    @property
    def share(self) -> float:
        """The engine's part of the money; 0 where nothing has a price."""
        total = self.total.usd
        return self.own.usd / total if total else 0.0

    def follow(self, history: Sequence[AnyEntry]) -> Self:
        for entry in self._cursor.advance(history):
            match entry:
                case Asked():
                    self._end_answer()
                case Replied(usage=usage) if usage is not None:
                    if not entry.response_id or entry.response_id != self._response:
                        self._end_answer()
                    self._response = entry.response_id
                    self._piece = spent_on(entry.model, usage, day_of(entry.at))
                case Forked(source=source):
                    spent = spent_on(entry.model, entry.usage, day_of(entry.at))
                    if is_own(source):
                        self.layers[source] = self.layers.get(source, Spent()) + spent
                    else:
                        self.main = self.main + spent
        return self

    def _end_answer(self) -> None:
        self.main, self._piece, self._response = self.main + self._piece, Spent(), ""

    def refusal(self, limits: BudgetSettings, source: str, expected_usd: float) -> str:
        """Say why the engine may not make a call of its own; '' if it may."""
        own, total = self.own, self.total
        if not limits.own_share:
            return ""
        if own.answers >= total.answers - own.answers:
            return f"the engine's own {own.answers} calls would outnumber the session's"
        floor = limits.own_floor_usd if source == COMPACT else 0.0
        share = limits.own_share if source in SAVING else limits.own_share / 2
        if not expected_usd or own.usd + expected_usd <= max(floor, share * total.usd):
            return ""
        return (
            f"the engine spent ${own.usd:.4f} of ${total.usd:.4f} on itself, and a call of about "
            f"${expected_usd:.4f} is over its share, {share:.1%} (budget.own_share)"
        )
