"""What a call costs given what is cached, and what the calls still to come are expected to cost.

Pure arithmetic on prices and token counts. Every prompt ends in a marker, so what is not read is
written. The minimum length of a cached prefix is ignored: no session worth an edit is that
short. The tests compare `CostModel` with the simulator's billing.
"""

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from holdfast.models.prices import TOKENS_PER_PRICE, Prices
from holdfast.request.lifetime import Lifetime, seconds_of

KNOWN_TARIFFS = 64  # one per model and day that a process prices
USUAL_CALLS = 100.0
"""Calls still to come, however many came before: 82 to 135 over 48 recorded sessions."""
SESSION_WEIGHT = 10.0
"""How many sessions the usual figure counts for against the current one."""
USUAL_COLD_SHARE: dict[Lifetime, float] = {"5m": 0.033, "1h": 0.005}
"""Share of 3,880 recorded calls that came after the lifetime had ended."""
COLD_WEIGHT_CALLS = 30.0
"""How many calls the usual share counts for; recorded sessions range from 0 to 0.19."""
USUAL_GROWTH_TOKENS = 1_200.0
"""What a call adds to the next prompt, averaged over the recorded sessions."""
GROWTH_WEIGHT_CALLS = 5.0
"""How many calls the usual growth counts for: few, as it soon shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What to expect of the rest of a session: calls, pauses, growth.

    The number of further calls is modelled as geometric and pauses as equally likely on any call:
    in the recorded sessions about as many calls follow after 10 calls as after 100, and a pause
    says nothing about the next one. `payback` needs only the mean.
    """

    calls: float = USUAL_CALLS
    """Mean number of calls after the next one."""
    cold_share: float = USUAL_COLD_SHARE["5m"]
    """Share of calls that will find the cache dead."""
    growth_tokens: float = USUAL_GROWTH_TOKENS
    """What each call adds to the prompt."""
    removable_tokens: float = 0.0
    """How much of that growth a later edit of the same kind could remove again."""

    @property
    def stays_warm(self) -> float:
        """The probability that another call comes and finds the cache alive."""
        return self.calls / (1 + self.calls) * (1 - self.cold_share)

    @property
    def warm_calls(self) -> float:
        """Mean number of further calls before the session ends or the cache dies."""
        return self.stays_warm / (1 - self.stays_warm)


