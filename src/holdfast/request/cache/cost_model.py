"""The calls to come after one, as they may be expected, and what they cost together.

Prices, an outlook and a prompt's length come in, dollars go out. Only warm calls count: when
the cache dies, whoever waited with an edit makes it for free, and all are level again.
"""

import math
from dataclasses import dataclass

from holdfast.models.prices import TOKENS_PER_PRICE, Prices
from holdfast.request.cache.cache_state import Lifetime, call_usd, steps
from holdfast.request.cache.forecast import Forecast


@dataclass(frozen=True, slots=True, kw_only=True)
class CostModel:
    """How a session is expected to go on."""

    listed: Prices
    outlook: Forecast
    lifetime: Lifetime = "5m"

    def call_usd(self, prompt_tokens: float, read_tokens: float) -> float:
        """Price a call with an answer of the usual length."""
        return call_usd(
            self.listed,
            prompt_tokens=prompt_tokens,
            read_tokens=read_tokens,
            lifetime=self.lifetime,
            output_tokens=self.outlook.output_tokens,
        )

    def next_usd(self, prompt_tokens: float) -> float:
        """Price the call after one with this prompt: it reads that and writes what came since."""
        return self.call_usd(prompt_tokens + self.outlook.growth_tokens, prompt_tokens)

    def ahead_usd(self, prompt_tokens: float) -> float:
        """Price all warm calls to come after one with this prompt, each by its chance.

        Call j has the chance stays_warm**j and costs fixed + slope * j, at the prices of the
        step its prompt is on; each step's share is a tail of that sum less the next step's.
        """
        growth, stays = self.outlook.growth_tokens, self.outlook.stays_warm
        found, total = steps(self.listed), 0.0
        for number, step in enumerate(found):
            flat = step.prices
            fixed = (prompt_tokens - growth) * flat.read + growth * step.write(self.lifetime)
            fixed += self.outlook.output_tokens * flat.output
            slope = growth * flat.read
            total += _tail(fixed, slope, stays, self._first_past(step.above_tokens, prompt_tokens))
            if number + 1 < len(found):
                line = found[number + 1].above_tokens
                total -= _tail(fixed, slope, stays, self._first_past(line, prompt_tokens))
        return total / TOKENS_PER_PRICE

    def _first_past(self, line_tokens: int, prompt_tokens: float) -> float:
        """Number the first call to come whose prompt is longer than a line.

        Not a whole number: growth is a mean, so where between two calls the line is crossed is
        not known, and the middle is taken. Whole numbers would make waiting look like a gamble.
        """
        growth, room = self.outlook.growth_tokens, line_tokens - prompt_tokens
        if room < 0:
            return 1.0
        return max(1.0, room / growth + 0.5) if growth > 0 else math.inf


def _tail(fixed: float, slope: float, ratio: float, first: float) -> float:
    """Sum ratio**j * (fixed + slope * j) over all j from the first on."""
    if math.isinf(first):
        return 0.0
    rest = 1 - ratio
    scale: float = ratio**first
    return scale * ((fixed + slope * first) / rest + slope * ratio / rest**2)
