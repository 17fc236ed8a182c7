"""Describes a session turn by turn: calls, costs, and changes of the model's view."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from longhold.core.log.entries import (
    AnyEntry,
    CacheBroke,
    Cleared,
    Dreamt,
    Dropped,
    Ended,
    Failed,
    Forked,
    Noted,
    Ran,
    Recalled,
    Redone,
    Remembered,
    Replied,
    Spawned,
    Swept,
    Switched,
    Undone,
    ViewChange,
    Withheld,
)
from longhold.core.log.entry_lines import describe_entry, kind_of
from longhold.core.log.spending import UniqueAnswer, all_answers, price
from longhold.core.messages import ToolUse
from longhold.core.messages.usage import Tally
from longhold.core.view import View
from longhold.core.view.gauge import Follower
from longhold.insight.cost import begins_turn, words_of

_MOVES = (ViewChange, Undone, Redone)


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    n: int
    kind: str
    text: str
    saved_tokens: int = 0
    times: int = 1
    """The number of equal failures or refusals in a row. `n` is the entry of the first one."""
    rule: str = ""
    """The rule that decided the change, or "" in logs of earlier versions."""
    lost: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class ExplainedTurn:
    number: int
    """The turn's number in summaries, or 0 before the first message."""
    n: int
    at: float
    said: str
    answers: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    errors: int = 0
    spent: Tally = field(default_factory=Tally)
    acts: list[Act] = field(default_factory=list)
    tokens_before: int = 0
    tokens_after: int = 0


def explain(entries: Iterable[AnyEntry]) -> list[ExplainedTurn]:
    """Describe a history by turn. An answer in several pieces belongs to the turn of the first."""
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
        self._uses: dict[str, ToolUse] = {}

    def take(self, entry: AnyEntry) -> None:
        before = self._size()
        self._view.apply(entry)
        after = self._size()
        if not self.turns or begins_turn(entry):
            self.turns.append(
                ExplainedTurn(
                    number=self.turns[-1].number + 1 if self.turns else int(begins_turn(entry)),
                    n=entry.n,
                    at=entry.at,
                    said=words_of(entry),
                    tokens_before=before,
                )
            )
        turn = self.turns[-1]
        turn.tokens_after = after
        match entry:
            case Replied():
                uses = [block for block in entry.content if isinstance(block, ToolUse)]
                turn.calls.update(use.name for use in uses)
                self._uses |= {use.id: use for use in uses}
            case Ran(is_error=True):
                turn.errors += 1
            case Forked():
                self._spend(entry)
        if _is_act(entry):
            saved = before - after if isinstance(entry, _MOVES) else 0
            if isinstance(entry, Cleared):
                saved = entry.saved_tokens or saved
            text = describe_entry(entry, self._uses)
            act = Act(n=entry.n, kind=kind_of(entry), text=text, saved_tokens=saved)
            if isinstance(entry, ViewChange):
                act = replace(act, rule=entry.rule, lost=entry.lost)
            turn.acts = _with_act(turn.acts, act)

    def pay(self, answer: UniqueAnswer) -> None:
        turn = self.turns[-1]
        turn.answers += 1
        if answer.usage.total_tokens:
            self._spend(answer)

    def _spend(self, call: UniqueAnswer | Forked) -> None:
        turn = self.turns[-1]
        turn.spent = turn.spent + price(call)

    def _size(self) -> int:
        return self._follower.follow(self._view).size_tokens(self._view.total)


def _with_act(acts: list[Act], act: Act) -> list[Act]:
    last = acts[-1] if acts else None
    is_same = last and last.kind == act.kind in ("failed", "withheld") and last.text == act.text
    if last and is_same:
        return [*acts[:-1], replace(last, times=last.times + 1)]
    return [*acts, act]


def _is_act(entry: AnyEntry) -> bool:
    if isinstance(entry, Forked):
        return not entry.source.startswith("agent:")  # because an agent's calls are in its own log
    changes = ViewChange | Undone | Redone | Switched | CacheBroke | Dropped
    beside = Spawned | Ended | Noted | Remembered | Recalled | Dreamt
    return isinstance(entry, changes | Failed | Withheld | Swept | beside)
