"""Two questions of money that payback's arithmetic answers: where to make room, and how to resume.

`cheapest_line` says at which size of the context compacting is cheapest on a model; on a large
window that is far below the window's own line. `cold_resume_advice` prices what to do with a
session that lay idle. Both answer in tokens and dollars only: what a summary loses in content
is for the caller to weigh.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from holdfast.models.prices import TOKENS_PER_PRICE, Prices, prices
from holdfast.request.cache.cache_state import CacheState, Lifetime
from holdfast.request.cache.cost_model import CostModel
from holdfast.request.cache.forecast import Forecast
from holdfast.settings import WindowSettings
from holdfast.view.window import COST, Window, window_for

SUMMARY_TOKENS = 5_000
"""A usual summary; the window keeps room for 20,000."""
FRAME_TOKENS = 15_000
"""System prompt and tools of a coding agent, where nothing tells; they stay through any edit."""
RESTORED_TOKENS = 20_000
"""Files, plan and skills that come back after a compaction: less than half of what may."""
LEFT_TOKENS = FRAME_TOKENS + SUMMARY_TOKENS + RESTORED_TOKENS
"""What stands after a compaction of a usual session."""
REREAD_TOKENS = 10_000
"""What an agent looks up again after a compaction; a guess until it is measured."""

Choice = Literal["send_all", "clear_first", "compact_first"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One way to go on."""

    prompt_tokens: int
    now_usd: float
    """What the next call costs, with everything that has to happen before it."""
    per_call_usd: float
    """What the call after that costs, the cache being warm."""
    expected_usd: float
    """The next call and those to come, until the session ends or the cache dies again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeAdvice:
    """What going on costs, by what is done first."""

    is_cold: bool
    send_all: Option
    clear_first: Option
    compact_first: Option

    @property
    def cheapest(self) -> Choice:
        """Name the option that is expected to cost least; the one that loses least wins a tie."""
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
    outlook: Forecast | None = None,
) -> ResumeAdvice | None:
    """Price sending all, clearing first and compacting first; None if the model has no price.

    `lives_seconds` is for caches that live by a rule of their own, not by a marker's.
    """
    listed = prices(model)
    if listed is None:
        return None
    frame = min(frame_tokens, tokens)
    whole = CacheState(tokens=tokens, marked=(frame,), lifetime=lifetime)
    warmth = whole.after(idle_seconds, lives_seconds)
    course = CostModel(listed=listed, outlook=outlook or Forecast(), lifetime=lifetime)
    kept, left = warmth.readable_before(frame), frame + summary_tokens + RESTORED_TOKENS
    making = _summary_usd(listed, tokens, warmth.tokens, summary_tokens)
    return ResumeAdvice(
        is_cold=warmth.is_cold,
        send_all=_option(course, tokens, warmth.tokens),
        clear_first=_option(course, tokens - clearable_tokens, kept),
        compact_first=_option(course, min(left, tokens), kept, making),
    )


def _option(
    course: CostModel, prompt_tokens: int, read_tokens: int, first_usd: float = 0.0
) -> Option:
    now = first_usd + course.call_usd(prompt_tokens, min(read_tokens, prompt_tokens))
    return Option(
        prompt_tokens=prompt_tokens,
        now_usd=now,
        per_call_usd=course.next_usd(prompt_tokens),
        expected_usd=now + course.ahead_usd(prompt_tokens),
    )


def _summary_usd(listed: Prices, tokens: float, warm_tokens: float, summary_tokens: int) -> float:
    """Price having a summary written; its prompt is never read again, so nothing is cached."""
    flat = listed.at_length(round(tokens))
    prompt = warm_tokens * flat.read + (tokens - warm_tokens) * flat.input
    return (prompt + summary_tokens * flat.output) / TOKENS_PER_PRICE


def cheapest_line(
    model: str,
    window: Window,
    *,
    outlook: Forecast | None = None,
    lifetime: Lifetime = "5m",
    left_tokens: int = LEFT_TOKENS,
    frame_tokens: int = FRAME_TOKENS,
    summary_tokens: int = SUMMARY_TOKENS,
    reread_tokens: int = REREAD_TOKENS,
) -> int:
    """Find the context size at which compacting costs least per call; at most the auto line.

    A context grows from what a compaction leaves up to the line, over and over. Too low a line
    pays for summaries, too high a one for carrying; a price that jumps is a line by itself.
    """
    listed = prices(model)
    outlook = outlook or Forecast()
    if listed is None or outlook.growth_tokens <= 0:
        return window.auto_tokens
    course = CostModel(listed=listed, outlook=outlook, lifetime=lifetime)
    rewritten = course.call_usd(left_tokens, min(frame_tokens, left_tokens))
    rewritten += course.call_usd(left_tokens + reread_tokens, left_tokens)
    best_usd, best, paid, calls = float("inf"), window.auto_tokens, 0.0, 0
    prompt = float(left_tokens + reread_tokens)
    while prompt + outlook.growth_tokens <= window.auto_tokens:
        paid += _mean_usd(course, prompt)
        prompt += outlook.growth_tokens
        calls += 1
        made = _summary_usd(listed, prompt, prompt, summary_tokens)
        per_call = (paid + made + rewritten) / calls
        if per_call < best_usd:
            best_usd, best = per_call, int(prompt)
    return best


@lru_cache(maxsize=16)
def window_at_cost(model: str, settings: WindowSettings, lifetime: Lifetime = "5m") -> Window:
    """Work out a model's window, with the auto line where it costs least if that is wished for."""
    window = window_for(model, settings)
    if settings.auto_line != COST:
        return window
    line = cheapest_line(model, window, lifetime=lifetime)
    return window_for(model, replace(settings, auto_line=str(line)))


def _mean_usd(course: CostModel, prompt_tokens: float) -> float:
    """Price the call after one with this prompt, warm or cold by its chance."""
    outlook = course.outlook
    cold = course.call_usd(prompt_tokens + outlook.growth_tokens, 0.0)
    return (1 - outlook.cold_share) * course.next_usd(prompt_tokens) + outlook.cold_share * cold
