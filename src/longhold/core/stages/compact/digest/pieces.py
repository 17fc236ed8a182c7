"""Fit pieces of text into a token budget by their value to the reader.

Each piece has shorter and longer forms. The form with the highest gain per token is chosen first,
in any section. All important pieces thus get a short form before one gets its full form.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache, lru_cache
from heapq import heapify, heappop, heappush
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from longhold.core.messages.text import quote_rest

Count: TypeAlias = Callable[[str], int]

AGEING = 0.4
"""The share of its value that the oldest piece of a kind loses compared with the newest."""


TIGHT, SMALL = (1.2, 1.5), (0.5, 0.8)
"""A digest becomes tight as its shortest forms grow between these multiples of the budget. `SMALL`
applies if it has to fit a given size."""
ROUTINE, REPEATED, OUTCOMES = 0.07, 0.1, 0.2
"""Shares of their value that steps keep in a tight digest: steps that readers rarely ask for or
that another section has, commands with an outcome that ran again later, and the last such runs."""

REMEMBERED = 4_096
"""Number of cached token counts, for the lines of a rewritten draft and user messages."""
REMEMBERED_CHARS = 2_000


@cache
def remember_counts(count: Count) -> Count:
    known = lru_cache(maxsize=REMEMBERED)(count)
    return lambda text: known(text) if len(text) <= REMEMBERED_CHARS else count(text)


class Worth(IntEnum):
    """The value of each kind of form for the agent that continues the work.

    The values were tuned with `benchmarks/exam.py` and `benchmarks/retention.py`.
    """

    OPEN_CALLS = 3_000_000
    """Calls for an unanswered request, so that the model does not repeat them."""
    LAST_WORDS = 2_000_000
    FIRST_WORDS = 1_000_000
    """The first words of a message, so that no message is missing entirely."""
    NEXT_STEP = 500_000
    RUNNING = 490_000
    WORDS = 400_000
    WHOLE_WORDS = 300_000
    SMALL_WORDS = 4_000
    STANDING = 1_501
    OPEN_TODOS = 50_000
    CHANGED_FILES = 40_000
    LAST_ANSWER = 30_000
    LAST_OUTCOME = 20_000
    EXPLANATIONS = 2_500
    EARLIER_EXPLANATIONS = 1_000
    PRIOR = 3_000
    MORE_PRIOR = 1_000
    OLD_WORDS = 100
    PASTES = 2_001
    LONG_LAST_ANSWER = 900
    DEMANDS = 2_400
    MORE_DEMANDS = 2_000
    OUTLINES = 1_400
    READ_FILES = 900
    BRIEF_ANSWERS = 1_600
    OPEN_ERRORS = 1_001
    """Recent errors without a later success."""
    LONG_ANSWERS = 500
    OLD_FIRST_WORDS = 350
    COMMITS = 500
    ANSWERS = 501
    CURRENT_CODE = 300
    VERDICTS = 401
    RECENT_ERRORS = 1_000
    TOUCHED = 403
    CLEAR_ERRORS = 120
    CONCLUSIONS = 440
    BRIEF_REPORTS = 160
    TOLD_REPORTS = 300
    WHOLE_ANSWERS = 301
    CURRENT_WORK = 250
    SEEN = 400
    WHOLE_REPORTS = 150
    RECENT_COMMANDS = 900
    RECENT_OUTCOMES = 260
    PUT_IN = 120
    NEW_NAMES = 220
    WHOLE_COMMANDS = 80
    REMARKS = 400
    EXPLAINED = 800
    """The cause of a failure, as the agent explained it next."""
    SEEN_FILES = 120
    WORK = 100
    REPLACED = 150
    """A small change, shown as old and new text."""
    REPORTS = 65
    REASONS = 160
    LONG_ERRORS = 61
    OLD_ERRORS = 62
    OLD_COMMANDS = 63
    DONE_TODOS = 64
    OLD_TURNS = 50
    OLD_CODE = 51
    OLD_OUTCOMES = 40


def lower_by_age(worth: float, age: float) -> float:
    """Lower a value by age, which is 0 for the newest and 1 for the oldest piece."""
    return worth * (1 - AGEING * age)


class _Step(NamedTuple):
    price: int
    worth: float


@dataclass(frozen=True, slots=True)
class DigestPiece:
    section: int
    place: tuple[float, ...]
    """The sort key within the section."""
    forms: tuple[str, ...]
    gains: tuple[float, ...]
    """The value that each form adds to the previous form."""
    tight_share: float = 1.0
    """The share of its value that the piece keeps in a tight digest."""
    _steps: dict[Count, list[_Step]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        """Indent all but the first line of each form, because only the first is Longhold's text."""
        object.__setattr__(self, "forms", tuple(map(quote_rest, self.forms)))

    def steps(self, count: Count) -> list[_Step]:
        """Return the cumulative price and value of each form. The first entry means no form."""
        if count not in self._steps:
            prices = (count(form) + 1 for form in self.forms)  # add one for the newline
            same = (a == b for a, b in pairwise(("", *self.forms)))
            gains = (
                0.0 if is_same else gain for is_same, gain in zip(same, self.gains, strict=True)
            )
            self._steps[count] = [_Step(0, 0.0), *map(_Step, prices, accumulate(gains))]
        return self._steps[count]


def line_piece(section: int, place: tuple[float, ...], line: str, gain: float) -> DigestPiece:
    return DigestPiece(section, place, (line,), (gain,))


def fit(
    pieces: Iterable[DigestPiece],
    budget_tokens: int,
    count: Count,
    tight: tuple[float, float] = TIGHT,
) -> dict[int, str]:
    """Choose the forms with the highest gain per token. Return the text of each section.

    If even the shortest forms exceed the budget, drop routine steps first.
    """
    ordered = sorted(pieces, key=attrgetter("section", "place"))
    ladders = [piece.steps(count) for piece in ordered]
    need = sum(ladder[1].price for ladder in ladders) / max(budget_tokens, 1)
    tightness = min(max((need - tight[0]) / (tight[1] - tight[0]), 0.0), 1.0)
    for i, piece in enumerate(ordered):
        if tightness and piece.tight_share < 1:
            share = 1 - tightness * (1 - piece.tight_share)
            ladders[i] = [_Step(price, worth * share) for price, worth in ladders[i]]
    taken = [0] * len(ladders)
    left = budget_tokens
    waiting = [(*_best(ladder, 0, len(ladder)), i) for i, ladder in enumerate(ladders)]
    heapify(waiting)
    while waiting:
        _, step, i = heappop(waiting)
        ladder = ladders[i]
        price = ladder[step].price - ladder[taken[i]].price
        if price <= left:
            left -= price
            taken[i] = step
        end = len(ladder) if taken[i] == step else step
        if taken[i] + 1 < end:
            heappush(waiting, (*_best(ladder, taken[i], end), i))
    lines: dict[int, list[str]] = {}
    for piece, step in zip(ordered, taken, strict=True):
        if step:
            lines.setdefault(piece.section, []).append(piece.forms[step - 1])
    return {section: "\n".join(shown) for section, shown in lines.items()}


def _best(ladder: list[_Step], start: int, end: int) -> tuple[float, int]:
    """Return the highest gain per token, negated for a heap, and its step before `end`."""

    def rate(step: int) -> float:
        price = ladder[step].price - ladder[start].price
        return (ladder[step].worth - ladder[start].worth) / max(price, 1)

    best = max(range(start + 1, end), key=rate)
    return -rate(best), best
