"""Times by clocks that may have been set, and in files that may say anything."""

import time
from datetime import UTC, datetime

LAST_MOMENT = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
_BEGAN = time.time() - time.monotonic()


def earliest_now() -> float:
    """Return the time by the wall clock, or by what passed in this process if that is earlier.

    A clock that jumps ahead must not make what was written a minute ago look expired.
    """
    return min(time.time(), _BEGAN + time.monotonic())


def possible(at: float) -> float:
    """Return a time that can be written as a date, else 0."""
    return at if 0 <= at <= LAST_MOMENT else 0.0
