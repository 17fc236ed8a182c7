"""How many leading items of two lists are the same objects.

Whatever changes is rebuilt together with everything after it, so shared objects always form a
prefix, and bisection finds its end at no real cost, however long the list.
"""

from bisect import bisect_left
from collections.abc import Sequence


def common_prefix(known: Sequence[object], now: Sequence[object]) -> int:
    shared = range(min(len(known), len(now)))
    return bisect_left(shared, True, key=lambda i: known[i] is not now[i])
