"""Retry policy: which errors are retried, how often, and the backoff.

Only transient failures are retried. After the first tool call there is no retry, because the tool
may already have run. Each failed attempt is a `Restarted` event in the stream.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from longhold.core.messages import ToolUse
from longhold.core.models.protocol import BlockFinished, Event, Model, Request, Restarted
from longhold.core.models.steady import PATIENCE, Endless, Patience, closing, guard_stream
from longhold.errors import ConfigError, ModelError, ModelUnavailable, StreamBroken

MAX_ATTEMPTS = 15
"""With more attempts, the waits alone exceed 90 seconds, and the user should decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    attempts: int = 10
    """Ten attempts cover an overload of about a minute."""
    base_seconds: float = 0.5
    """The first wait. It doubles with each attempt, as in both SDKs."""
    cap_seconds: float = 8.0
    """Longest wait, unless the provider requests more."""
    jitter_ratio: float = 0.25
    """Each wait is shortened by a random share up to this, so that clients do not synchronise."""
    obey_seconds: float = 300.0
    """If a provider requests a longer wait, the error is raised instead."""
    total_seconds: float = 600.0
    """The limit for all waits of one answer. After ten minutes, the user should decide."""

    def __post_init__(self) -> None:
        if not 1 <= self.attempts <= MAX_ATTEMPTS:
            raise ConfigError(f"attempts is {self.attempts}; it must be 1 to {MAX_ATTEMPTS}")


RETRIES = Retries()


def wait_seconds(
    error: ModelError,
    attempt: int,
    retries: Retries,
    dice: random.Random,
    waited_seconds: float = 0.0,
) -> float | None:
    """Return how long to wait after failed attempt number `attempt`, or None to give up."""
    may_pass = isinstance(error, ModelUnavailable | StreamBroken) and not isinstance(error, Endless)
    if not may_pass or attempt >= retries.attempts:
        return None
    asked = getattr(error, "retry_after_seconds", None)
    if asked is not None:
        is_obeyed = asked <= min(retries.obey_seconds, retries.total_seconds - waited_seconds)
        return asked if is_obeyed else None
    wait = min(retries.cap_seconds, retries.base_seconds * 2 ** (attempt - 1))
    return float(wait * (1 - retries.jitter_ratio * dice.random()))


class Backoff:
    def __init__(self, retries: Retries = RETRIES, dice: random.Random | None = None) -> None:
        self.attempts = 0
        self._retries, self._dice = retries, dice or random.Random()
        self._waited_seconds = 0.0

    def next_seconds(self, error: ModelError) -> float | None:
        self.attempts += 1
        wait = wait_seconds(error, self.attempts, self._retries, self._dice, self._waited_seconds)
        self._waited_seconds += wait or 0.0
        return wait


async def stream_with_retries(
    model: Model,
    request: Request,
    *,
    retries: Retries = RETRIES,
    patience: Patience = PATIENCE,
    may_retry: Callable[[ModelError], bool] = lambda _: True,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    dice: random.Random | None = None,
) -> AsyncIterator[Event]:
    """Stream an answer. Restart after transient failures, but not once a tool call was yielded."""
    backoff = Backoff(retries, dice)
    while True:
        handed_on_tool = False
        events = guard_stream(model.stream(request), patience)
        try:
            async with closing(events):
                async for event in events:
                    match event:
                        case BlockFinished(block=ToolUse()):
                            handed_on_tool = True
                    yield event
            return
        except ModelError as error:
            wait = backoff.next_seconds(error)
            if wait is None or handed_on_tool or not may_retry(error):
                raise
            restarted = Restarted(attempt=backoff.attempts, wait_seconds=wait, error=error)
        yield restarted
        await sleep(restarted.wait_seconds)
