"""What a session does about a call that failed: wait, make room, or give up."""

import random
from collections.abc import Awaitable, Callable

from holdfast.errors import ModelError, PromptTooLong
from holdfast.models.retry import RETRIES, wait_seconds
from holdfast.models.translate import translate
from holdfast.stages.compact.compact import Compaction
from holdfast.turn.engine import Engine


class Recovery:
    """One session's failures since its last answer."""

    def __init__(self, compact: Compaction, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._compact = compact
        self._sleep = sleep
        self._attempt = 0
        self._waited = 0.0
        self._has_recovered = False
        """An overflow was recovered from in this turn; a second one is raised."""
        self._dice = random.Random()

    def reset(self) -> None:
        """Begin anew: an answer came."""
        self._attempt, self._waited, self._has_recovered = 0, 0.0, False

    async def recover(self, engine: Engine, error: BaseException) -> None:
        """Return once the call can be tried again, or raise what cannot be helped."""
        ours = error if isinstance(error, ModelError) else translate(error)
        if ours is None:
            raise error
        if isinstance(ours, PromptTooLong) and not self._has_recovered:
            self._has_recovered = True
            if await self._compact.recover(engine, ours):
                return
        self._attempt += 1
        wait = wait_seconds(ours, self._attempt, RETRIES, self._dice, self._waited)
        if wait is None:
            raise ours from error
        self._waited += wait
        await self._sleep(wait)
