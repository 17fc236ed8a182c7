"""Fitting what could be told into a budget.

Pieces come in, each with one or more forms, from the shortest to the fullest, and a rank for
each form; the text that fits goes out. Forms are bought in the order of their ranks, across
all sections, so that the short form of everything that matters comes before the full form of
anything. What was not bought at all is counted, section by section.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Count: TypeAlias = Callable[[str], int]
"""How many tokens a text has, by whichever tokenizer the budget is in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestPiece:
    """One thing that could be told, at more or less length."""

    section: int
    place: tuple[float, ...]
    """Where in its section it stands."""
    forms: tuple[str, ...]
    ranks: tuple[float, ...]
    """When each form is bought; the lowest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedPieces:
    """What is told, by section, and how many things are not."""

    sections: dict[int, str]
    left_out: Counter[int]
    tokens: int


def fit(pieces: Iterable[DigestPiece], budget_tokens: int, count: Count) -> FittedPieces:
    """Buy forms by rank until nothing more fits."""
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
