"""Whether changing the history now is cheaper than carrying on with it.

An edit costs once: everything behind it is written anew instead of read. It saves on every call
after: what it removed is no longer read. A cold cache makes it free, so its savings count only
until the session ends or the cache dies, whichever comes first. And an edit can wait for more
to remove: `worth_it` is true when acting now beats acting some calls later. Pure; what may be
expected of the session is the `Outlook`'s part, what an edit loses of the content the caller's.
"""

import math
from dataclasses import dataclass

from holdfast.cache.outlook import Outlook
from holdfast.cache.warmth import Lifetime, Warmth, call_usd, steps
from holdfast.prices import TOKENS_PER_PRICE, Prices, prices

WAITS = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144)
"""Numbers of calls an edit might wait; in growing steps, as the gain is flat near its best."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
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
    edit: Edit,
    *,
    prompt_tokens: int,
    warmth: Warmth,
    model: str | Prices,
    outlook: Outlook | None = None,
) -> Payback | None:
    """Weigh an edit of a prompt that is about to be sent; None if the model has no price."""
    listed = prices(model) if isinstance(model, str) else model
    if listed is None:
        return None
    course = _Course(listed, warmth, outlook or Outlook())
    left = prompt_tokens - edit.net_tokens
    cost_now = course.edit_usd(edit, prompt_tokens)
    saved = course.warm_usd(prompt_tokens) - course.warm_usd(left)
    gain = course.ahead_usd(prompt_tokens) - course.ahead_usd(left) - cost_now
    waiting = 0.0
    if gain > 0 and cost_now > 0:
        waiting = max(0.0, course.waiting_usd(edit, prompt_tokens) - gain)
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


@dataclass(frozen=True, slots=True)
class _Course:
    """The calls to come, as they are expected, and what they cost."""

    listed: Prices
    warmth: Warmth
    outlook: Outlook

    @property
    def lifetime(self) -> Lifetime:
        return self.warmth.lifetime

    def warm_usd(self, prompt_tokens: float) -> float:
        """Price the call after one with this prompt: it reads that prompt and writes its own."""
        growth = self.outlook.growth_tokens
        return call_usd(
            self.listed,
            prompt_tokens=prompt_tokens + growth,
            read_tokens=prompt_tokens,
            lifetime=self.lifetime,
            output_tokens=self.outlook.output_tokens,
        )

    def ahead_usd(self, prompt_tokens: float) -> float:
        """Price all warm calls to come after one with this prompt, each by its chance.

        Call j has the chance stays_warm**j and costs fixed + slope * j, at the prices of the
        step its prompt is on; each step's share is a tail of that sum less the next step's.
        """
        outlook, total = self.outlook, 0.0
        found = steps(self.listed)
        for step, higher in zip(found, [*found[1:], None], strict=True):
            first = self._first_past(step.above_tokens, prompt_tokens)
            growth, flat = outlook.growth_tokens, step.prices
            fixed = (prompt_tokens - growth) * flat.read + growth * step.write(self.lifetime)
            fixed += outlook.output_tokens * flat.output
            slope = growth * flat.read
            total += _tail(fixed, slope, outlook.stays_warm, first)
            if higher is not None:
                last = self._first_past(higher.above_tokens, prompt_tokens)
                total -= _tail(fixed, slope, outlook.stays_warm, last)
        return total / TOKENS_PER_PRICE

    def _first_past(self, line_tokens: int, prompt_tokens: float) -> float:
        """Number the first call to come whose prompt is longer than a line."""
        growth = self.outlook.growth_tokens
        if prompt_tokens + growth > line_tokens:
            return 1
        return math.floor((line_tokens - prompt_tokens) / growth) + 1 if growth > 0 else math.inf

    def edit_usd(self, edit: Edit, prompt_tokens: float, waited: int = 0) -> float:
        """Price the next call with the edit, less what it costs without."""
        warm = self.warmth.tokens
        if waited:
            warm = round(prompt_tokens - self.outlook.growth_tokens)
        kept = self.warmth.readable_before(edit.at_tokens)
        left = prompt_tokens - edit.net_tokens
        edited = call_usd(
            self.listed,
            prompt_tokens=left,
            read_tokens=min(kept, left),
            lifetime=self.lifetime,
            output_tokens=self.outlook.output_tokens,
        )
        plain = call_usd(
            self.listed,
            prompt_tokens=prompt_tokens,
            read_tokens=warm,
            lifetime=self.lifetime,
            output_tokens=self.outlook.output_tokens,
        )
        return edited - plain + edit.making_usd

    def waiting_usd(self, edit: Edit, prompt_tokens: int) -> float:
        """Give the best gain of the edits that wait, made comparable with acting now.

        Whoever acts now can act again later; so can whoever waits, but later. What that is
        worth is the gain of the same edit repeated on what the session will add.
        """
        again = self._repeated_usd(edit, prompt_tokens)
        later = max(
            self._gain_usd(edit, prompt_tokens, wait) + self.outlook.stays_warm**wait * again
            for wait in WAITS
        )
        return later - again

    def _repeated_usd(self, edit: Edit, prompt_tokens: int) -> float:
        """Value a fresh start after the edit: the best rhythm of edits, over and over."""
        left = prompt_tokens - edit.net_tokens
        settled = edit.until_tokens - edit.net_tokens
        kept = self.warmth.readable_before(edit.at_tokens)
        fresh = Edit(
            at_tokens=max(kept, settled - (edit.at_tokens - kept)),
            until_tokens=settled,
            removed_tokens=0,
            making_usd=edit.making_usd,
        )
        course = _Course(
            self.listed,
            Warmth(tokens=left, marked=(fresh.at_tokens,), lifetime=self.lifetime),
            self.outlook,
        )
        stays = self.outlook.stays_warm
        return max(
            0.0, *(course._gain_usd(fresh, left, wait) / (1 - stays**wait) for wait in WAITS)
        )

    def _gain_usd(self, edit: Edit, prompt_tokens: int, wait: int) -> float:
        """Give the expected gain of an edit made some calls from now, over never making it."""
        outlook = self.outlook
        grown = prompt_tokens + wait * outlook.growth_tokens
        more = edit.removed_tokens + wait * outlook.removable_tokens
        larger = Edit(
            at_tokens=edit.at_tokens,
            until_tokens=edit.until_tokens,
            removed_tokens=round(more),
            added_tokens=edit.added_tokens,
            making_usd=edit.making_usd,
        )
        saved = self.ahead_usd(grown) - self.ahead_usd(grown - larger.net_tokens)
        return float(outlook.stays_warm**wait * (saved - self.edit_usd(larger, grown, wait)))


def _tail(fixed: float, slope: float, ratio: float, first: float) -> float:
    """Sum ratio**j * (fixed + slope * j) over all j from the first on."""
    if math.isinf(first):
        return 0.0
    rest = 1 - ratio
    scale: float = ratio**first
    return scale * ((fixed + slope * first) / rest + slope * ratio / rest**2)
