"""Lets one of several concurrent calls with the same prefix go first; the others then read its cache.

A provider can read what a call wrote only once its answer has begun, so calls started together
would all pay for the same prefix. Callers wait here under the prefix's key. The first becomes
the leader at once and reports when its answer began, or that it failed, in which case the next
one leads. A prefix that has begun stays readable for the provider's lifetime.
"""

import asyncio
import time
from collections.abc import Callable

WAIT_SECONDS = 30.0
"""A long prompt is read in less; a slower leader is not worth waiting for."""


class PrefixLeader:
    """The leader of each prefix, and until when each prefix can be read."""

    def __init__(
        self, clock: Callable[[], float] = time.time, wait_seconds: float = WAIT_SECONDS
    ) -> None:
        self._clock = clock
        self._wait_seconds = wait_seconds
        self._leaders: dict[str, asyncio.Event] = {}
        self._until: dict[str, tuple[float, float]] = {}
        """For each prefix: since when and until when it can be read."""

    async def wait(self, key: str) -> asyncio.Event | None:
        """Wait until a call on this prefix may start; returns an event to the leader only."""
        while not self._is_readable(key):
            leader = self._leaders.get(key)
            if leader is None:
                self._leaders[key] = asyncio.Event()
                return self._leaders[key]
            try:
                async with asyncio.timeout(self._wait_seconds):
                    await leader.wait()
            except TimeoutError:
                return None
        return None

    def _is_readable(self, key: str) -> bool:
        """Whether a call on this prefix was answered lately; a clock set back says nothing of that."""
        began, until = self._until.get(key, (0.0, 0.0))
        return began <= self._clock() < until

    def began(self, key: str, lifetime_seconds: float) -> None:
        """Record that a call is being answered: its prefix can be read from now on."""
        now = self._clock()
        self._until = {key: span for key, span in self._until.items() if span[0] <= now < span[1]}
        self._until[key] = (now, now + lifetime_seconds)
        if key in self._leaders:
            self._leaders.pop(key).set()

    def gave_up(self, key: str, leader: asyncio.Event) -> None:
        """Let the next caller lead, unless another has begun since."""
        if self._leaders.get(key) is leader:
            self._leaders.pop(key).set()
