"""A cursor that reads each entry of a growing history once, and a clock that never jumps ahead."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from longhold.core.log.entries import AnyEntry


@dataclass(slots=True)
class LogCursor:
    """Returns each entry of a history once, at a cost proportional to the new entries."""

    position: int = 0

    def is_past(self, history: Sequence[AnyEntry]) -> bool:
        """Return whether the history is shorter than before, which means that it is another log."""
        return self.position > len(history)

    def advance(self, history: Sequence[AnyEntry]) -> Sequence[AnyEntry]:
        """Return the entries since the last call, or all of them for a different history."""
        start, self.position = self.position, len(history)
        return history[start:] if start <= self.position else history[:]


def last_n(history: Sequence[AnyEntry]) -> int:
    return history[-1].n if history else 0


LAST_MOMENT = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
_BEGAN = time.time() - time.monotonic()


def earliest_now() -> float:
    """Return the earlier of the wall clock time and the time derived from the monotonic clock.

    A clock that jumps ahead must not make recent entries look expired.
    """
    return min(time.time(), _BEGAN + time.monotonic())


def clamp_time(at: float) -> float:
    return at if 0 <= at <= LAST_MOMENT else 0.0
