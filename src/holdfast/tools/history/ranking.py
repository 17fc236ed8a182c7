"""Which passages answer a question: those with its rarer words, in them and around them.

A question and its answer seldom share all words: some stand in the call, in the thought before it
or in what the user asked. So a word counts in full in the passage itself, less in the same step
of the model, and a little in the steps beside it.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice

NEAR = {1: 0.4, -1: 0.4, 0: 0.3, 2: 0.2, -2: 0.2, 3: 0.1, -3: 0.1}
"""Of a word's weight: where it stands in the step so many further on, and else in none of these.

What is beside a step counts for more than what else is in it: a long result has many words.
"""
RANKED = 600
"""Passages whose surroundings are looked at: those with the most of the question in them."""
PASSAGE_BITS = 16
"""Of a passage's number; the rest is the entry's. The longest body that is indexed has fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageMatch:
    """A record with the words that were asked for."""

    n: int
    passage: int = 0
    """The one that matches best, counted from 0."""
    score: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TermRows:
    """Where a word stands, and how much that says."""

    weight: float
    rows: Sequence[int]


def rank(
    terms: Sequence[TermRows], step_of: Callable[[int], int], is_allowed: Callable[[int], bool]
) -> list[PassageMatch]:
    """Return the records, the best first, each with its best passage; of equals, the newest."""
    inside: defaultdict[int, float] = defaultdict(float)
    for term in terms:
        for row in term.rows:
            inside[row] += term.weight
    ordered = sorted(inside, key=lambda row: (inside[row], row), reverse=True)
    rows = islice((row for row in ordered if is_allowed(row >> PASSAGE_BITS)), RANKED)
    steps = [{step_of(row >> PASSAGE_BITS) for row in term.rows} for term in terms]
    having = [set(term.rows) for term in terms]
    scored = []
    for row in rows:
        step = step_of(row >> PASSAGE_BITS)
        around = sum(
            term.weight * _nearness(step, steps[i])
            for i, term in enumerate(terms)
            if row not in having[i]
        )
        scored.append((inside[row] + around, row))
    scored.sort(reverse=True)
    best: dict[int, PassageMatch] = {}
    for score, row in scored:
        n = row >> PASSAGE_BITS
        best.setdefault(n, PassageMatch(n=n, passage=row & ((1 << PASSAGE_BITS) - 1), score=score))
    return list(best.values())


def _nearness(step: int, steps: AbstractSet[int]) -> float:
    """Return the share of a word's weight that counts in a step beside which it stands."""
    return next((share for distance, share in NEAR.items() if step + distance in steps), 0.0)
