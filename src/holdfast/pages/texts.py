"""Foreign text on a page: without what steers a terminal, without secrets, within a budget."""

import re
from collections.abc import Sequence
from itertools import accumulate

from holdfast.log.secrets import masked

SECRET_CHARS = 4_096
"""Read past a cut, so that a secret which the cut would halve is recognised whole."""

_STEERING = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\\\)"
    "|[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
"""Colours and titles of a terminal; control characters, and those that reorder what is read."""


def shown(text: str, chars: int) -> str:
    """Return the beginning of a foreign text as a page may show it."""
    head = text[: chars + SECRET_CHARS].replace("\r\n", "\n")
    return _STEERING.sub("", masked(head))[:chars].encode("utf-8", "replace").decode()


def fair_limit(sizes: Sequence[int], budget: int) -> int:
    """Return the length to cut every text to so that all fit a budget; short ones stay whole."""
    ordered = sorted(sizes)
    for i, (size, total) in enumerate(zip(ordered, accumulate(ordered), strict=True)):
        rest = len(ordered) - i - 1
        if total + rest * size > budget:
            return max(0, budget - (total - size)) // (rest + 1)
    return ordered[-1] if ordered else 0
