"""Which passages answer a question: those with its rarer words, in them and around them.

A question and its answer seldom share all words: some stand in the call, in the thought before it
or in what the user asked. So a word counts in full in the passage itself, less in the same step
of the model, and a little in the steps beside it.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

SAME_STEP = 0.3
"""Of a word's weight, if it stands elsewhere in the step. This and the next were measured."""
BESIDE = {1: 0.4, -1: 0.4, 2: 0.2, -2: 0.2, 3: 0.1, -3: 0.1}
"""And if it stands in a step so many further on, or before."""
PASSAGE_BITS = 16
"""Of a passage's number; the rest is the entry's. The longest body that is indexed has fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
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


def rank(terms: Sequence[TermRows], step_of: Callable[[int], int]) -> list[Match]:
    """Return the records, the best first, each with its best passage; of equals, the newest."""
    around = _around(terms, step_of)
    inside: defaultdict[int, float] = defaultdict(float)
    for i, term in enumerate(terms):
        for row in term.rows:
            near = around[step_of(row >> PASSAGE_BITS)][i]
            inside[row] += term.weight * (1 - near)
    scores = {
        row: score
        + sum(
            term.weight * near
            for term, near in zip(terms, around[step_of(row >> PASSAGE_BITS)], strict=True)
        )
        for row, score in inside.items()
    }
    best: dict[int, Match] = {}
    for row in sorted(scores, key=lambda row: (scores[row], row), reverse=True):
        n = row >> PASSAGE_BITS
        best.setdefault(n, Match(n=n, passage=row & ((1 << PASSAGE_BITS) - 1), score=scores[row]))
    return list(best.values())


def _around(terms: Sequence[TermRows], step_of: Callable[[int], int]) -> dict[int, list[float]]:
    """Return for each step how near each word is: in it, beside it, or not at all."""
    near: defaultdict[int, list[float]] = defaultdict(lambda: [0.0] * len(terms))
    for i, term in enumerate(terms):
        for step in {step_of(row >> PASSAGE_BITS) for row in term.rows}:
            near[step][i] = max(near[step][i], SAME_STEP)
            for distance, share in BESIDE.items():
                beside = near[step + distance]
                beside[i] = max(beside[i], share)
    return near
