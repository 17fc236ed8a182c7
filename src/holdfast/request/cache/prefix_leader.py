"""Of calls that share a prefix, one goes ahead; those beside it follow once it is being answered.

A provider can read what a call wrote only when its answer has begun, so calls that start
together all pay for the same prefix. Whoever is about to call names the prefix it shares and
waits here; the first passes at once and says when its answer began, or that it failed, and then
the next one tries. What has begun counts for as long as the provider keeps it.
"""

import asyncio
import time
from collections.abc import Callable

WAIT_SECONDS = 30.0
"""A long prompt is read in less; a call that is slower than this is not worth waiting for."""


class PrefixLeader:
    """Who goes ahead on which prefix, and until when each can be read."""

    def __init__(
        self, clock: Callable[[], float] = time.time, wait_seconds: float = WAIT_SECONDS
    ) -> None:
        self.clock = clock
        self.wait_seconds = wait_seconds
        self._ahead: dict[str, asyncio.Event] = {}
        self._until: dict[str, float] = {}

    async def wait(self, key: str) -> asyncio.Event | None:
        """Wait until a call on this prefix may start; whoever gets an event goes ahead."""
        while self._until.get(key, 0.0) <= self.clock():
            ahead = self._ahead.get(key)
            if ahead is None:
                self._ahead[key] = asyncio.Event()
                return self._ahead[key]
            try:
                async with asyncio.timeout(self.wait_seconds):
                    await ahead.wait()
            except TimeoutError:
                return None
        return None

    def began(self, key: str, lifetime_seconds: float) -> None:
        """Take note that a call is being answered: what it shares can be read from here on."""
        now = self.clock()
        self._until = {key: until for key, until in self._until.items() if until > now}
        self._until[key] = now + lifetime_seconds
        if key in self._ahead:
            self._ahead.pop(key).set()

    def gave_up(self, key: str, ahead: asyncio.Event) -> None:
        """Let the next one try, if nobody has gone ahead since."""
        if self._ahead.get(key) is ahead:
            self._ahead.pop(key).set()
