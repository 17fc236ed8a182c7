"""Daily spending and budgets of tenants.

A tenant is a credential, identified by a keyed hash. All processes that serve the same store append
to the same ledgers, and read only new entries.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from longhold.core.log.spending import Budget, FileLedger, read_ledger
from longhold.core.messages import Usage
from longhold.core.messages.text import exact_dollars
from longhold.core.messages.usage import Tally
from longhold.core.settings import BudgetSettings

NOBODY = "all"


@dataclass(slots=True)
class _Ledger:
    """The ledger file of one day. `spent` covers the first `read` bytes."""

    file: Path
    budget: Budget
    day: str
    read: int = 0
    spent: Tally = field(default_factory=Tally)

    def total(self) -> Tally:
        with self.file.open("rb") as file:
            file.seek(self.read)
            lines = file.read()
        self.spent = self.spent + read_ledger(lines)
        self.read += len(lines)
        return self.spent


class TenantBudgets:
    def __init__(
        self, usd_per_day: float, place: Path, *, clock: Callable[[], float] = time.time
    ) -> None:
        """`usd_per_day` applies to each tenant; 0 means no limit."""
        self._usd, self._place, self._clock = usd_per_day, place, clock
        self._ledgers: dict[str, _Ledger] = {}

    def refusal(self, tenant: str) -> str:
        """Return why the tenant's daily budget refuses the request, or ''."""
        if not self._usd:
            return ""
        spent = self.spent_today(tenant).usd
        if spent < self._usd:
            return ""
        return (
            f"the budget of {exact_dollars(self._usd)} a day is spent ({exact_dollars(spent)}); it begins anew at "
            "midnight, and gateway.tenant_usd_per_day sets it"
        )

    def spent_today(self, tenant: str) -> Tally:
        try:
            return self._ledger(tenant).total()
        except OSError:
            return Tally()

    def pay(self, tenant: str, model: str, usage: Usage) -> None:
        self._ledger(tenant).budget.pay(model, usage)

    def _ledger(self, tenant: str) -> _Ledger:
        day = time.strftime("%Y-%m-%d", time.localtime(self._clock()))
        found = self._ledgers.get(tenant)
        if found is None or found.day != day:
            ledger = FileLedger(self._place / (tenant or NOBODY))
            budget = Budget(BudgetSettings(), ledger=ledger)
            found = self._ledgers[tenant] = _Ledger(file=ledger.file, budget=budget, day=day)
        return found
