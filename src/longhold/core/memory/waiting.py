"""Wait for a store that another process writes, without blocking the event loop."""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

from longhold.core.memory.memory import MemoryBusy

T = TypeVar("T")

LOOP_SECONDS = 0.05
"""As long as a quick commit, and too short to notice."""
PAUSE_SECONDS = 0.05
BUSY_SECONDS = 5.0
"""A commit takes milliseconds, so a longer wait means that something is stuck."""


async def retry_while_busy(work: Callable[[], T]) -> T:
    """Retry `work` while the store is busy. A busy call must leave no trace."""
    end = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return work()
        except MemoryBusy:
            if time.monotonic() >= end:
                raise
        await asyncio.sleep(PAUSE_SECONDS)
