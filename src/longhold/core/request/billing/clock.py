"""The simulator's clock: real seconds plus those skipped by `advance`, or frozen."""

import time


class SimulatorClock:
    def __init__(self, *, is_frozen: bool = False) -> None:
        self._frozen_at = time.time() if is_frozen else None
        self._skipped_seconds = 0.0

    def now(self) -> float:
        real = time.time() if self._frozen_at is None else self._frozen_at
        return real + self._skipped_seconds

    def advance(self, seconds: float) -> float:
        if not seconds >= 0 or seconds == float("inf"):
            raise ValueError(f"cannot advance the clock by {seconds!r} seconds; give 0 or more")
        self._skipped_seconds += seconds
        return self.now()
