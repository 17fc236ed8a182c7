"""Fitting pieces of text into a budget, by what each is worth to a reader.

A piece has one or more forms, from the shortest to the fullest, and each form adds something to
the one before it. The form that gains most for its tokens is taken first, whatever its section, so
that the short form of everything that matters comes before the full form of anything.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache, lru_cache
from heapq import heapify, heappop, heappush
from itertools import accumulate
from operator import attrgetter
from typing import NamedTuple, TypeAlias

Count: TypeAlias = Callable[[str], int]
"""Counts tokens with the tokenizer the budget is in."""

AGEING = 0.4
"""Of its worth: what the oldest of a kind loses against the newest."""


REMEMBERED = 4_096
"""Lines whose tokens are remembered: those of a draft that is written several times, and the
user's messages, which every compaction counts again."""
REMEMBERED_CHARS = 2_000
"""A longer text is counted each time."""


@cache
def remember_counts(count: Count) -> Count:
    known = lru_cache(maxsize=REMEMBERED)(count)
    return lambda text: known(text) if len(text) <= REMEMBERED_CHARS else count(text)


class Worth(IntEnum):
    """What a form adds for whoever goes on with the work, compared with the other kinds.

    Tuned on the questions of `benchmarks/exam.py` that are not set aside, and on what
    `benchmarks/retention.py` counts. The user's words and the state are worth their price always.
    """

    LAST_WORDS = 2_000_000
    FIRST_WORDS = 1_000_000
    """So that no message is missing entirely."""
    NEXT_STEP = 500_000
    RUNNING = 490_000
    WORDS = 400_000
    WHOLE_WORDS = 300_000
    OPEN_TODOS = 50_000
    CHANGED_FILES = 40_000
    LAST_ANSWER = 30_000
    LAST_OUTCOME = 20_000
    """The last command, what it printed, and what waits for an answer."""
    EXPLANATIONS = 2_500
    EARLIER_EXPLANATIONS = 1_000
    PRIOR = 3_000
    OLD_WORDS = 2_000
    PASTES = 2_001
    LONG_LAST_ANSWER = 1_500
    DEMANDS = 1_600
    """What a plan or a document that the user pointed at demands, most of all."""
    MORE_DEMANDS = 1_700
    OUTLINES = 1_400
    """The rest of it."""
    READ_FILES = 900
    BRIEF_ANSWERS = 800
    OPEN_ERRORS = 801
    """Recent errors that were not seen to work since."""
    LONG_ANSWERS = 500
    OLD_FIRST_WORDS = 600
    """The same for messages that were compacted before."""
    COMMITS = 500
    ANSWERS = 501
    CURRENT_CODE = 300
    VERDICTS = 401
    RECENT_ERRORS = 450
    TOUCHED = 403
    CLEAR_ERRORS = 404
    """The line that names the problem."""
    CONCLUSIONS = 440
    """Causes and choices."""
    BRIEF_REPORTS = 351
    TOLD_REPORTS = 300
    WHOLE_ANSWERS = 301
    CURRENT_WORK = 250
    BESIDE = 251
    """The neighbours of what was changed."""
    SEEN = 400
    """Commits that were looked at, with their authors."""
    WHOLE_REPORTS = 150
    RECENT_COMMANDS = 310
    RECENT_OUTCOMES = 151
    PUT_IN = 120
    WHOLE_COMMANDS = 80
    REMARKS = 120
    WORK = 100
    REPORTS = 101
    SEARCHES = 102
    REASONS = 103
    REQUEST = 60
    LONG_ERRORS = 61
    OLD_ERRORS = 62
    OLD_COMMANDS = 63
    DONE_TODOS = 64
    OLD_TURNS = 50
    """What was done about messages that were compacted before."""
    OLD_CODE = 51
    OLD_OUTCOMES = 40


def lower_by_age(worth: float, age: float) -> float:
    """Lower a worth with age: 0 is the newest, 1 the oldest."""
    return worth * (1 - AGEING * age)


class _Step(NamedTuple):
    price: int
    worth: float


@dataclass(frozen=True, slots=True)
class DigestPiece:
    """One thing to include, in forms from the shortest to the fullest."""

    section: int
    place: tuple[float, ...]
    """Its sort key within the section."""
    forms: tuple[str, ...]
    gains: tuple[float, ...]
    """What each form is worth beyond the one before it."""
    _steps: dict[Count, list[_Step]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def steps(self, count: Count) -> list[_Step]:
        """Return the price and the worth of each form, after those of none at all."""
        if count not in self._steps:
            prices = (count(form) + 1 for form in self.forms)  # the line's end
            self._steps[count] = [_Step(0, 0.0), *map(_Step, prices, accumulate(self.gains))]
        return self._steps[count]


def line_piece(section: int, place: tuple[float, ...], line: str, gain: float) -> DigestPiece:
    return DigestPiece(section, place, (line,), (gain,))


def fit(pieces: Iterable[DigestPiece], budget_tokens: int, count: Count) -> dict[int, str]:
    """Take the forms that gain most for their tokens; return the text of each section."""
    ordered = sorted(pieces, key=attrgetter("section", "place"))
    ladders = [piece.steps(count) for piece in ordered]
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
    """Return which step before `end` gains most for its tokens, and how much, negated for a heap."""

    def rate(step: int) -> float:
        price = ladder[step].price - ladder[start].price
        return (ladder[step].worth - ladder[start].worth) / max(price, 1)

    best = max(range(start + 1, end), key=rate)
    return -rate(best), best
