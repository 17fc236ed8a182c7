"""What happened in a session, turn by turn: read back from its entries.

A history comes in; turns go out, each with its calls, its cost, and every act that changed what
the model sees, with the tokens that act saved. Sizes are the gauge's, prices the tables'; all
else is read from the log.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from holdfast.log.entries import (
    AnyEntry,
    CacheBroke,
    Ended,
    Failed,
    Forked,
    Noted,
    Ran,
    Redone,
    Replied,
    Said,
    Spawned,
    Swept,
    Switched,
    Undone,
    ViewChange,
)
from holdfast.log.spending import Spent, spent_on
from holdfast.messages import ToolUse, text_of
from holdfast.reports.describe import kind_of, told
from holdfast.view import View
from holdfast.view.gauge import Follower


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One entry that changed what the model sees, or tells of trouble."""

    n: int
    kind: str
    text: str
    saved_tokens: int = 0
    """How much smaller the context is by it."""


@dataclass(slots=True, kw_only=True)
class ExplainedTurn:
    """From one thing the user said to the next."""

    n: int
    at: float
    said: str
    answers: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    errors: int = 0
    """Tool results that were errors."""
    spent: Spent = field(default_factory=Spent)
    acts: list[Act] = field(default_factory=list)
    tokens_before: int = 0
    tokens_after: int = 0


def explain(entries: Iterable[AnyEntry]) -> list[ExplainedTurn]:
    """Tell a history turn by turn."""
    teller = _Teller()
    for entry in entries:
        teller.take(entry)
    return teller.turns


class _Teller:
    def __init__(self) -> None:
        self.turns: list[ExplainedTurn] = []
        self._view, self._follower = View(), Follower()
        self._paid: dict[str, Spent] = {}
        """What each answer cost so far: pieces repeat their usage."""

    def take(self, entry: AnyEntry) -> None:
        before = self._size()
        self._view.apply(entry)
        after = self._size()
        if (isinstance(entry, Said) and not entry.hidden) or not self.turns:
            said = text_of(entry.content) if isinstance(entry, Said) else ""
            self.turns.append(
                ExplainedTurn(n=entry.n, at=entry.at, said=said, tokens_before=before)
            )
        turn = self.turns[-1]
        turn.tokens_after = after
        match entry:
            case Replied():
                self._answer(turn, entry)
            case Ran(is_error=True):
                turn.errors += 1
            case Forked(source=source):
                turn.spent = turn.spent + spent_on(entry.model, entry.usage)
                if source.startswith("agent:"):
                    return  # its start and its end are told; its calls are in its own log
                turn.acts.append(Act(n=entry.n, kind=kind_of(entry), text=told(entry)))
            case Spawned() | Ended() | Noted():
                turn.acts.append(Act(n=entry.n, kind=kind_of(entry), text=told(entry)))
            case (
                ViewChange() | Undone() | Redone() | Switched() | Failed() | CacheBroke() | Swept()
            ):
                saved = before - after if isinstance(entry, ViewChange | Undone | Redone) else 0
                turn.acts.append(
                    Act(n=entry.n, kind=kind_of(entry), text=told(entry), saved_tokens=saved)
                )

    def _size(self) -> int:
        return self._follower.follow(self._view).size_tokens(self._view.total)

    def _answer(self, turn: ExplainedTurn, entry: Replied) -> None:
        turn.calls.update(block.name for block in entry.content if isinstance(block, ToolUse))
        if entry.response_id not in self._paid:
            turn.answers += 1
        if entry.usage:
            spent = spent_on(entry.model, entry.usage)
            turn.spent = turn.spent + spent - self._paid.get(entry.response_id, Spent())
            self._paid[entry.response_id] = spent
        self._paid.setdefault(entry.response_id, Spent())
