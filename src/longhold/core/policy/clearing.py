"""Pure functions that estimate what clearing removes, costs and saves, and its rules.

Results are cleared in batches, because clearing before every call would rewrite the cache each
time. Each `clear_…` function is a rule in the table of `decide`. It returns a plan, or the reason
why the rule does not apply.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

from longhold.core.log.entries import AnyEntry, Asked, ClearedInput, How, Ran, Said
from longhold.core.messages import is_thought
from longhold.core.messages.measure import measure_content
from longhold.core.messages.text import exact_dollars, pluralize
from longhold.core.models.capabilities import capabilities
from longhold.core.models.prices import TOKENS_PER_PRICE, Prices
from longhold.core.policy.candidates import Batch, Candidate, Candidates, weight
from longhold.core.policy.cost_model import (
    NEEDED_REREAD,
    CacheState,
    CostModel,
    CostStep,
    HistoryEdit,
    Payback,
    edit_cost_usd,
    need_usd,
    needed_rate,
    payback,
    step_at,
)
from longhold.core.policy.threshold import Fullness
from longhold.core.settings import Settings
from longhold.core.view import View
from longhold.core.view.items import Round
from longhold.core.view.window import COST, scale_tokens

IDLE_LEAST_TOKENS = 2_000
"""Clearing fewer tokens is not worth the lost information, even when it is free."""
EDITS_TRIGGER_RESULTS = 12
"""The minimum for a cache edit. Five results are kept, so each edit deletes at least seven."""
PAID_LEAST_TOKENS = 10_000
"""A batch of this size can pay for a cache rewrite. A single result seldom does."""
KEEP_THINKING_TURNS = 1
"""The next turn builds on the thinking of the last turn."""
NEVER_CACHED = "nothing is cached"
"""Caching is off, so the cache is cold before every call."""
BOUND = "the running turn's thinking is bound to the sent messages"
TOO_LITTLE = "too little is worth clearing"
UNPRICED = Prices(input=0.0, write_5m=0.0, write_1h=0.0, read=0.0, output=0.0)
"""Used for models without known prices. With these prices, clearing only frees space."""
STAND_IN_WEIGHT = 60.0
"""The approximate weight of a placeholder with its frame."""


class ReadableCache(NamedTuple):
    """The part of the next prompt that the provider can still read from its cache."""

    cold: str = ""
    """Why the provider can read no messages from its cache, or ""."""
    live_end: int = 0
    """The order of the first item that is not cached, or 0 if everything sent is cached."""
    is_expired: bool = False
    """The provider can read nothing because too much time has passed."""


class OldInput(NamedTuple):
    order: int
    short: ClearedInput
    weight: float


def old_thinking(view: View, vetoes: AbstractSet[int | str]) -> list[Round]:
    """Return the answers with thinking, oldest first, except in the newest turn that has any.

    The list is empty if the model would lose later thinking or never sees earlier thinking.
    """
    able = capabilities(view.model)
    if able.binds_thinking or not able.keeps_thinking:
        return []
    turns: list[list[Round]] = [[]]
    for item in view.items:
        if isinstance(item, Round):
            if not item.drops_thinking and any(map(is_thought, item.content)):
                turns[-1].append(item)
        elif item.is_asked() and turns[-1]:
            turns.append([])
    thoughtful = [turn for turn in turns if turn]
    old = [item for turn in thoughtful[:-KEEP_THINKING_TURNS] for item in turn]
    return [item for item in old if item.id not in vetoes and not view.is_pinned(item)]


@dataclass(frozen=True, kw_only=True)
class ClearingFacts:
    """Facts before a call: the old results, the cache and the prices."""

    candidates: Candidates = field(default_factory=Candidates)
    settings: Settings = field(default_factory=Settings)
    history: Sequence[AnyEntry]
    full: Fullness
    scale: float
    """Tokens per unit of weight."""
    frame_weight: float
    cached_tokens: int
    cold: str
    """Why the cache can no longer be read, or "" if it can."""
    live_end: int = 0
    """The order of the first expired item if earlier items have not expired, or else 0."""
    is_readable_from: float
    """Prefixes that were used since this time are still cached."""
    costs: CostModel
    stake_usd: float = math.inf
    """The highest acceptable cost of a cache rewrite, in US dollars."""
    can_move: bool = True
    """Whether the prefix that was already sent may change."""
    has_edits: bool = False
    is_stale: bool = False
    """The provider ignored cache edits, or no longer applies them."""
    is_served: bool = False
    asks_price: bool = True
    """Whether enough has changed since clearing last did not pay."""
    inputs: Callable[[], Sequence[OldInput]] = tuple
    """Long inputs of old calls."""
    thinking: Callable[[], Sequence[Round]] = tuple
    """Answers of earlier turns that still show their thinking."""

    @cached_property
    def batch(self) -> Batch:
        return self.candidates.batch(self.settings.clear.keep_results)

    @cached_property
    def spared(self) -> Batch:
        return spare_needed(self)

    @property
    def is_dead(self) -> bool:
        return bool(self.cold) and self.cold != NEVER_CACHED and self.settings.clear.idle

    @property
    def has_own_cut(self) -> bool:
        """Whether a rule for stale edits, a cold cache or cache edits decides."""
        return self.is_stale or (self.is_dead and self.can_move) or self.can_edit

    @property
    def can_edit(self) -> bool:
        return self.has_edits and not self.cold and not self.is_stale

    @property
    def is_tight(self) -> bool:
        """Whether space must be freed now. This is fast, because it does not read every result."""
        full = self.full
        is_at_line = full.window.auto and full.used_tokens >= full.window.auto_tokens
        return is_at_line or (full.is_blocked and self.can_move)

    @property
    def is_mostly_empty(self) -> bool:
        """Whether the window is so empty that clearing would only lose information."""
        share = self.settings.clear.warm_share
        return self.full.used_tokens < share * self.full.window.base_tokens

    @property
    def is_compacted_by_cost(self) -> bool:
        """Whether compaction runs when it pays. In replays, clearing before it saved nothing."""
        window, compact = self.settings.window, self.settings.compact
        return window.auto_line == COST and window.auto and compact.on and not compact.reactive_only

    def is_enough(self, tokens: int, least_tokens: int) -> bool:
        return tokens >= max(1, scale_tokens(least_tokens, self.full.window.limit_tokens))

    def freed_tokens(self, batch: Batch) -> int:
        return round((batch.weight - STAND_IN_WEIGHT * len(batch)) * self.scale)

    def payback(self, batch: Batch) -> Payback:
        return payback(self.costs, self._edit(batch))

    def limit_to_stake(self, batch: Batch) -> Batch:
        """Return the newest part of a batch whose rewrite costs at most the stake."""

        def is_affordable(start: int) -> bool:
            return edit_cost_usd(self.costs, self._edit(batch.since(start))) <= self.stake_usd

        # A later start is always cheaper, so bisection finds the first affordable start.
        return batch.since(bisect_left(range(len(batch)), True, key=is_affordable))

    def _edit(self, batch: Batch) -> HistoryEdit:
        first, last = batch.results[0], batch.results[-1]
        return HistoryEdit(
            prompt_tokens=self.full.used_tokens,
            cache=self._cache_state(first),
            at_tokens=self._tokens(first.before),
            until_tokens=self._tokens(last.before + last.weight),
            removed_tokens=round((batch.weight + self._inputs_weight(first.order)) * self.scale),
            added_tokens=round(STAND_IN_WEIGHT * len(batch) * self.scale),
        )

    def _inputs_weight(self, start: int) -> float:
        # Only a stake needs the exact price. Other sessions' figures were measured without inputs.
        if math.isinf(self.stake_usd):
            return 0.0
        return sum(one.weight for one in self.old_inputs if one.order >= start)

    @cached_property
    def old_inputs(self) -> Sequence[OldInput]:
        return self.inputs() if self.settings.clear.inputs else ()

    def _cache_state(self, first: Candidate) -> CacheState:
        """Return the part of the cache that stays readable if everything from `first` on changes.

        Each call leaves its prompt in the cache. The text before a round is therefore readable
        while a prefix from that time is cached.
        """
        if self.cold:
            return CacheState()
        frame, before = self._tokens(0.0), self._tokens(first.before)
        is_left = time_of(self.history, first.order) >= self.is_readable_from
        is_left = is_left and _follows_call(self.history, first.order)
        return CacheState(
            tokens=min(self.cached_tokens, self.full.used_tokens),
            marked=(frame, before) if is_left else (frame,),
        )

    def need_usd(self, result: Candidate, *, is_reread: bool, freed_tokens: int) -> float:
        """Return the expected cost of clearing a result if `freed_tokens` are cleared in total."""
        rate = needed_rate(result.tool.kind, max(0, self.candidates.rounds - result.round))
        if is_reread and result.tool.kind == "read":
            rate = min(rate, NEEDED_REREAD)
        prompt = max(0, self.full.used_tokens - freed_tokens)
        again = need_usd(self.costs, prompt, result.weight * self.scale)
        return rate * self.settings.cost.need_weight * again

    def keep_usd(self, result: Candidate) -> float:
        tokens = max(0, round((result.weight - STAND_IN_WEIGHT) * self.scale))
        is_expired = self.cold or 0 < self.live_end <= result.order
        now = self.write_usd(tokens) if is_expired else 0.0
        return now + self.costs.forecast.warm_calls * self.read_usd(tokens)

    @cached_property
    def _step(self) -> CostStep:
        return step_at(self.costs.listed, self.full.used_tokens)

    def read_usd(self, tokens: int) -> float:
        return self._step.prices.read * tokens / TOKENS_PER_PRICE

    def write_usd(self, tokens: int) -> float:
        return self._step.write(self.costs.lifetime) * tokens / TOKENS_PER_PRICE

    def _tokens(self, weight: float) -> int:
        return round((self.frame_weight + weight) * self.scale)


def time_of(history: Sequence[AnyEntry], n: int) -> float:
    i = _find_entry(history, n)
    return history[i].at if i < len(history) and history[i].n == n else 0.0


def _find_entry(history: Sequence[AnyEntry], n: int) -> int:
    if 0 < n <= len(history) and history[n - 1].n == n:
        return n - 1
    return bisect_left(history, n, key=attrgetter("n"))


def _follows_call(history: Sequence[AnyEntry], n: int) -> bool:
    """Return whether a call ended right before this entry. Clients may add several together."""
    for i in range(_find_entry(history, n) - 1, -1, -1):
        if isinstance(history[i], Said | Ran):
            return False
        if isinstance(history[i], Asked):
            break
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Clear:
    """The plan to remove these results, inputs and thinking."""

    batch: Batch
    why: str
    how: How = "rewritten"
    cost_usd: float = 0.0
    """The extra cost of the next call in US dollars. It is negative if the call is cheaper."""
    saves_usd: float = 0.0
    """The saving on each later call in US dollars."""
    inputs: tuple[OldInput, ...] = ()
    thinking: tuple[Round, ...] = ()
    beside_tokens: int = 0
    """The size of these inputs and of this thinking."""

    def describe_beside(self) -> str:
        inputs = f"the inputs of {pluralize(len(self.inputs), 'old call')}"
        thinking = f"the thinking of {pluralize(len(self.thinking), 'earlier answer')}"
        parts = [*([inputs] if self.inputs else []), *([thinking] if self.thinking else [])]
        return f"{' and '.join(parts)}, about {self.beside_tokens:,} tokens" if parts else ""


def clear_stale(facts: ClearingFacts) -> Clear | str:
    """Rewrite results that a cache edit failed to delete, and clear later results for free."""
    if not facts.is_stale:
        return ""
    # This comes first, because the provider still counts results that the view no longer has.
    if facts.can_move:
        taken = _add_free(facts.candidates.edited, facts.batch, facts)
        why = f"{describe_batch(taken, facts)}: the provider's cache cannot delete them"
        return _make_plan(facts, taken, why)
    # A rewrite drops the running tool loop's thinking. This is acceptable only if the alternative
    # is a compaction, which drops more.
    return _clear_at_threshold(facts, facts.candidates.edited + facts.batch)


def clear_cold(facts: ClearingFacts) -> Clear | str:
    """Clear for free, because the next call writes everything anyway."""
    # Without caching this rule does not apply, because it would clear before every call.
    if facts.live_end and facts.can_move:
        return _clear_expired(facts)
    if not facts.is_dead:
        return "" if facts.cold else "the cache is warm"
    if not facts.can_move:
        return BOUND
    # The provider removed these from its own copy, but requests still contain them.
    hidden = facts.candidates.edited + facts.candidates.served
    taken = _add_free(hidden, facts.spared, facts)
    plan = _make_plan(facts, taken, "")
    if not taken:
        if not facts.is_enough(plan.beside_tokens, IDLE_LEAST_TOKENS):
            return TOO_LITTLE
        what, freed = f"cleared {plan.describe_beside()},", plan.beside_tokens
    else:
        what, freed = describe_batch(taken, facts), facts.freed_tokens(taken)
    saved = facts.write_usd(freed)
    why = f"{what} for free, as {facts.cold}{_format_saving('the next call', saved)}"
    return replace(plan, why=why, cost_usd=-saved)


def _clear_expired(facts: ClearingFacts) -> Clear | str:
    """Clear expired results, and keep results that are still cached."""
    old = {one.id for one in facts.spared.results if one.order < facts.live_end}
    taken = facts.spared.without(old)
    plan = _make_plan(facts, taken, "")
    freed = facts.freed_tokens(taken) + plan.beside_tokens
    if not facts.is_enough(freed, IDLE_LEAST_TOKENS):
        return TOO_LITTLE
    what = describe_batch(taken, facts) if taken else f"cleared {plan.describe_beside()},"
    saved = facts.write_usd(freed)
    why = f"{what} for free, as their cache expired{_format_saving('the next call', saved)}"
    return replace(plan, why=why, cost_usd=-saved)


def clear_edits(facts: ClearingFacts) -> Clear | str:
    """Delete results inside a live cache, which rewrites nothing."""
    if not facts.can_edit:
        return ""
    batch = facts.batch
    active = len(facts.candidates.heavy) + facts.candidates.unread
    is_due = active >= EDITS_TRIGGER_RESULTS and not facts.is_mostly_empty
    # Fewer results are enough to avoid a compaction, because nothing is rewritten.
    if not batch or not (is_due or isinstance(_clear_at_threshold(facts, batch), Clear)):
        return f"{pluralize(active, 'result')}, fewer than {EDITS_TRIGGER_RESULTS}"
    saved = facts.read_usd(facts.freed_tokens(batch))
    why = f"{describe_batch(batch, facts)} inside the provider's cache{_format_saving('each call', saved)}"
    return Clear(batch=batch, why=why, how="edited", saves_usd=max(0.0, saved))


def clear_paid(facts: ClearingFacts) -> Clear | str:
    """Clear a batch that pays for the rewrite of the cache."""
    if facts.has_own_cut or not facts.settings.clear.paid or facts.is_served:
        return ""
    if not facts.can_move:
        return BOUND
    if not facts.cold and facts.is_compacted_by_cost:
        return "a compaction at the threshold by cost removes more"
    if not facts.cold and facts.is_mostly_empty:
        return "the window is mostly empty"
    if not facts.asks_price:
        return "it did not pay, and little was added since"
    batch = facts.limit_to_stake(facts.spared)
    if not facts.is_enough(facts.freed_tokens(batch), PAID_LEAST_TOKENS):
        return TOO_LITTLE
    if facts.costs.listed == UNPRICED:
        return "the model has no price"
    found = facts.payback(batch)
    cost, saves = exact_dollars(found.cost_now_usd), exact_dollars(found.saved_per_call_usd)
    if not found.worth_it:
        return f"it would cost {cost} now and save {saves} a call"
    money = f"it costs {cost} now and saves {saves} a call"
    if found.cost_now_usd <= 0:
        money = f"the next call costs {exact_dollars(-found.cost_now_usd)} less"
    return _make_plan(facts, batch, f"{describe_batch(batch, facts)}: {money}", found.cost_now_usd)


def clear_at_threshold(facts: ClearingFacts) -> Clear | str:
    """Clear to avoid a compaction, which would drop more thinking."""
    if facts.has_own_cut or not facts.is_tight:
        return ""
    return _clear_at_threshold(facts, facts.spared)


def _clear_at_threshold(facts: ClearingFacts, batch: Batch) -> Clear | str:
    if not facts.is_tight:
        return ""
    if not batch:
        return "there is nothing to clear"
    left = facts.full.used_tokens - facts.freed_tokens(batch)
    most = (1 - facts.settings.clear.line_room) * facts.full.window.base_tokens
    if left > most:
        return f"it would leave {left:,} tokens, more than {most:,.0f}"
    cost = max(0.0, facts.payback(batch).cost_now_usd)
    money = f"; it costs {exact_dollars(cost)}" if cost > 0 else ""
    why = f"{describe_batch(batch, facts)}, so that nothing needs to be compacted yet{money}"
    return _make_plan(facts, batch, why, cost)


def _add_free(hidden: Batch, batch: Batch, facts: ClearingFacts) -> Batch:
    is_enough = facts.is_enough(facts.freed_tokens(batch), IDLE_LEAST_TOKENS)
    return hidden + batch if is_enough else hidden


def plan_served(found: Batch, tokens: int, facts: ClearingFacts) -> Clear:
    """Make a plan that adopts the provider's own clearing in the view."""
    freed = max(0, facts.freed_tokens(found))
    size = f"{tokens:,}" if tokens else f"about {freed:,}"
    why = (
        f"the provider cleared {pluralize(len(found), 'result')} on its side, {size} tokens, "
        f"presumably the oldest{_format_saving('each call', facts.read_usd(tokens or freed))}"
    )
    return Clear(batch=found, why=why, how="server", saves_usd=facts.read_usd(freed))


