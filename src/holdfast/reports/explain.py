"""What happened in a session, turn by turn: read back from its entries.

A history comes in; turns go out, each with its calls, its cost, and every act that changed what
the model sees, with the tokens that act saved. Sizes are the gauge's, prices the tables'; all
else is read from the log.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from holdfast.log.answers import UniqueAnswer, all_answers, day_of
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
    """One entry that changed what the model sees, or reports a failure."""

    n: int
    kind: str
    text: str
    saved_tokens: int = 0
    """How much smaller the context is by it."""


@dataclass(slots=True, kw_only=True)
class ExplainedTurn:
    """From one message of the user to the next."""

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
    """Describe a history turn by turn; an answer in pieces belongs to the turn it began in."""
    history = list(entries)
    answers = all_answers(history)
    reader = _Reader()
    for at, entry in enumerate(history):
        reader.take(entry)
        if at in answers:
            reader.pay(answers[at])
    return reader.turns


class _Reader:
    def __init__(self) -> None:
        self.turns: list[ExplainedTurn] = []
        self._view, self._follower = View(), Follower()

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
                turn.calls.update(use.name for use in entry.content if isinstance(use, ToolUse))
            case Ran(is_error=True):
                turn.errors += 1
            case Forked(source=source):
                self._spend(entry)
                if not source.startswith("agent:"):  # an agent's calls are in its own log
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

    def pay(self, answer: UniqueAnswer) -> None:
        self.turns[-1].answers += 1
        if answer.usage.total_tokens:
            self._spend(answer)

    def _spend(self, call: UniqueAnswer | Forked) -> None:
        turn = self.turns[-1]
        turn.spent = turn.spent + spent_on(call.model, call.usage, day_of(call.at))

    def _size(self) -> int:
        return self._follower.follow(self._view).size_tokens(self._view.total)
