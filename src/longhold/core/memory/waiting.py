"""Waiting for a store that another process writes, while the event loop goes on.

A session opens its stores with `LOOP_SECONDS`: one call blocks no longer than that, and
`retry_while_busy` makes it again.
"""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

from longhold.core.memory.memory import MemoryBusy

T = TypeVar("T")

LOOP_SECONDS = 0.05
"""As long as a quick commit, and too short for anybody to notice."""
PAUSE_SECONDS = 0.05
BUSY_SECONDS = 5.0
"""A commit takes milliseconds, so a longer wait means that something is stuck."""


async def retry_while_busy(work: Callable[[], T]) -> T:
    """Do something that fails without a trace while the store is busy, again until it works."""
    end = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return work()
        except MemoryBusy:
            if time.monotonic() >= end:
                raise
        await asyncio.sleep(PAUSE_SECONDS)
