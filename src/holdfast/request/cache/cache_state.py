"""What of a prompt can be read from the cache, and what a call costs by it.

Prices and token counts come in, dollars go out; nothing is looked up and no clock is read. The
last marker stands on the last message, so what is not read is written. Prefixes below a model's
minimum are not considered: no session worth an edit is that short. Tests hold this against the
simulator's billing.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

from holdfast.models.prices import TOKENS_PER_PRICE, Prices

Lifetime = Literal["5m", "1h"]
LIFETIME_SECONDS: dict[Lifetime, float] = {"5m": 300.0, "1h": 3_600.0}
"""How long what a marker asked for lives, from the start of the call that wrote or read it."""
KNOWN_TARIFFS = 64  # one per model and day that a process prices


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheState:
    """What of a prompt can be read from the cache if it is sent now."""

    tokens: int = 0
    """The beginning of the prompt as it stands that is cached; 0 is a cold cache."""
    marked: tuple[int, ...] = ()
    """Ends of shorter beginnings that are cached too, each under a marker the request carries."""
    lifetime: Lifetime = "5m"

    @property
    def is_cold(self) -> bool:
        """Say whether nothing can be read."""
        return self.tokens == 0

    def readable_before(self, tokens: int) -> int:
        """Give what can still be read if everything from this place on changes."""
        if tokens >= self.tokens:
            return self.tokens
        return max((end for end in self.marked if end <= tokens), default=0)

    def after(self, idle_seconds: float, lives_seconds: float | None = None) -> "CacheState":
        """Let time pass since the last call began; some caches live as long as they please."""
        lives = LIFETIME_SECONDS[self.lifetime] if lives_seconds is None else lives_seconds
        is_alive = idle_seconds < lives
        return self if is_alive else CacheState(lifetime=self.lifetime)


class CostStep(NamedTuple):
    """Flat prices that hold above a prompt length, up to the next step."""

    above_tokens: int
    prices: Prices

    def write(self, lifetime: Lifetime) -> float:
        """Give the price of writing for a lifetime."""
        return self.prices.write_1h if lifetime == "1h" else self.prices.write_5m


@lru_cache(maxsize=KNOWN_TARIFFS)
def steps(listed: Prices) -> tuple[CostStep, ...]:
    """List the flat prices by the length from which they hold, shortest first."""
    lines = sorted(tier.above_prompt_tokens for tier in listed.tiers)
    return (
        CostStep(-1, listed.at_length(0)),
        *(CostStep(line, listed.at_length(line + 1)) for line in lines),
    )


def step_at(listed: Prices, prompt_tokens: float) -> CostStep:
    """Give the prices for a prompt of this length."""
    found = steps(listed)
    for step in reversed(found):
        if prompt_tokens > step.above_tokens:
            return step
    return found[0]


def call_usd(
    listed: Prices,
    *,
    prompt_tokens: float,
    read_tokens: float,
    lifetime: Lifetime = "5m",
    output_tokens: float = 0.0,
) -> float:
    """Price a call that reads the beginning of its prompt and writes the rest."""
    step = step_at(listed, prompt_tokens)
    return (
        read_tokens * step.prices.read
        + (prompt_tokens - read_tokens) * step.write(lifetime)
        + output_tokens * step.prices.output
    ) / TOKENS_PER_PRICE
