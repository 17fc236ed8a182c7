"""How old things are, by a clock that may have been set: for whatever removes what is old."""

import time

_BEGAN = time.time() - time.monotonic()


def earliest_now() -> float:
    """Return the time by the wall clock, or by what passed in this process if that is earlier.

    A clock that jumps ahead must not make what was written a minute ago look expired.
    """
    return min(time.time(), _BEGAN + time.monotonic())
