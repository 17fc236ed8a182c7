"""Of calls that share a prefix, one goes ahead; those beside it follow once it is being answered.

A provider can read what a call wrote only when its answer has begun, so calls that start
together all pay for the same prefix. Whoever is about to call says which prefix it shares and
waits here; the first passes at once and says when its answer began, or that it failed, and then
the next one tries. What has begun counts for as long as the provider keeps it.
"""

import asyncio
import time
from collections.abc import Callable

WAIT_SECONDS = 30.0
"""A long prompt is read in less; a call that is slower than this is not worth waiting for."""


class Vanguard:
    """Who goes ahead on which prefix, and since when each can be read."""

    def __init__(
        self, clock: Callable[[], float] = time.time, wait_seconds: float = WAIT_SECONDS
    ) -> None:
        self.clock = clock
        self.wait_seconds = wait_seconds
        self._ahead: dict[str, asyncio.Event] = {}
        self._readable_until: dict[str, float] = {}

    async def wait(self, key: str) -> bool:
        """Wait until a call on this prefix may start; say whether it is the one that goes ahead."""
        while not self._is_readable(key):
            ahead = self._ahead.get(key)
            if ahead is None:
                self._ahead[key] = asyncio.Event()
                return True
            try:
                async with asyncio.timeout(self.wait_seconds):
                    await ahead.wait()
            except TimeoutError:
                return False
        return False

    def began(self, key: str, lifetime_seconds: float) -> None:
        """Take note that a call is being answered: what it shares can be read from here on."""
        now = self.clock()
        for old in [key for key, until in self._readable_until.items() if until <= now]:
            del self._readable_until[old]
        self._readable_until[key] = now + lifetime_seconds
        self.gave_up(key)

    def gave_up(self, key: str) -> None:
        """Let the next one try: the call that went ahead will not be answered, or already is."""
        ahead = self._ahead.pop(key, None)
        if ahead is not None:
            ahead.set()

    def _is_readable(self, key: str) -> bool:
        return self._readable_until.get(key, 0.0) > self.clock()
