"""When compacting is cheapest, and the cheapest way to resume after a pause.

`cheapest_line` finds the cheapest compaction threshold. On a large window it is far below the
default one. `cold_resume_advice` compares ways to resume by price only. The caller judges what a
summary loses.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from longhold.core.log.entries import Framed
from longhold.core.messages.measure import Measure
from longhold.core.models.prices import TOKENS_PER_PRICE, Prices, prices
from longhold.core.policy.cost_model import CacheState, CostModel, Forecast, expect, need_usd
from longhold.core.request.lifetime import Lifetime
from longhold.core.settings import CostSettings, Settings, WindowSettings
from longhold.core.view.tokens import default_weights, weigh
from longhold.core.view.window import COST, Window, window_for

SUMMARY_TOKENS = 5_000
"""A typical summary. The window reserves 20,000 tokens for one."""
FRAME_TOKENS = 15_000
"""Default size of a coding agent's system prompt and tools. No edit removes them."""
FRAME_STEP_TOKENS = 5_000
"""A measured frame is rounded up to this, so that one more tool does not move the threshold."""
RESTORED_TOKENS = 30_000
"""Files, plan and skills. The total, 50,000, is the median of 26 recorded compactions."""
COMPACTED_TOKENS = FRAME_TOKENS + SUMMARY_TOKENS + RESTORED_TOKENS
NEEDS = CostSettings()
COMPACTION_NEEDS = 0.6
"""Mean number of results that are needed again after a compaction and were not restored."""
COMPACTION_NEED_TOKENS = 3_500
WORK_TOKENS = 30_000
"""Space for the current work after a compaction: 95 % of 417 turns needed less."""
Choice = Literal["send_all", "clear_first", "compact_first"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    prompt_tokens: int
    now_usd: float
    """Cost of the next call, including a clearing or compaction before it."""
    per_call_usd: float
    """Cost of the call after that, with a warm cache."""
    expected_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeAdvice:
    is_cold: bool
    send_all: Option
    clear_first: Option
    compact_first: Option

    @property
    def cheapest(self) -> Choice:
        """The lowest expected cost. A tie goes to the option that loses least content."""
        choices: tuple[Choice, ...] = ("send_all", "clear_first", "compact_first")
        return min(choices, key=lambda name: getattr(self, name).expected_usd)


def cold_resume_advice(
    tokens: int,
    clearable_tokens: int,
    summary_tokens: int,
    model: str,
    idle_seconds: float,
    lifetime: Lifetime = "5m",
    *,
    frame_tokens: int = FRAME_TOKENS,
    lives_seconds: float | None = None,
    forecast: Forecast | None = None,
) -> ResumeAdvice | None:
    """Price the three options; None if the model has no price.

    `lives_seconds` overrides the lifetime for providers with their own.
    """
    listed = prices(model)
    if listed is None:
        return None
    frame = min(frame_tokens, tokens)
    whole = CacheState(tokens=tokens, marked=(frame,), lifetime=lifetime)
    cache = whole.after(idle_seconds, lives_seconds)
    costs = CostModel(listed=listed, forecast=forecast or Forecast(), lifetime=lifetime)
    kept, compacted = cache.count_readable(frame), frame + summary_tokens + RESTORED_TOKENS
    making = _summary_usd(listed, tokens, cache.tokens, summary_tokens)
    return ResumeAdvice(
        is_cold=cache.is_cold,
        send_all=_option(costs, tokens, cache.tokens),
        clear_first=_option(costs, tokens - clearable_tokens, kept),
        compact_first=_option(costs, min(compacted, tokens), kept, making),
    )


def _option(
    costs: CostModel, prompt_tokens: int, read_tokens: int, first_usd: float = 0.0
) -> Option:
    now = first_usd + costs.call_usd(prompt_tokens, min(read_tokens, prompt_tokens))
    return Option(
        prompt_tokens=prompt_tokens,
        now_usd=now,
        per_call_usd=costs.next_usd(prompt_tokens),
        expected_usd=now + costs.ahead_usd(prompt_tokens),
    )


def _summary_usd(listed: Prices, tokens: float, warm_tokens: float, summary_tokens: int) -> float:
    flat = listed.select_tier(round(tokens))
    prompt = warm_tokens * flat.read + (tokens - warm_tokens) * flat.input
    return (prompt + summary_tokens * flat.output) / TOKENS_PER_PRICE


def cheapest_line(
    model: str,
    window: Window,
    *,
    forecast: Forecast | None = None,
    lifetime: Lifetime = "5m",
    compacted_tokens: int = COMPACTED_TOKENS,
    frame_tokens: int = FRAME_TOKENS,
    summary_tokens: int = SUMMARY_TOKENS,
    cost: CostSettings = NEEDS,
) -> int:
    """Find the compaction threshold with the lowest cost per call, at most `window.auto_tokens`.

    A low threshold pays for more summaries and for what they lose. A high one pays for carrying the
    context. A length at which prices rise is a natural threshold.
    """
    listed = prices(model)
    forecast = forecast or Forecast()
    if listed is None or forecast.growth_tokens <= 0:
        return window.auto_tokens
    costs = CostModel(listed=listed, forecast=forecast, lifetime=lifetime)
    rewritten = costs.call_usd(compacted_tokens, min(frame_tokens, compacted_tokens))
    reread = COMPACTION_NEED_TOKENS
    rewritten += COMPACTION_NEEDS * need_usd(
        costs, compacted_tokens, reread / max(1.0, COMPACTION_NEEDS), cost
    )
    best_usd, best, paid, calls = float("inf"), window.auto_tokens, 0.0, 0
    prompt = float(compacted_tokens + reread)
    while prompt + forecast.growth_tokens <= window.auto_tokens:
        paid += _mean_usd(costs, prompt)
        prompt += forecast.growth_tokens
        calls += 1
        made = _summary_usd(listed, prompt, prompt, summary_tokens)
        per_call = (paid + made + rewritten) / calls
        if per_call < best_usd:
            best_usd, best = per_call, int(prompt)
    return best


def window_at_cost(model: str, settings: Settings, frame: Framed | None = None) -> Window:
    """Return a model's window, with the cheapest compaction threshold if `auto_line` is `cost`.

    It depends on the frame's cache lifetime and size, which compactions do not change.
    """
    frame = frame or Framed()
    frame_tokens = _frame_tokens(model, frame.measure)
    return _find_window(model, settings.window, settings.cost, frame.lifetime, frame_tokens)


@lru_cache(maxsize=16)
def _frame_tokens(model: str, measure: Measure) -> int:
    steps = math.ceil(weigh(measure, default_weights(model)) / FRAME_STEP_TOKENS)
    return steps * FRAME_STEP_TOKENS or FRAME_TOKENS


@lru_cache(maxsize=16)
def _find_window(
    model: str, settings: WindowSettings, cost: CostSettings, lifetime: Lifetime, frame_tokens: int
) -> Window:
    """Find the window. The threshold always leaves `WORK_TOKENS` for the current work."""
    window = window_for(model, settings)
    if settings.auto_line != COST:
        return window
    compacted = COMPACTED_TOKENS - FRAME_TOKENS + frame_tokens
    line = cheapest_line(
        model,
        window,
        forecast=expect(calls=0, lifetime=lifetime),
        lifetime=lifetime,
        compacted_tokens=compacted,
        frame_tokens=frame_tokens,
        cost=cost,
    )
    line = max(line, compacted + WORK_TOKENS)
    return window_for(model, replace(settings, auto_line=str(line)))


def _mean_usd(costs: CostModel, prompt_tokens: float) -> float:
    forecast = costs.forecast
    cold = costs.call_usd(prompt_tokens + forecast.growth_tokens, 0.0)
    return (1 - forecast.cold_share) * costs.next_usd(prompt_tokens) + forecast.cold_share * cold
