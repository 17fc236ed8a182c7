"""The facts and the ledger of a session, updated entry by entry like the view.

Compacted history is read, masked and shortened only once. The cost of a compaction thus depends
only on new entries.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock
from typing import NamedTuple

from longhold.core.log.entries import (
    AnyEntry,
    Collapsed,
    Compacted,
    Directed,
    Redone,
    Restored,
    Rewound,
    Undone,
)
from longhold.core.messages import text_of
from longhold.core.messages.secrets import mask_secrets
from longhold.core.stages.compact.directives import DirectiveLedger
from longhold.core.stages.compact.segment import is_summary
from longhold.core.stages.facts.carried import bound_turns, shorten_turn
from longhold.core.stages.facts.facts import Facts, PriorSummary, TaskFact, TurnFacts
from longhold.core.stages.facts.tool_steps import Todos, extract, gather
from longhold.core.view import View, fold
from longhold.core.view.items import Item


class KnownFacts(NamedTuple):
    facts: Facts
    """The facts, with masked secrets."""
    ledger: DirectiveLedger


class FactsFold:
    def __init__(self, mask: Callable[[str], str] = mask_secrets) -> None:
        self._mask = mask
        self._lock = Lock()
        """The lock is needed because drafts are made in threads."""
        self._begin()

    def gather(self, history: Sequence[AnyEntry], items: Sequence[Item]) -> KnownFacts:
        """Return the facts of a segment and of all history that its summaries replace."""
        with self._lock:
            self._follow(history)
            first = self._first or next((item.order for item in self._view.items), 0)
            if not items or not first or items[0].order > first:
                facts = gather(history, items).mask_secrets(self._mask)
                return KnownFacts(facts, DirectiveLedger().follow(facts.words(), self._directed))
            fresh = _fresh_order(items)
            if fresh < self._settled:  # a compaction was undone
                self._begin()
                self._follow(history)
            self._carry_on(fresh)
            told = self._collect_facts(items, fresh)
            self._view.let_go(self._settled)
            return told

    def _begin(self) -> None:
        self._read = 0
        self._view = View()
        self._first = 0
        """The order of the first released item, or 0."""
        self._made_by: dict[int, str] = {}
        self._directed: list[Directed] = []
        self._settled = 0
        """Items below this order are already carried over."""
        self._turns: list[TurnFacts] = []
        self._rounds: list[int] = []
        self._tasks: dict[str, TaskFact] = {}
        self._prior: list[PriorSummary] = []
        self._todos = Todos()
        self._said = 0
        self._ledger = DirectiveLedger()

    def _follow(self, history: Sequence[AnyEntry]) -> None:
        """Process new entries as if nothing had been compacted or collapsed."""
        new = history[self._read :]
        if len(history) < self._read or any(isinstance(e, Undone | Redone | Rewound) for e in new):
            self._begin()
            new = history
        is_whole = not self._read
        self._read = len(history)
        for entry in new:
            if isinstance(entry, Compacted):
                self._made_by[entry.n] = entry.by
            elif isinstance(entry, Directed):
                self._directed.append(entry)
        shown = (e for e in new if not isinstance(e, Compacted | Collapsed | Restored))
        if is_whole:
            self._view = fold(shown)
        else:
            for entry in shown:
                self._view.apply(entry)

    def _carry_on(self, fresh: int) -> None:
        settled = self._slice_items(self._settled, fresh - 1)
        if not settled:
            return
        facts = extract(settled, self._said + 1, self._todos).mask_secrets(self._mask)
        directed = (entry for entry in self._directed if entry.n < fresh)
        self._ledger.follow(facts.words(), directed)
        turns = [shorten_turn(turn) for turn in facts.turns]
        self._turns = bound_turns(_join(self._turns, turns))
        self._rounds += facts.rounds
        self._prior += facts.prior
        self._tasks = _merge(self._tasks, facts.tasks)
        self._said = max((turn.number for turn in facts.turns), default=self._said)
        self._settled, self._first = fresh, self._first or settled[0].order

    def _collect_facts(self, items: Sequence[Item], fresh: int) -> KnownFacts:
        todos = self._todos.copy()
        new = self._slice_items(max(fresh, self._settled), items[-1].order)
        facts = extract(new, self._said + 1, todos).mask_secrets(self._mask)
        kept = (
            PriorSummary(id=item.id, text=self._mask(text_of(item.content)))
            for item in items
            if is_summary(item) and self._made_by.get(item.id) != "digest"
        )
        told = Facts(
            turns=tuple(_join(self._turns, facts.turns)),
            rounds=(*self._rounds, *facts.rounds),
            todos=facts.todos,
            tasks=tuple(_merge(self._tasks, facts.tasks).values()),
            prior=(*self._prior, *facts.prior, *kept),
            since=fresh,
        )
        return KnownFacts(told, self._ledger.copy().follow(facts.words(), self._directed))

    def _slice_items(self, first: int, last: int) -> Sequence[Item]:
        items = self._view.items
        lo = bisect_left(items, first, key=lambda item: item.order)
        return items[lo : bisect_right(items, last, key=lambda item: item.order)]


def _fresh_order(items: Sequence[Item]) -> int:
    if not any(map(is_summary, items)):
        return 0
    return next((item.order for item in items if not is_summary(item)), items[-1].order)


def _join(before: Sequence[TurnFacts], after: Sequence[TurnFacts]) -> list[TurnFacts]:
    if before and after and after[0].words is None:
        whole = replace(before[-1], steps=before[-1].steps + after[0].steps)
        return [*before[:-1], whole, *after[1:]]
    return [*before, *after]


def _merge(known: dict[str, TaskFact], new: Sequence[TaskFact]) -> dict[str, TaskFact]:
    merged = dict(known)
    for task in new:
        about = merged[task.name].about if task.name in merged else task.about
        merged[task.name] = replace(task, about=about)
    return merged
