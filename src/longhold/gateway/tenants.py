"""The daily spending and budgets of tenants.

A tenant is a credential, identified by a keyed hash. All processes that serve the same store append
to the same ledgers, and read only new entries. While a request is answered, its expected cost is
reserved, so that requests sent together cannot spend the same dollars.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from longhold.core.log.spending import FileLedger, read_ledger
from longhold.core.messages import Usage
from longhold.core.messages.text import exact_dollars
from longhold.core.messages.usage import Tally
from longhold.core.models.prices import price_call
from longhold.errors import StoreError

NOBODY = "all"
MOST_ACCOUNTS = 10_000


class OverBudget(Exception):
    """A request was refused because of a tenant's daily budget."""


@dataclass(slots=True)
class _Account:
    """A tenant's spending on one day. `spent` covers the first `read` bytes of the file."""

    file: Path
    read: int = 0
    spent: Tally = field(default_factory=Tally)
    unwritten: Tally = field(default_factory=Tally)
    """Spending that could not be written yet. It counts, and the next call writes it."""
    held: list[float] = field(default_factory=list)
    """The expected cost in dollars of requests without a complete answer."""
    freed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def total(self, file: Path) -> Tally:
        if file != self.file:
            self.file, self.read, self.spent = file, 0, Tally()
        with suppress(OSError), file.open("rb") as lines:
            lines.seek(self.read)
            new = lines.read()
            self.spent = self.spent + read_ledger(new)
            self.read += len(new)
        return self.spent + self.unwritten


class TenantBudgets:
    def __init__(
        self, usd_per_day: float, place: Path, *, clock: Callable[[], float] = time.time
    ) -> None:
        """`usd_per_day` applies to each tenant. 0 means no limit."""
        self._usd, self._place, self._clock = usd_per_day, place, clock
        self._accounts: dict[str, _Account] = {}

    @property
    def is_set(self) -> bool:
        return self._usd > 0

    @asynccontextmanager
    async def reserve(self, tenant: str, expected_usd: float) -> AsyncIterator[None]:
        """Reserve a request's expected cost until its answer is paid, or raise `OverBudget`. A
        request that might not fit waits until the tenant's other requests are paid. A single
        request never waits, because the expected cost is an upper estimate.
        """
        account = self._account(tenant)

        def has_room() -> bool:
            spent = self.check(tenant)
            return not account.held or spent + sum(account.held) + expected_usd <= self._usd

        async with account.freed:
            await account.freed.wait_for(has_room)
            account.held.append(expected_usd)
        try:
            yield
        finally:
            async with account.freed:
                account.held.remove(expected_usd)
                account.freed.notify_all()

    def check(self, tenant: str) -> float:
        """Return the tenant's spending today. Raise `OverBudget` if the budget is spent."""
        spent = self.spent_today(tenant).usd
        if self.is_set and spent >= self._usd:
            raise OverBudget(
                f"the budget of {exact_dollars(self._usd)} a day is spent ({exact_dollars(spent)});"
                " it is renewed at midnight; gateway.tenant_usd_per_day sets it"
            )
        return spent

    def spent_today(self, tenant: str) -> Tally:
        return self._account(tenant).total(self._ledger(tenant).file)

    def pay(self, tenant: str, model: str, usage: Usage) -> None:
        account, paid = self._account(tenant), price_call(model, usage)
        owed, account.unwritten = account.unwritten + paid, Tally()
        try:
            self._ledger(tenant).add(owed)
        except (OSError, StoreError):
            account.unwritten = account.unwritten + owed

    def _account(self, tenant: str) -> _Account:
        if len(self._accounts) > MOST_ACCOUNTS:  # the ledgers still have all spending
            self._accounts = {id: one for id, one in self._accounts.items() if one.held}
        return self._accounts.setdefault(tenant, _Account(Path()))

    def _ledger(self, tenant: str) -> FileLedger:
        return FileLedger(self._place / (tenant or NOBODY), self._clock)
