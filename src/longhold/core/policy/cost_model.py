"""The cost of a call given the cache, and the expected cost of later calls.

Every prompt ends in a cache breakpoint, so tokens that are not read are written. The minimum length
of a cached prefix is ignored, because sessions worth editing are longer. The tests compare
`CostModel` with the simulator's billing.
"""

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

from longhold.core.models.prices import TOKENS_PER_PRICE, Prices
from longhold.core.request.lifetime import Lifetime
from longhold.core.tools.protocol import ToolKind

KNOWN_TARIFFS = 64  # one tariff per model and day
USUAL_CALLS = 100.0
"""Expected number of further calls at any time. In 48 recorded sessions it was 82 to 135."""
SESSION_WEIGHT = 10.0
"""Weight of the usual number of calls against the current session, in sessions."""
USUAL_COLD_SHARE: dict[Lifetime, float] = {"5m": 0.033, "1h": 0.005}
"""Share of 3,880 recorded calls that came after the cache had expired."""
COLD_WEIGHT_CALLS = 30.0
"""Weight of the usual share, in calls. In recorded sessions, the share is 0 to 0.19."""
USUAL_GROWTH_TOKENS = 1_200.0
"""Mean tokens that a call adds to the next prompt in the recorded sessions."""
GROWTH_WEIGHT_CALLS = 5.0
"""Weight of the usual growth, in calls. It is low, because a session soon shows its growth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The expected rest of a session: calls, pauses and growth.

    The number of further calls is geometrically distributed, and a pause is equally likely before
    any call. In the recorded sessions, the number of further calls is about the same after 10 calls
    as after 100, and a pause does not predict the next pause.
    """

    calls: float = USUAL_CALLS
    cold_share: float = USUAL_COLD_SHARE["5m"]
    """Share of calls that find the cache expired."""
    growth_tokens: float = USUAL_GROWTH_TOKENS
    removable_tokens: float = 0.0
    """The part of the growth that a later edit of the same kind could remove."""

    @property
    def stays_warm(self) -> float:
        """The probability that another call comes before the cache expires."""
        return self.calls / (1 + self.calls) * (1 - self.cold_share)

    @property
    def warm_calls(self) -> float:
        """Mean number of further calls before the session ends or the cache expires."""
        return self.stays_warm / (1 - self.stays_warm)


def expect(
    *,
    calls: int,
    cold_calls: int = 0,
    grown_tokens: int = 0,
    removable_tokens: int = 0,
    lifetime: Lifetime = "5m",
) -> Forecast:
    """Forecast a session from its calls. Both token counts are totals over all calls."""
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
    """The part of a prompt that could be read from the cache now."""

    tokens: int = 0
    """Length of the cached prefix of the current prompt. 0 means a cold cache."""
    marked: tuple[int, ...] = ()
    """Ends of shorter cached prefixes, each at a cache breakpoint of the request."""

    def count_readable(self, tokens: int) -> int:
        """Return the number of tokens that are readable if everything after this changes."""
        if tokens >= self.tokens:
            return self.tokens
        return max((end for end in self.marked if end <= tokens), default=0)


class CostStep(NamedTuple):
    """Prices for prompts longer than `above_tokens`, up to the next step."""

    above_tokens: int
    prices: Prices

    def write(self, lifetime: Lifetime) -> float:
        return self.prices.write_1h if lifetime == "1h" else self.prices.write_5m


@lru_cache(maxsize=KNOWN_TARIFFS)
def steps(listed: Prices) -> tuple[CostStep, ...]:
    lines = sorted(tier.above_prompt_tokens for tier in listed.tiers)
    return (
        CostStep(-1, listed.select_tier(0)),
        *(CostStep(line, listed.select_tier(line + 1)) for line in lines),
    )


