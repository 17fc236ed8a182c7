"""Fitting what could be told into a budget.

Pieces come in, each with one or more forms, from the shortest to the fullest, and a rank for
each form; the text that fits goes out. Forms are bought in the order of their ranks, across
all sections, so that the short form of everything that matters comes before the full form of
anything. What was not bought at all is counted, section by section.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum, auto
from typing import TypeAlias

Count: TypeAlias = Callable[[str], int]
"""How many tokens a text has, by whichever tokenizer the budget is in."""


class Rank(IntEnum):
    """When a form is bought, first to last; within one rank the newer comes first.

    The short form of everything that matters stands above the full form of anything.
    """

    LAST_WORDS = auto()
    FIRST_WORDS = auto()
    """How each message begins, so that none is missing even where most of it is."""
    NEXT_STEP = auto()
    RUNNING = auto()
    WORDS = auto()
    CHANGED_FILES = auto()
    OPEN_TODOS = auto()
    LAST_ANSWER = auto()
    WHOLE_WORDS = auto()
    VERDICTS = auto()
    COMMITS = auto()
    BRIEF_ANSWERS = auto()
    """What came of each turn, in a sentence or two."""
    OLD_FIRST_WORDS = auto()
    """How messages begin that were compacted before."""
    READ_FILES = auto()
    OPEN_ERRORS = auto()
    """What went wrong lately and was not seen to work since."""
    CONCLUSIONS = auto()
    """Causes and choices, in the agent's own words."""
    ANSWERS = auto()
    RECENT_ERRORS = auto()
    TOUCHED = auto()
    OLD_WORDS = auto()
    PRIOR = auto()
    """A summary of history that nothing else tells."""
    PASTES = auto()
    CURRENT_WORK = auto()
    OUTLINES = auto()
    """Plans and specifications in brief."""
    LONG_LAST_ANSWER = auto()
    DEEDS = auto()
    RECENT_COMMANDS = auto()
    RECENT_OUTCOMES = auto()
    CURRENT_CODE = auto()
    REQUEST = auto()
    REPORTS = auto()
    REMARKS = auto()
    LONG_ANSWERS = auto()
    LONG_OUTLINES = auto()
    LONG_ERRORS = auto()
    PUT_IN = auto()
    SEARCHES = auto()
    DONE_TODOS = auto()
    OLD_ERRORS = auto()
    OLD_COMMANDS = auto()
    TOLD_REPORTS = auto()
    REASONS = auto()
    OLD_TURNS = auto()
    """What was done about messages that were compacted before."""
    WHOLE_ANSWERS = auto()
    WHOLE_REPORTS = auto()
    OLD_OUTCOMES = auto()
    OLD_CODE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestPiece:
    """One thing to include, in forms from the shortest to the fullest."""

    section: int
    place: tuple[float, ...]
    """Where in its section it stands."""
    forms: tuple[str, ...]
    ranks: tuple[float, ...]
    """When each form is bought; the lowest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedPieces:
    """The text by section, and how many pieces were left out."""

    sections: dict[int, str]
    left_out: Counter[int]
    tokens: int


def fit(pieces: Iterable[DigestPiece], budget_tokens: int, count: Count) -> FittedPieces:
    """Take forms by rank until nothing more fits."""
    ordered = sorted(pieces, key=lambda piece: (piece.section, piece.place))
    bought: dict[int, str] = {}
    spent = _buy(ordered, bought, budget_tokens, count)
    lines: dict[int, list[str]] = {}
    left_out: Counter[int] = Counter()
    for i, piece in enumerate(ordered):
        if i in bought:
            lines.setdefault(piece.section, []).append(bought[i])
        else:
            left_out[piece.section] += 1
    sections = {section: "\n".join(told) for section, told in lines.items()}
    return FittedPieces(sections=sections, left_out=left_out, tokens=spent)


def _buy(
    pieces: Sequence[DigestPiece], bought: dict[int, str], budget_tokens: int, count: Count
) -> int:
    offers = [
        (rank, i, form) for i, piece in enumerate(pieces) for form, rank in enumerate(piece.ranks)
    ]
    prices: dict[int, int] = {}
    spent = 0
    for _, i, form in sorted(offers):
        text = pieces[i].forms[form]
        price = count(text) + 1  # the line's end
        if spent - prices.get(i, 0) + price <= budget_tokens:
            spent += price - prices.get(i, 0)
            prices[i], bought[i] = price, text
    return spent
