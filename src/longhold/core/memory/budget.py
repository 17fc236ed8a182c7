"""The budget of memory: a share of what the project's sessions spent in the last days.

The share is per project, so that several short sessions together can pay for a search. Each session
adds its spending whenever it is idle. Figures are per machine.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from longhold.core.log.spending import FileLedger, OwnSpending
from longhold.core.messages import Usage
from longhold.core.messages.text import exact_dollars
from longhold.core.messages.usage import Tally
from longhold.core.models.prices import price_call
from longhold.core.settings.project import slug

ALL, EXTRACT, DREAM, RECALL = "all", "memory", "dream", "recall"
DAYS = {ALL: 7, EXTRACT: 7, RECALL: 7, DREAM: 28}
"""A dream costs as much as a few searches, so a small project saves for it over weeks."""
FLOOR_USD = 0.05
"""Minimum per week: a few searches, so that a project with little spending learns too."""
DREAM_SHARE = 1 / 3
"""Part of memory's share that is reserved for dreams. Otherwise searches would use all of it, and a
project that never dreams keeps its duplicates."""
UNPRICED_CALLS = 0.25
"""Limit for models without a price: memory's share of the project's calls."""
TYPICAL = {EXTRACT: Usage(input_tokens=2_000, output_tokens=250)}
TYPICAL[DREAM] = Usage(input_tokens=2_500, output_tokens=400)
"""Typical usage of one call without its shared prompt, until the project has had such calls."""
CALLS = {EXTRACT: 2, DREAM: 5}
"""Calls of a search (to write and to end) and of a dream that is worth beginning (to look, write,
correct and end)."""


def learning_directory(home: Path, place: Path) -> Path:
    """Return the directory for the spending and the waiting sessions of a memory directory."""
    return home / "learning" / slug(place)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBudget:
    directory: Path
    share: float
    """Share of the project's spending; 0 means no limit."""
    clock: Callable[[], float]
    own: OwnSpending = field(default_factory=OwnSpending)
    """The session's spending that was not added yet."""

    def spent(self, kind: str, days: int = 0) -> Tally:
        return self._ledger(kind).last_days(days or DAYS[kind])

    def add_spending(self) -> None:
        """Add the session's spending since the last time."""
        total, layers = self.own.take()
        for kind, tally in {ALL: total, **layers}.items():
            if tally.calls and kind in (ALL, EXTRACT, DREAM, RECALL):
                self._ledger(kind).add(tally)

    def allowed_usd(self, kind: str = EXTRACT) -> float:
        if kind == DREAM:
            return DREAM_SHARE * self.share * self.spent(ALL, DAYS[DREAM]).usd
        return max(FLOOR_USD, (1 - DREAM_SHARE) * self.share * self.spent(ALL).usd)

    def left_usd(self, kind: str = EXTRACT) -> float:
        """Return what may still be spent on dreams, or on searches and choices together."""
        return self.allowed_usd(kind) - self.spent_usd(kind)

    def spent_usd(self, kind: str = EXTRACT) -> float:
        if kind == DREAM:
            return self.spent(DREAM).usd
        return self.spent(EXTRACT).usd + self.spent(RECALL).usd

    @property
    def line(self) -> str:
        spent = [
            f"{exact_dollars(self.spent_usd(kind))}"
            f"{f' of {exact_dollars(self.allowed_usd(kind))}' if self.share else ''}"
            f" in {DAYS[kind]} days for {what}"
            for what, kind in (("searches", EXTRACT), ("dreams", DREAM))
        ]
        return f"memory spent {' and '.join(spent)} (memory.share)"

    def expect(self, kind: str, model: str, prompt: Usage, calls: int = 0) -> Tally:
        """Estimate the price of a search or dream on a prompt, by the output of past calls."""
        past, call = self.spent(kind), TYPICAL[kind]
        if past.calls:
            call = msgspec.structs.replace(call, output_tokens=past.output_tokens // past.calls)
        return sum((price_call(model, prompt + call) for _ in range(calls or CALLS[kind])), Tally())

    def refusal(self, kind: str, expected: Tally, *, reserve: float = 0.0) -> str:
        """Return why a call must wait, or ''. `reserve` is the part of the budget to leave."""
        if not self.share:
            return ""
        total, left = self.spent(ALL), self.left_usd(kind)
        if expected.unpriced_calls:
            own = self.spent(EXTRACT).calls + self.spent(DREAM).calls
            most = UNPRICED_CALLS * total.calls
            return f"memory made {own} of {total.calls} calls" if own > most else ""
        if expected.usd <= left * (1 - reserve):
            return ""
        return (
            f"it would cost about {exact_dollars(expected.usd)}, and {exact_dollars(max(left, 0.0))}"
            f" of {exact_dollars(self.allowed_usd(kind))} is left, a part of {self.share:.0%}"
            f" of what this project spent in {DAYS[kind]} days (memory.share)"
        )

    def _ledger(self, kind: str) -> FileLedger:
        return FileLedger(self.directory / kind, clock=self.clock)