def expect(
    *,
    calls: int,
    cold_calls: int = 0,
    grown_tokens: int = 0,
    removable_tokens: int = 0,
    lifetime: Lifetime = "5m",
) -> Forecast:
    """Forecast the rest of a session from the calls it has made.

    `grown_tokens` is what all calls added together, `removable_tokens` the part of it that can
    be removed sooner or later.
    """
    usual_cold = USUAL_COLD_SHARE[lifetime]
    grown = GROWTH_WEIGHT_CALLS * USUAL_GROWTH_TOKENS + grown_tokens
    growth = grown / (GROWTH_WEIGHT_CALLS + calls)
    return Forecast(
        calls=USUAL_CALLS + calls / SESSION_WEIGHT,
        cold_share=(COLD_WEIGHT_CALLS * usual_cold + cold_calls) / (COLD_WEIGHT_CALLS + calls),
        growth_tokens=growth,
        removable_tokens=growth * min(1.0, removable_tokens / grown_tokens)
        if grown_tokens
        else 0.0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheState:
    """How much of a prompt could be read from the cache if it were sent now."""

    tokens: int = 0
    """Length of the cached prefix of the current prompt; 0 is a cold cache."""
    marked: tuple[int, ...] = ()
    """Ends of shorter cached prefixes, each under a marker that the request carries."""
    lifetime: Lifetime = "5m"

    @property
    def is_cold(self) -> bool:
        return self.tokens == 0

    def readable_before(self, tokens: int) -> int:
        """Return what can still be read if everything from this position on changes."""
        if tokens >= self.tokens:
            return self.tokens
        return max((end for end in self.marked if end <= tokens), default=0)

    def after(self, idle_seconds: float, lives_seconds: float | None = None) -> "CacheState":
        """Return the state this long after the last call started.

        `lives_seconds` overrides the marker's lifetime for providers that have their own.
        """
        lives = seconds_of(self.lifetime) if lives_seconds is None else lives_seconds
        return self if idle_seconds < lives else CacheState(lifetime=self.lifetime)


class CostStep(NamedTuple):
    """Flat prices that apply above a prompt length, up to the next step."""

    above_tokens: int
    prices: Prices

    def write(self, lifetime: Lifetime) -> float:
        return self.prices.write_1h if lifetime == "1h" else self.prices.write_5m


@lru_cache(maxsize=KNOWN_TARIFFS)
def steps(listed: Prices) -> tuple[CostStep, ...]:
    """List the flat prices by the prompt length from which they apply, shortest first."""
    lines = sorted(tier.above_prompt_tokens for tier in listed.tiers)
    return (
        CostStep(-1, listed.at_length(0)),
        *(CostStep(line, listed.at_length(line + 1)) for line in lines),
    )


def step_at(listed: Prices, prompt_tokens: float) -> CostStep:
    found = steps(listed)
    return next((step for step in reversed(found) if prompt_tokens > step.above_tokens), found[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class CostModel:
    """Prices a session's next calls, given a forecast of how it continues."""

    listed: Prices
    forecast: Forecast = field(default_factory=Forecast)
    lifetime: Lifetime = "5m"

    def call_usd(self, prompt_tokens: float, read_tokens: float) -> float:
        """Price a prompt whose first part is read and whose rest is written; answers cost the same."""
        step = step_at(self.listed, prompt_tokens)
        written = (prompt_tokens - read_tokens) * step.write(self.lifetime)
        return (read_tokens * step.prices.read + written) / TOKENS_PER_PRICE

    def next_usd(self, prompt_tokens: float) -> float:
        """Price the call after one with this prompt: it reads that and writes the growth."""
        return self.call_usd(prompt_tokens + self.forecast.growth_tokens, prompt_tokens)

    def ahead_usd(self, prompt_tokens: float) -> float:
        """Return the expected cost of all warm calls after one with this prompt.

        Cold calls do not count: once the cache has died, a postponed edit is free, so every
        policy is level again. Call j happens with probability stays_warm**j and costs
        fixed + slope * j at the prices of the step its prompt is on; each step's share is a tail
        of that sum minus the next step's.
        """
        growth, stays = self.forecast.growth_tokens, self.forecast.stays_warm
        found, total = steps(self.listed), 0.0
        for number, step in enumerate(found):
            flat = step.prices
            fixed = (prompt_tokens - growth) * flat.read + growth * step.write(self.lifetime)
            slope = growth * flat.read
            total += _tail(fixed, slope, stays, self._first_past(step.above_tokens, prompt_tokens))
            if number + 1 < len(found):
                line = found[number + 1].above_tokens
                total -= _tail(fixed, slope, stays, self._first_past(line, prompt_tokens))
        return total / TOKENS_PER_PRICE

    def _first_past(self, line_tokens: int, prompt_tokens: float) -> float:
        """Number the first future call whose prompt is longer than a line.

        The result is not whole: growth is a mean, so where between two calls the line is
        crossed is unknown, and the middle is taken. Whole numbers would make waiting look like
        a gamble.
        """
        growth, room = self.forecast.growth_tokens, line_tokens - prompt_tokens
        if room < 0:
            return 1.0
        return max(1.0, room / growth + 0.5) if growth > 0 else math.inf


def _tail(fixed: float, slope: float, ratio: float, first: float) -> float:
    """Sum ratio**j * (fixed + slope * j) over all j >= first."""
    if math.isinf(first):
        return 0.0
    rest = 1 - ratio
    scale: float = ratio**first
    return scale * ((fixed + slope * first) / rest + slope * ratio / rest**2)
