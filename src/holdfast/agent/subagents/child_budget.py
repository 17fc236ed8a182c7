"""An agent spends its parent's budget.

Each payment is made from the parent's budget and recorded in the parent's log, so that limits hold
for all agents together, and `cost` and resumed sessions know of every call, even of agents that
were killed.
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
    """A budget that draws on another."""

    above: Callable[[], tuple[Budget, Engine]] | None = None
    source: str = "agent"

    def pay(self, model: str, usage: Usage) -> Spent:
        assert self.above is not None, "a child's budget has a parent"
        budget, engine = self.above()
        spent = budget.pay(model, usage)
        self.session = self.session + spent
        with suppress(StoreError):  # a disk that takes no entry keeps no agent from working
            engine.report(Forked(source=self.source, model=model, usage=usage))
        return spent

    def exhausted(self) -> str:
        assert self.above is not None, "a child's budget has a parent"
        return self.above()[0].exhausted()
