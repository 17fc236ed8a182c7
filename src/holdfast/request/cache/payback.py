"""Whether changing the history now is cheaper than keeping it.

An edit costs once: everything behind it is written again instead of read. It saves on every
later call: what it removed is no longer read. A cold cache makes edits free, so savings count
only until the session ends or the cache dies. An edit can also wait until there is more to
remove: `worth_it` is true only if acting now beats acting some calls later. Pure; the content
an edit loses is for the caller to weigh.
"""

from dataclasses import dataclass, replace

from holdfast.models.prices import Prices, prices
from holdfast.request.cache.cost_model import CacheState, CostModel, Forecast, step_at

WAITS = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144)
"""Calls an edit might wait; in growing steps, as the gain is flat near its best."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEdit:
    """A change of the history: where it lies and how it changes the prompt's length."""

    at_tokens: int
    """Length of the prompt before the first byte that changes."""
    until_tokens: int
    """Where the last change ends in the current prompt: the next edit will begin there."""
    removed_tokens: int
    added_tokens: int = 0
    """What replaces the removed part."""

    @property
    def net_tokens(self) -> int:
        return self.removed_tokens - self.added_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Payback:
    cost_now_usd: float
    """Extra cost of the next call; negative if even that one is cheaper with the edit."""
    saved_per_call_usd: float
    """Saving on the call after the next, the cache being warm."""
    expected_gain_usd: float
    """Mean saving until the session ends or the cache dies, minus the cost."""
    waiting_gain_usd: float
    """How much more the best later moment gains; 0 if acting now is best."""
    worth_it: bool


def payback(
    edit: HistoryEdit,
    *,
    prompt_tokens: int,
    cache: CacheState,
    model: str | Prices,
    forecast: Forecast | None = None,
) -> Payback | None:
    """Evaluate an edit of a prompt that is about to be sent; None if the model has no price."""
    listed = prices(model) if isinstance(model, str) else model
    if listed is None:
        return None
    costs = CostModel(listed=listed, forecast=forecast or Forecast(), lifetime=cache.lifetime)
    shorter = prompt_tokens - edit.net_tokens
    cost_now = edit_cost_usd(costs, edit, prompt_tokens, cache)
    saved = costs.next_usd(prompt_tokens) - costs.next_usd(shorter)
    gain = costs.ahead_usd(prompt_tokens) - costs.ahead_usd(shorter) - cost_now
    waiting = 0.0
    if gain > 0 and cost_now > 0:
        waiting = max(0.0, _waiting_usd(costs, edit, prompt_tokens, cache))
    return Payback(
        cost_now_usd=cost_now,
        saved_per_call_usd=saved,
        expected_gain_usd=gain,
        waiting_gain_usd=waiting,
        worth_it=gain > 0 and waiting == 0.0,
    )


def edit_cost_usd(
    costs: CostModel, edit: HistoryEdit, prompt_tokens: float, cache: CacheState
) -> float:
    """Price the next call with the edit, minus its price without."""
    shorter = prompt_tokens - edit.net_tokens
    kept = min(cache.readable_before(edit.at_tokens), shorter)
    plain = costs.call_usd(prompt_tokens, min(cache.tokens, prompt_tokens))
    return costs.call_usd(shorter, kept) - plain


def _waiting_usd(
    costs: CostModel, edit: HistoryEdit, prompt_tokens: int, cache: CacheState
) -> float:
    """Return how much more the edit gains at its best later moment than now.

    Acting now leaves room to act again later; waiting postpones that too. Its value is the gain
    of the same edit, repeated on what the session will add. The interval follows from the prices
    of the edited prompt. A length at which prices rise is a deadline: the extra cost of calls
    beyond it is the price of waiting.
    """
    shorter = prompt_tokens - edit.net_tokens
    level = replace(costs, listed=step_at(costs.listed, shorter).prices)
    again = _repeated_usd(level, edit, prompt_tokens, cache)
    now = level.ahead_usd(prompt_tokens) - level.ahead_usd(shorter)
    now -= edit_cost_usd(level, edit, prompt_tokens, cache)
    stays = costs.forecast.stays_warm
    later = max(
        _later_usd(level, edit, prompt_tokens, cache, wait)
        - _beyond_usd(costs, level, prompt_tokens, wait)
        - (1 - stays**wait) * again
        for wait in WAITS
    )
    return later - now


def _beyond_usd(costs: CostModel, level: CostModel, prompt_tokens: int, wait: int) -> float:
    """Price the extra cost of calls made while waiting that are past a price step."""
    growth, stays = costs.forecast.growth_tokens, costs.forecast.stays_warm
    if step_at(costs.listed, prompt_tokens + wait * growth).prices == level.listed:
        return 0.0
    lengths = [prompt_tokens + call * growth for call in range(wait)]
    return sum(
        stays**call * (costs.call_usd(sent, sent - growth) - level.call_usd(sent, sent - growth))
        for call, sent in enumerate(lengths)
    )


def _repeated_usd(
    costs: CostModel, edit: HistoryEdit, prompt_tokens: int, cache: CacheState
) -> float:
    """Value the state after the edit: edits repeated at the best interval.

    The next edit begins where this one ends, and as far behind a marker as this one does.
    """
    shorter = prompt_tokens - edit.net_tokens
    settled = edit.until_tokens - edit.net_tokens
    kept = cache.readable_before(edit.at_tokens)
    begins = max(kept, settled - (edit.at_tokens - kept))
    fresh = replace(edit, at_tokens=begins, until_tokens=settled, removed_tokens=0, added_tokens=0)
    later = replace(cache, tokens=shorter, marked=(begins,))
    stays = costs.forecast.stays_warm
    gains = (_later_usd(costs, fresh, shorter, later, wait) / (1 - stays**wait) for wait in WAITS)
    return max(0.0, *gains)


def _later_usd(
    costs: CostModel, edit: HistoryEdit, prompt_tokens: int, cache: CacheState, wait: int
) -> float:
    """Return the expected gain of making the edit some calls from now rather than never."""
    forecast = costs.forecast
    grown = prompt_tokens + wait * forecast.growth_tokens
    more = round(edit.removed_tokens + wait * forecast.removable_tokens)
    larger = replace(edit, removed_tokens=more)
    warm = replace(cache, tokens=round(grown - forecast.growth_tokens))
    saved = costs.ahead_usd(grown) - costs.ahead_usd(grown - larger.net_tokens)
    return float(forecast.stays_warm**wait * (saved - edit_cost_usd(costs, larger, grown, warm)))