def _format_saving(what: str, usd: float) -> str:
    return f"; {what} costs {exact_dollars(usd)} less" if usd > 0 else ""


def _make_plan(facts: ClearingFacts, batch: Batch, why: str, cost_usd: float = 0.0) -> Clear:
    """Plan a rewrite, including the inputs and thinking that it also removes.

    If the cache is cold, inputs and thinking may be removed without results.
    """
    rewritten, settings = () if facts.is_dead else batch.results, facts.settings.clear
    # Everything after the first rewritten result is sent anew anyway. The rest is still cached.
    start = facts.live_end or min((one.order for one in rewritten), default=0)
    inputs = tuple(one for one in facts.old_inputs if one.order >= start)
    thinking = tuple(facts.thinking()) if facts.is_dead and settings.thinking else ()
    thoughts = (block for item in thinking for block in item.content if is_thought(block))
    lighter = sum(one.weight for one in inputs) + weight(measure_content(thoughts))
    beside = round(lighter * facts.scale)
    return Clear(
        batch=batch,
        why=why,
        cost_usd=cost_usd,
        saves_usd=facts.read_usd(max(0, facts.freed_tokens(batch) + beside)),
        inputs=inputs,
        thinking=thinking,
        beside_tokens=beside,
    )


def spare_needed(facts: ClearingFacts) -> Batch:
    """Leave out results that are cheaper to keep than to fetch again, by expected cost.

    If a file was read again, its earlier parts are seldom needed. A shorter prompt makes fetching
    cheaper, so the loop repeats until no more results are worth clearing.
    """
    newest = {_question(one): one.id for one in facts.candidates.newest}
    reads = [one for one in facts.candidates.newest if one.tool.kind == "read"]
    readings = {path: one.id for one in reads for path in one.paths}

    def is_worth_keeping(one: Candidate, freed_tokens: int) -> bool:
        is_reread = any(readings.get(path, one.id) != one.id for path in one.paths)
        need = facts.need_usd(one, is_reread=is_reread, freed_tokens=freed_tokens)
        return need >= facts.keep_usd(one) > 0

    batch = facts.batch
    kept, taken = batch.results, batch.since(len(batch))
    while True:
        freed = facts.freed_tokens(taken)
        still = [
            one
            for one in kept
            if newest.get(_question(one)) == one.id and is_worth_keeping(one, freed)
        ]
        if len(still) == len(kept):
            return taken
        kept, taken = still, batch.without({one.id for one in still})


def _question(result: Candidate) -> str:
    return f"{result.use.name} {result.use.input}"


def describe_batch(batch: Batch, facts: ClearingFacts) -> str:
    fresh = batch.without({one.id for one in batch.results if one.result.cleared is not None})
    known = len(batch) - len(fresh)
    parts = []
    if fresh or not known:
        parts.append(
            f"cleared {pluralize(len(fresh), 'old result')}, about {max(0, facts.freed_tokens(fresh)):,} tokens"
        )
    if known:
        parts.append(
            f"took {pluralize(known, 'result')} out of the prompt, because the provider ignored a cache edit"
        )
    return ", and ".join(parts)
