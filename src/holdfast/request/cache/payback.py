"""Whether changing the history now is cheaper than carrying on with it.

An edit costs once: everything behind it is written anew instead of read. It saves on every call
after: what it removed is no longer read. A cold cache makes it free, so its savings count only
until the session ends or the cache dies, whichever comes first. And an edit can wait for more
to remove: `worth_it` is true when acting now beats acting some calls later. Pure; what may be
expected of the session is the `Forecast`'s part, what an edit loses of the content the caller's.
"""

import math
from dataclasses import dataclass, replace

from holdfast.models.prices import Prices, prices
from holdfast.request.cache.cache_state import CacheState, step_at
from holdfast.request.cache.cost_model import CostModel
from holdfast.request.cache.forecast import Forecast

WAITS = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144)
"""Numbers of calls an edit might wait; in growing steps, as the gain is flat near its best."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEdit:
    """A change of the history, by where it lies and what it does to the prompt's length."""

    at_tokens: int
    """What stands before the first byte that changes."""
    until_tokens: int
    """Where the last change ends, in the prompt as it stands: the next edit will begin there."""
    removed_tokens: int
    added_tokens: int = 0
    """What stands in for what was removed."""
    making_usd: float = 0.0
    """What it costs to come by the edit: a summary has to be written, a clearing does not."""

    @property
    def net_tokens(self) -> int:
        """By how much the prompt becomes shorter."""
        return self.removed_tokens - self.added_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Payback:
    """What an edit costs and gains."""

    cost_now_usd: float
    """What the next call costs more with the edit; negative if even that one is cheaper."""
    saved_per_call_usd: float
    """What the call after the next costs less, the cache being warm."""
    break_even_calls: float
    """Warm calls after which the cost is saved; 0 if it is none, infinite if it never is."""
    expected_gain_usd: float
    """Mean saving until the session ends or the cache dies, less the cost."""
    waiting_gain_usd: float
    """The same for the best later moment, as far as waiting gains more than acting now."""
    worth_it: bool


def payback(
    edit: HistoryEdit,
    *,
    prompt_tokens: int,
    warmth: CacheState,
    model: str | Prices,
    outlook: Forecast | None = None,
) -> Payback | None:
    """Weigh an edit of a prompt that is about to be sent; None if the model has no price."""
    listed = prices(model) if isinstance(model, str) else model
    if listed is None:
        return None
    course = CostModel(listed=listed, outlook=outlook or Forecast(), lifetime=warmth.lifetime)
    left = prompt_tokens - edit.net_tokens
    cost_now = _cost_usd(course, edit, prompt_tokens, warmth)
    saved = course.next_usd(prompt_tokens) - course.next_usd(left)
    gain = course.ahead_usd(prompt_tokens) - course.ahead_usd(left) - cost_now
    waiting = 0.0
    if gain > 0 and cost_now > 0:
        waiting = max(0.0, _waiting_usd(course, edit, prompt_tokens, warmth))
    return Payback(
        cost_now_usd=cost_now,
        saved_per_call_usd=saved,
        break_even_calls=_break_even(cost_now, saved),
        expected_gain_usd=gain,
        waiting_gain_usd=waiting,
        worth_it=gain > 0 and waiting == 0.0,
    )


def _break_even(cost_usd: float, saved_usd: float) -> float:
    if cost_usd <= 0:
        return 0.0
    return cost_usd / saved_usd if saved_usd > 0 else math.inf


def _cost_usd(
    course: CostModel, edit: HistoryEdit, prompt_tokens: float, warmth: CacheState
) -> float:
    """Price the next call with the edit, less what it costs without."""
    left = prompt_tokens - edit.net_tokens
    kept = min(warmth.readable_before(edit.at_tokens), left)
    edited = course.call_usd(left, kept)
    plain = course.call_usd(prompt_tokens, min(warmth.tokens, prompt_tokens))
    return edited - plain + edit.making_usd


def _waiting_usd(
    course: CostModel, edit: HistoryEdit, prompt_tokens: int, warmth: CacheState
) -> float:
    """Say how much more an edit gains at its best later moment than now.

    Whoever acts now can act again later; so can whoever waits, but later. What that is worth
    is the gain of the same edit repeated on what the session will add. The rhythm follows from
    the prices the edited prompt has; a line at which they rise is a deadline: what the calls
    beyond it cost more is the price of waiting.
    """
    left = prompt_tokens - edit.net_tokens
    level = replace(course, listed=step_at(course.listed, left).prices)
    again = _repeated_usd(level, edit, prompt_tokens, warmth)
    now = level.ahead_usd(prompt_tokens) - level.ahead_usd(left)
    now -= _cost_usd(level, edit, prompt_tokens, warmth)
    stays = course.outlook.stays_warm
    later = max(
        _later_usd(level, edit, prompt_tokens, warmth, wait)
        - _beyond_usd(course, level, prompt_tokens, wait)
        - (1 - stays**wait) * again
        for wait in WAITS
    )
    return later - now


def _beyond_usd(course: CostModel, level: CostModel, prompt_tokens: int, wait: int) -> float:
    """Price what the calls made while waiting cost more because they are past a line."""
    growth, stays = course.outlook.growth_tokens, course.outlook.stays_warm
    if step_at(course.listed, prompt_tokens + wait * growth).prices == level.listed:
        return 0.0
    lengths = [prompt_tokens + call * growth for call in range(wait)]
    return sum(
        stays**call * (course.call_usd(sent, sent - growth) - level.call_usd(sent, sent - growth))
        for call, sent in enumerate(lengths)
    )


def _repeated_usd(
    course: CostModel, edit: HistoryEdit, prompt_tokens: int, warmth: CacheState
) -> float:
    """Value a fresh start after the edit: the best rhythm of edits, over and over.

    The next edit begins where this one ends, and as far behind a marker as this one does.
    """
    left = prompt_tokens - edit.net_tokens
    settled = edit.until_tokens - edit.net_tokens
    kept = warmth.readable_before(edit.at_tokens)
    begins = max(kept, settled - (edit.at_tokens - kept))
    fresh = replace(edit, at_tokens=begins, until_tokens=settled, removed_tokens=0, added_tokens=0)
    later = replace(warmth, tokens=left, marked=(begins,))
    stays = course.outlook.stays_warm
    rhythms = (_later_usd(course, fresh, left, later, wait) / (1 - stays**wait) for wait in WAITS)
    return max(0.0, *rhythms)


def _later_usd(
    course: CostModel, edit: HistoryEdit, prompt_tokens: int, warmth: CacheState, wait: int
) -> float:
    """Give the expected gain of an edit made some calls from now, over never making it."""
    outlook = course.outlook
    grown = prompt_tokens + wait * outlook.growth_tokens
    more = round(edit.removed_tokens + wait * outlook.removable_tokens)
    larger = replace(edit, removed_tokens=more)
    warm = replace(warmth, tokens=round(grown - outlook.growth_tokens))
    saved = course.ahead_usd(grown) - course.ahead_usd(grown - larger.net_tokens)
    return float(outlook.stays_warm**wait * (saved - _cost_usd(course, larger, grown, warm)))
