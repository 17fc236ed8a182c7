"""A place in a growing history, for whatever keeps counts of a log up to date."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from longhold.core.log.entries import AnyEntry


@dataclass(slots=True)
class LogCursor:
    """Gives each entry of a history once, at a cost that depends only on what is new."""

    position: int = 0

    def is_past(self, history: Sequence[AnyEntry]) -> bool:
        """Return whether this is another, shorter history: a log never loses entries."""
        return self.position > len(history)

    def advance(self, history: Sequence[AnyEntry]) -> Sequence[AnyEntry]:
        """Return the entries since the last call; all of them if the history is another one."""
        start, self.position = self.position, len(history)
        return history[start:] if start <= self.position else history[:]


def last_n(history: Sequence[AnyEntry]) -> int:
    return history[-1].n if history else 0


LAST_MOMENT = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
_BEGAN = time.time() - time.monotonic()


def earliest_now() -> float:
    """Return the time by the wall clock, or by what passed in this process if that is earlier.

    A clock that jumps ahead must not make what was written a minute ago look expired.
    """
    return min(time.time(), _BEGAN + time.monotonic())


def clamp_time(at: float) -> float:
    return at if 0 <= at <= LAST_MOMENT else 0.0
