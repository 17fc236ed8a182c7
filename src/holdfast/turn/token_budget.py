"""A budget that the user names in a message: `+500k …`, or "use 2M tokens"."""

import re

NUMBER_DIGITS = 12
"""A longer number is no budget but part of something else."""

_BUDGET = re.compile(
    r"^\s*\+(\d+(?:\.\d+)?)([kmb])\b|(?<!not )\b(?:use|spend)\s+(\d+(?:\.\d+)?)\s*([kmb])\s+tokens\b",
    re.IGNORECASE,
)


def budget_in(text: str) -> int:
    """Return the tokens that a message grants for its task; 0 if it names none."""
    found = _BUDGET.search(text)
    if not found:
        return 0
    number, unit = found[1] or found[3], (found[2] or found[4]).lower()
    if len(number) > NUMBER_DIGITS:
        return 0
    return int(float(number) * {"k": 1_000, "m": 1_000_000, "b": 1_000_000_000}[unit])