def step_at(listed: Prices, prompt_tokens: float) -> CostStep:
    found = steps(listed)
    return next((step for step in reversed(found) if prompt_tokens > step.above_tokens), found[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class CostModel:
    listed: Prices
    forecast: Forecast = field(default_factory=Forecast)
    lifetime: Lifetime = "5m"

    def call_usd(self, prompt_tokens: float, read_tokens: float) -> float:
        """Price a partly cached prompt without the output, which edits do not change."""
        step = step_at(self.listed, prompt_tokens)
        written = (prompt_tokens - read_tokens) * step.write(self.lifetime)
        return (read_tokens * step.prices.read + written) / TOKENS_PER_PRICE

    def next_usd(self, prompt_tokens: float) -> float:
        return self.call_usd(prompt_tokens + self.forecast.growth_tokens, prompt_tokens)

    def ahead_usd(self, prompt_tokens: float) -> float:
        """Return the expected cost of all warm calls after a call with this prompt.

        Cold calls do not count, because a postponed edit is free once the cache has expired. Call j
        happens with probability stays_warm**j and costs fixed + slope * j at the prices of its
        step. The cost within a step is the tail of that sum minus the tail from the next step on.
        """
        growth, stays = self.forecast.growth_tokens, self.forecast.stays_warm
        found, total = steps(self.listed), 0.0
        for number, step in enumerate(found):
            flat = step.prices
            fixed = (prompt_tokens - growth) * flat.read + growth * step.write(self.lifetime)
            slope = growth * flat.read
            total += _tail(
                fixed, slope, stays, self._find_first_past(step.above_tokens, prompt_tokens)
            )
            if number + 1 < len(found):
                line = found[number + 1].above_tokens
                total -= _tail(fixed, slope, stays, self._find_first_past(line, prompt_tokens))
        return total / TOKENS_PER_PRICE

    def _find_first_past(self, line_tokens: int, prompt_tokens: float) -> float:
        """Return the number of the first future call whose prompt exceeds `line_tokens`.

        The number is fractional. Growth is a mean, so rounding would distort the value of waiting.
        """
        growth, room = self.forecast.growth_tokens, line_tokens - prompt_tokens
        if room < 0:
            return 1.0
        return max(1.0, room / growth + 0.5) if growth > 0 else math.inf


def _tail(fixed: float, slope: float, ratio: float, first: float) -> float:
    if math.isinf(first):
        return 0.0
    rest = 1 - ratio
    scale: float = ratio**first
    return scale * ((fixed + slope * first) / rest + slope * ratio / rest**2)


GET_AGAIN_TOKENS = 150
"""Output tokens of an answer that calls a tool with a path or a command."""


NEEDED_RATES: dict[ToolKind, float] = {"read": 0.25, "fetch": 0.25, "shell": 0.05, "search": 0.01}
"""The share of results that are needed again ten or more calls later, by kind of tool.

Measured: 171 of 760 files were read again or edited, 68 of 1,270 commands gave the same output
again, and 3 of 474 searches were repeated. Commands with a changed output do not count, because
their old output is useless. Web pages use the rate of files, because only 43 were recorded.
"""
NEEDED_REREAD = 0.08
"""The rate for a file after part of it was read again. It was 89 of 1,110, at any age."""
HALVING_CALLS = 50
"""Number of calls after which a rate halves. It was 0.225 after 10 calls, 0.130 after 40."""


def needed_rate(kind: ToolKind, age_calls: int) -> float:
    return float(NEEDED_RATES.get(kind, 0.0) * 0.5 ** (age_calls / HALVING_CALLS))


def need_usd(costs: CostModel, prompt_tokens: float, tokens: float) -> float:
    """Return the cost of fetching a result again, which needs one more call."""
    asking = GET_AGAIN_TOKENS * step_at(costs.listed, prompt_tokens).prices.output
    return costs.call_usd(prompt_tokens + tokens, prompt_tokens) + asking / TOKENS_PER_PRICE


WAITS = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144)
"""Possible delays in calls. The steps grow because the gain is flat near its maximum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEdit:
    """An edit of a prompt that is about to be sent."""

    prompt_tokens: float
    """The length of the prompt without the edit."""
    cache: CacheState
    at_tokens: int
    until_tokens: int
    """End of the last change in the current prompt. The next edit begins after it."""
    removed_tokens: int
    added_tokens: int = 0

    @property
    def net_tokens(self) -> int:
        return self.removed_tokens - self.added_tokens

    @property
    def shorter_tokens(self) -> float:
        return self.prompt_tokens - self.net_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Payback:
    cost_now_usd: float
    """Extra cost of the next call. It is negative if the edit makes that call cheaper."""
    saved_per_call_usd: float
    """Saving on each call after the next, with a warm cache."""
    expected_gain_usd: float
    """Mean saving until the session ends or the cache expires, minus the cost."""
    waiting_gain_usd: float
    """How much more the best later moment gains, or 0 if acting now is best."""

    @property
    def worth_it(self) -> bool:
        return self.expected_gain_usd > 0 and self.waiting_gain_usd == 0.0


def payback(costs: CostModel, edit: HistoryEdit) -> Payback:
    cost_now, gain = edit_cost_usd(costs, edit), _gain_usd(costs, edit)
    is_waiting = gain > 0 and cost_now > 0
    return Payback(
        cost_now_usd=cost_now,
        saved_per_call_usd=costs.next_usd(edit.prompt_tokens) - costs.next_usd(edit.shorter_tokens),
        expected_gain_usd=gain,
        waiting_gain_usd=max(0.0, _waiting_usd(costs, edit)) if is_waiting else 0.0,
    )


def edit_cost_usd(costs: CostModel, edit: HistoryEdit) -> float:
    prompt, shorter, cache = edit.prompt_tokens, edit.shorter_tokens, edit.cache
    kept = min(cache.count_readable(edit.at_tokens), shorter)
    return costs.call_usd(shorter, kept) - costs.call_usd(prompt, min(cache.tokens, prompt))


def _gain_usd(costs: CostModel, edit: HistoryEdit) -> float:
    saved = costs.ahead_usd(edit.prompt_tokens) - costs.ahead_usd(edit.shorter_tokens)
    return saved - edit_cost_usd(costs, edit)


def _waiting_usd(costs: CostModel, edit: HistoryEdit) -> float:
    """Return how much more the edit gains at its best later moment than now.

    Waiting also postpones the next edit. The value of the next edit is the gain of repeating this
    edit on later growth. A length at which prices rise is a deadline, because calls beyond it add
    to the price of waiting.
    """
    level = replace(costs, listed=step_at(costs.listed, edit.shorter_tokens).prices)
    again, stays = _repeated_usd(level, edit), costs.forecast.stays_warm
    later = max(
        _later_usd(level, edit, wait)
        - _beyond_usd(costs, level, edit.prompt_tokens, wait)
        - (1 - stays**wait) * again
        for wait in WAITS
    )
    return later - _gain_usd(level, edit)


def _beyond_usd(costs: CostModel, level: CostModel, prompt_tokens: float, wait: int) -> float:
    growth, stays = costs.forecast.growth_tokens, costs.forecast.stays_warm
    if step_at(costs.listed, prompt_tokens + wait * growth).prices == level.listed:
        return 0.0
    lengths = [prompt_tokens + call * growth for call in range(wait)]
    return sum(
        stays**call * (costs.call_usd(sent, sent - growth) - level.call_usd(sent, sent - growth))
        for call, sent in enumerate(lengths)
    )


def _repeated_usd(costs: CostModel, edit: HistoryEdit) -> float:
    """Return the value of repeating the edit at the best interval."""
    settled = edit.until_tokens - edit.net_tokens
    kept = edit.cache.count_readable(edit.at_tokens)
    begins = max(kept, settled - (edit.at_tokens - kept))
    fresh = HistoryEdit(
        prompt_tokens=edit.shorter_tokens,
        cache=CacheState(tokens=round(edit.shorter_tokens), marked=(begins,)),
        at_tokens=begins,
        until_tokens=settled,
        removed_tokens=0,
    )
    stays = costs.forecast.stays_warm
    return max(0.0, *(_later_usd(costs, fresh, wait) / (1 - stays**wait) for wait in WAITS))


def _later_usd(costs: CostModel, edit: HistoryEdit, wait: int) -> float:
    """Return the expected gain of making the edit after `wait` calls, compared with no edit."""
    forecast = costs.forecast
    grown = edit.prompt_tokens + wait * forecast.growth_tokens
    later = replace(
        edit,
        prompt_tokens=grown,
        cache=replace(edit.cache, tokens=round(grown - forecast.growth_tokens)),
        removed_tokens=round(edit.removed_tokens + wait * forecast.removable_tokens),
    )
    return float(forecast.stays_warm**wait * _gain_usd(costs, later))
