"""Fitting pieces of text into a budget.

Each piece has one or more forms, from the shortest to the fullest, and a rank for each. Forms are
taken by rank across all sections, so that the short form of everything that matters comes before
the full form of anything.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum, auto
from typing import TypeAlias

Count: TypeAlias = Callable[[str], int]
"""Counts tokens with the tokenizer the budget is in."""


class Rank(IntEnum):
    """When a form is bought, first to last; within one rank the newer comes first.

    The short form of everything that matters stands above the full form of anything.
    """

    LAST_WORDS = auto()
    FIRST_WORDS = auto()
    """So that no message is missing entirely."""
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
    OLD_FIRST_WORDS = auto()
    """The same for messages that were compacted before."""
    READ_FILES = auto()
    OPEN_ERRORS = auto()
    """Recent errors that were not seen to work since."""
    CONCLUSIONS = auto()
    """Causes and choices."""
    ANSWERS = auto()
    RECENT_ERRORS = auto()
    TOUCHED = auto()
    OLD_WORDS = auto()
    PRIOR = auto()
    PASTES = auto()
    CURRENT_WORK = auto()
    OUTLINES = auto()
    """Plans and specifications."""
    LONG_LAST_ANSWER = auto()
    WORK = auto()
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
    """Its sort key within the section."""
    forms: tuple[str, ...]
    ranks: tuple[float, ...]
    """When each form is taken, lowest first."""


def line_piece(section: int, place: tuple[float, ...], line: str, rank: float) -> DigestPiece:
    """Make a piece that has only one form."""
    return DigestPiece(section=section, place=place, forms=(line,), ranks=(rank,))


def fit(pieces: Iterable[DigestPiece], budget_tokens: int, count: Count) -> dict[int, str]:
    """Take forms by rank until nothing more fits; return the text of each section."""
    ordered = sorted(pieces, key=lambda piece: (piece.section, piece.place))
    offers = [
        (rank, i, form)
        for i, piece in enumerate(ordered)
        for form, rank in zip(piece.forms, piece.ranks, strict=True)
    ]
    chosen: dict[int, str] = {}
    prices: dict[int, int] = {}
    spent = 0
    for _, i, form in sorted(offers, key=lambda offer: offer[:2]):
        price = count(form) + 1  # the line's end
        if spent - prices.get(i, 0) + price <= budget_tokens:
            spent += price - prices.get(i, 0)
            prices[i], chosen[i] = price, form
    lines: dict[int, list[str]] = {}
    for i in sorted(chosen):
        lines.setdefault(ordered[i].section, []).append(chosen[i])
    return {section: "\n".join(shown) for section, shown in lines.items()}
