"""What an agent spends is its parent's money.

Payments come in; each is made from the parent's purse and written into the parent's log as a call
that was made beside the conversation. So limits hold for all together, and `cost` and a resumed
session know of every call, also of agents that were killed.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from holdfast.errors import StoreError
from holdfast.log.entries import Forked
from holdfast.log.spending import Budget, Spent
from holdfast.messages import Usage
from holdfast.turn.engine import Engine


@dataclass(slots=True)
class ChildBudget(Budget):
    """A purse that is filled from another."""

    above: Callable[[], tuple[Budget, Engine]] | None = None
    source: str = "agent"

    def pay(self, model: str, usage: Usage) -> Spent:
        """Pay from the purse above, and count it here too."""
        assert self.above is not None, "an allowance comes from somebody"
        budget, engine = self.above()
        spent = budget.pay(model, usage)
        self.session = self.session + spent
        with suppress(StoreError):  # a parent whose log is closed takes no more entries
            engine.report(Forked(source=self.source, model=model, usage=usage))
        return spent

    def exhausted(self) -> str:
        """Name the limit above that is reached, or nothing."""
        assert self.above is not None, "an allowance comes from somebody"
        return self.above()[0].exhausted()
