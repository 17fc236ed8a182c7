"""How much of a list is what it was, found by halving.

Whatever changes is made anew with all that follows it, so the same objects are an unbroken
beginning, and looking for its end costs nothing to speak of, however long the list is.
"""

from collections.abc import Sequence


def common_prefix(known: Sequence[object], now: Sequence[object]) -> int:
    """Count the leading items that are the same objects."""
    low, high = 0, min(len(known), len(now))
    while low < high:
        middle = (low + high) // 2
        if known[middle] is now[middle]:
            low = middle + 1
        else:
            high = middle
    return low
