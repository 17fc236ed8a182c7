"""Decide what to clear before a call, and by which method. Pure.

The first applicable method wins: rewrite results that a cache edit failed to delete, clear for free
while the cache is dead, delete inside a live cache, or clear a batch that pays for the cache
rewrite. Server-side clearing reports only counts, so the oldest results are assumed.
"""

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Literal, TypeAlias

from longhold.core.log.cursor import LogCursor
from longhold.core.log.entries import (
    AnyEntry,
    Asked,
    Compacted,
    Failed,
    Forked,
    Framed,
    How,
    Replied,
    Switched,
)
from longhold.core.messages import ToolUse
from longhold.core.messages.text import exact_dollars, pluralize
from longhold.core.models.prices import TOKENS_PER_PRICE, Prices, prices
from longhold.core.policy.cost_model import (
    NEEDED_REREAD,
    CacheState,
    CostModel,
    Forecast,
    HistoryEdit,
    Payback,
    edit_cost_usd,
    expect,
    need_usd,
    needed_rate,
    payback,
)
from longhold.core.request.lifetime import Lifetime, seconds_of
from longhold.core.request.server_side import (
    cleared_count,
    cleared_tokens,
    deleted_tokens,
    edits_in,
)
from longhold.core.settings import ClearSettings, CostSettings
from longhold.core.stages.clear.candidates import Batch, Candidate, Candidates, weight
from longhold.core.tools.describe import Describe
from longhold.core.turn.engine import Engine, Fullness
from longhold.core.view import View
from longhold.core.view.items import Result, Round
from longhold.core.view.window import scale_tokens

EDITS_FAILED = "cache edits"
IDLE_LEAST_TOKENS = 2_000
"""Clearing fewer tokens is not worth the lost information, even when it is free."""
EDITS_TRIGGER_RESULTS = 12
"""With five results kept, every cache edit deletes at least seven."""
PAID_LEAST_TOKENS = 10_000
"""A batch can pay for a cache rewrite; a single result seldom does."""


@dataclass(slots=True)
class CallStats:
    calls: int = 0
    cold_calls: int = 0
    began: float = 0.0
    """Start of the last call that used the cache; in imported sessions, arrival of its answer."""
    began_at: int = 0
    void_at: int = 0
    void_by: str = ""
    """The last entry that invalidated the whole cache, and why."""
    has_deleted: bool = False
    edits_failed: bool = False
    last_applied: Replied | None = None
    """The last answer whose prompt the provider had shortened."""
    served_tokens: int = 0
    """Tokens cleared there in addition to those cleared from the previous prompt."""
    _cursor: LogCursor = field(default_factory=LogCursor)
    _model: str = ""
    _response: str = ""

    def follow(self, history: Sequence[AnyEntry], lifetime_seconds: float) -> None:
        if self._cursor.is_past(history):
            self.__init__()  # type: ignore[misc]
        for entry in self._cursor.advance(history):
            self._count(entry, lifetime_seconds)

    def _count(self, entry: AnyEntry, lifetime_seconds: float) -> None:
        match entry:
            case Asked(at=at):
                self.cold_calls += self.began > 0 and at - self.began >= lifetime_seconds
                self.began, self.began_at = at, entry.n
            case Replied(at=at):
                self._answer(entry)
                if self.began_at == 0:
                    self.began = at
            case Forked(source=source) if not source.startswith("agent:"):
                if entry.usage.cache_read_tokens and self.began:  # reading renews its lifetime
                    self.began = max(self.began, entry.at - entry.seconds)
            case Switched(model=model):
                if model != self._model:
                    self.void_at, self.void_by = entry.n, "another model answers"
                self._model = model
            case Framed():
                self.void_at, self.void_by = entry.n, "the prompt's frame is new"
            case Compacted():
                self.void_at, self.void_by = entry.n, "the history was compacted"
            case Failed(what=what) if what == EDITS_FAILED:
                self.edits_failed = True

    def _answer(self, entry: Replied) -> None:
        # An answer may be logged in several pieces with one id; together they are one call.
        self.calls += not entry.response_id or entry.response_id != self._response
        self._response = entry.response_id
        self.has_deleted = self.has_deleted or deleted_tokens(entry.usage) > 0
        if entry.applied:
            self._serve(entry)

    def _serve(self, entry: Replied) -> None:
        """Record server-side clearing. The provider reports a running total per prompt."""
        last = self.last_applied
        if last is None or not entry.response_id or last.response_id != entry.response_id:
            before = cleared_tokens(last.applied) if last else 0
            self.served_tokens = max(0, cleared_tokens(entry.applied) - before)
        self.last_applied = entry

    def is_void(self) -> bool:
        """True if nothing from the last call's prompt is still readable in the cache."""
        return self.void_at > self.began_at


NEVER_CACHED = "nothing is cached"
"""Caching is off, so the cache is cold before every call."""
STAND_IN_WEIGHT = 60.0
"""The approximate weight of a placeholder with its frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    history: Sequence[AnyEntry]
    full: Fullness
    scale: float
    """Tokens per unit of weight."""
    frame_weight: float
    cached_tokens: int
    cold: str
    """Why nothing cached can be read any more; "" if it can."""
    is_readable_from: float
    """A timestamp: prefixes used since then are still cached."""
    lifetime: Lifetime
    listed: Prices | None
    outlook: Forecast
    cost: CostSettings = field(default_factory=CostSettings)
    warm_share: float = 0.0
    stake_usd: float = math.inf
    """The most that a cache rewrite may cost."""
    rounds: int = 0
    """The number of answers in the view; the age of a result is counted in answers."""

    @property
    def is_at_line(self) -> bool:
        return self.full.window.auto and self.full.used_tokens >= self.full.window.auto_tokens

    def scale_tokens(self, tokens: int) -> int:
        return scale_tokens(tokens, self.full.window.limit_tokens)

    def freed_tokens(self, batch: Batch) -> int:
        return round((batch.weight - STAND_IN_WEIGHT * len(batch)) * self.scale)

    def payback(self, batch: Batch) -> Payback | None:
        if self.listed is None or not batch.results:
            return None
        return payback(
            self._edit(batch),
            prompt_tokens=self.full.used_tokens,
            cache=self._cache_state(batch.results[0]),
            model=self.listed,
            forecast=self.outlook,
        )

    def limit_to_stake(self, batch: Batch) -> Batch:
        """Return the newest part of a batch whose rewrite is within the stake. Later is cheaper."""
        costs = self._costs()
        if costs is None or not batch.results or math.isinf(self.stake_usd):
            return batch

        def is_affordable(start: int) -> bool:
            part = batch.since(start)
            cache = self._cache_state(part.results[0])
            cost = edit_cost_usd(costs, self._edit(part), self.full.used_tokens, cache)
            return cost <= self.stake_usd

        # A later start only gets cheaper, so the first affordable one can be found by bisection.
        starts = range(len(batch))
        return batch.since(bisect_left(starts, True, key=is_affordable))

    def _edit(self, batch: Batch) -> HistoryEdit:
        first, last = batch.results[0], batch.results[-1]
        return HistoryEdit(
            at_tokens=self._tokens(first.before),
            until_tokens=self._tokens(last.before + last.weight),
            removed_tokens=round(batch.weight * self.scale),
            added_tokens=round(STAND_IN_WEIGHT * len(batch) * self.scale),
        )

    def _costs(self) -> CostModel | None:
        if self.listed is None:
            return None
        return CostModel(listed=self.listed, forecast=self.outlook, lifetime=self.lifetime)

    def _cache_state(self, first: Candidate) -> CacheState:
        """Return what can still be read from the cache if everything from `first` on changes.

        Each call leaves its prompt in the cache, so the text before a round is readable while a
        prefix from that time is alive.
        """
        if self.cold:
            return CacheState(lifetime=self.lifetime)
        frame, before = self._tokens(0.0), self._tokens(first.before)
        is_left = time_of(self.history, first.order) >= self.is_readable_from
        return CacheState(
            tokens=min(self.cached_tokens, self.full.used_tokens),
            marked=(frame, before) if is_left else (frame,),
            lifetime=self.lifetime,
        )

    @property
    def is_mostly_empty(self) -> bool:
        return is_mostly_empty(self.full, self.warm_share)

    def need_usd(
        self, result: Candidate, *, is_reread: bool = False, freed_tokens: int = 0
    ) -> float:
        """Return the expected cost of clearing a result together with `freed_tokens` others."""
        costs = self._costs()
        if costs is None:
            return 0.0
        age, tokens = self.rounds - result.round, result.weight * self.scale
        rate = needed_rate(result.tool.kind, max(0, age))
        if is_reread and result.tool.kind == "read":
            rate = min(rate, NEEDED_REREAD)
        prompt = max(0, self.full.used_tokens - freed_tokens)
        return rate * need_usd(costs, prompt, tokens, self.cost)

    def keep_usd(self, result: Candidate) -> float:
        tokens = max(0, round((result.weight - STAND_IN_WEIGHT) * self.scale))
        now = self.write_usd(tokens) if self.cold else 0.0
        return now + self.outlook.warm_calls * self.read_usd(tokens)

    def read_usd(self, tokens: int) -> float:
        listed = self.listed.select_tier(self.full.used_tokens).read if self.listed else 0.0
        return listed * tokens / TOKENS_PER_PRICE

    def write_usd(self, tokens: int) -> float:
        if self.listed is None:
            return 0.0
        flat = self.listed.select_tier(self.full.used_tokens)
        return (
            (flat.write_1h if self.lifetime == "1h" else flat.write_5m) * tokens / TOKENS_PER_PRICE
        )

    def _tokens(self, weight: float) -> int:
        return round((self.frame_weight + weight) * self.scale)


def is_mostly_empty(full: Fullness, warm_share: float) -> bool:
    """True while there is enough space that clearing cached results would only lose information."""
    return full.used_tokens < warm_share * full.window.base_tokens


def is_at_ease(engine: Engine, stats: CallStats) -> bool:
    if _why_cold(engine, stats):
        return False
    full = engine.fullness()
    return is_mostly_empty(full, engine.settings.clear.warm_share) and not full.is_blocked


def take_snapshot(
    engine: Engine, candidates: Candidates, stats: CallStats, *, stake_usd: float = math.inf
) -> Snapshot:
    full, view, frame = engine.fullness(), engine.view, engine.frame
    lifetime: Lifetime = frame.lifetime
    now, total = engine.monitor.clock(), weight(view.total)
    scale = full.used_tokens / total if total > 0 else 1.0
    frame_weight = weight(frame.measure)
    cleared = round(candidates.cleared_weight * scale)
    return Snapshot(
        history=view.history,
        full=full,
        scale=scale,
        frame_weight=frame_weight,
        cached_tokens=view.reported.usage.prompt_tokens if view.reported else 0,
        cold=_why_cold(engine, stats),
        is_readable_from=now - seconds_of(lifetime),
        lifetime=lifetime,
        listed=prices(engine.model),
        outlook=expect(
            calls=stats.calls,
            cold_calls=stats.cold_calls,
            # What was cleared had been added as well: without it, clearing would look like slow
            # growth.
            grown_tokens=max(0, round(full.used_tokens - frame_weight * scale) + cleared),
            removable_tokens=round(candidates.heavy.weight * scale) + cleared,
            lifetime=lifetime,
        ),
        cost=engine.settings.cost,
        warm_share=engine.settings.clear.warm_share,
        stake_usd=stake_usd,
        rounds=candidates.rounds,
    )


def _why_cold(engine: Engine, stats: CallStats) -> str:
    lifetime: Lifetime = engine.frame.lifetime
    if not engine.frame.cached:
        return NEVER_CACHED
    if stats.began == 0:
        return "nothing was sent yet"
    if stats.is_void():
        return stats.void_by
    if engine.monitor.clock() - stats.began >= seconds_of(lifetime):
        return f"the cache has died after {'5 minutes' if lifetime == '5m' else 'an hour'}"
    return ""


def time_of(history: Sequence[AnyEntry], n: int) -> float:
    if 0 < n <= len(history) and history[n - 1].n == n:
        return history[n - 1].at
    i = bisect_left(history, n, key=attrgetter("n"))
    return history[i].at if i < len(history) and history[i].n == n else 0.0


Way: TypeAlias = Literal["stale", "idle", "edits", "server", "paid", "line"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStanding:
    can_move: bool = True
    """The prefix that was already sent may change."""
    has_edits: bool = False
    is_stale: bool = False
    """The provider ignored cache edits, or no longer applies them."""
    is_served: bool = False
    asks_price: bool = True
    """Enough has changed since clearing was last found not to pay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearPlan:
    way: Way
    batch: Batch
    why: str
    how: How = "rewritten"
    cost_usd: float = 0.0
    """The extra cost of the next call; negative if it is cheaper."""


def plan_clearing(
    candidates: Candidates, now: Snapshot, standing: CacheStanding, settings: ClearSettings
) -> ClearPlan | None:
    """Decide what to clear before the next call, by the first method that applies."""
    batch = candidates.batch(settings.keep_results)
    # First, because the provider still counts results that the view treats as gone.
    if standing.is_stale and standing.can_move:
        return _plan_stale(candidates.edited, batch, now)
    # Not without caching: every call is cold then, so this would clear before each of them.
    if now.cold and now.cold != NEVER_CACHED and settings.idle and standing.can_move:
        return _plan_idle(candidates, batch, now)
    if standing.is_stale:
        # A rewrite would drop the thinking of the running tool loop; a compaction would drop more.
        return _plan_at_line(candidates.edited + batch, now, standing, settings)
    if standing.has_edits and not now.cold:
        active = len(candidates.heavy) + candidates.unread
        is_due = active >= EDITS_TRIGGER_RESULTS and not now.is_mostly_empty
        # deleting fewer results pays if it avoids a compaction, because nothing is rewritten
        return (
            _plan_edits(batch, now)
            if is_due or _plan_at_line(batch, now, standing, settings)
            else None
        )
    may_pay = standing.can_move and standing.asks_price and not standing.is_served
    may_pay = may_pay and (bool(now.cold) or not now.is_mostly_empty)
    by_price = _plan_paid(candidates, batch, now) if settings.paid and may_pay else None
    if by_price or not _is_tight(now, standing):
        return by_price
    return _plan_at_line(_spare_needed(batch, candidates, now), now, standing, settings)


def _plan_stale(edited: Batch, batch: Batch, now: Snapshot) -> ClearPlan | None:
    """Rewrite results a cache edit failed to delete, and more: the rest is rewritten anyway."""
    taken = _add_free(edited, batch, now)
    why = f"{_describe(taken, now)}: its cache does not do so"
    return ClearPlan(way="stale", batch=taken, why=why)


def _plan_idle(candidates: Candidates, batch: Batch, now: Snapshot) -> ClearPlan | None:
    # The provider left these out of its own copy; they are still in the text that is sent anew.
    hidden = candidates.edited + candidates.served
    taken = _add_free(hidden, _spare_needed(batch, candidates, now), now)
    if not taken:
        return None
    saved = now.write_usd(now.freed_tokens(taken))
    money = f"; the next call costs {exact_dollars(saved)} less" if saved > 0 else ""
    why = f"{_describe(taken, now)} for free, as {now.cold}{money}"
    return ClearPlan(way="idle", batch=taken, why=why, cost_usd=-saved)


def _add_free(hidden: Batch, batch: Batch, now: Snapshot) -> Batch:
    is_enough = now.freed_tokens(batch) >= max(1, now.scale_tokens(IDLE_LEAST_TOKENS))
    return hidden + batch if is_enough else hidden


def _spare_needed(batch: Batch, candidates: Candidates, now: Snapshot) -> Batch:
    """Leave out results that are cheaper to keep than the chance of needing them.

    Other parts of a file that was read again are needed, but seldom. The loop repeats because a
    shorter prompt makes fetching cheaper, so more results become worth clearing.
    """
    newest = {_question(one): one.id for one in candidates.newest}
    reads = [one for one in candidates.newest if one.tool.kind == "read"]
    readings = {path: one.id for one in reads for path in one.paths}

    def is_worth_keeping(one: Candidate, freed_tokens: int) -> bool:
        is_reread = any(readings.get(path, one.id) != one.id for path in one.paths)
        need = now.need_usd(one, is_reread=is_reread, freed_tokens=freed_tokens)
        return need >= now.keep_usd(one) > 0

    kept, taken = batch.results, batch.since(len(batch))
    while True:
        freed = now.freed_tokens(taken)
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


def _plan_edits(batch: Batch, now: Snapshot) -> ClearPlan | None:
    saved = now.read_usd(now.freed_tokens(batch))
    money = f"; each call costs {exact_dollars(saved)} less" if saved > 0 else ""
    why = f"{_describe(batch, now)} inside the provider's cache{money}"
    return ClearPlan(way="edits", batch=batch, why=why, how="edited") if batch else None


def _plan_paid(candidates: Candidates, batch: Batch, now: Snapshot) -> ClearPlan | None:
    batch = now.limit_to_stake(_spare_needed(batch, candidates, now))
    if now.freed_tokens(batch) < max(1, now.scale_tokens(PAID_LEAST_TOKENS)):
        return None
    found = now.payback(batch)
    if found is None or not found.worth_it:
        return None
    money = f"it costs {exact_dollars(found.cost_now_usd)} now and saves {exact_dollars(found.saved_per_call_usd)} a call"
    if found.cost_now_usd <= 0:
        money = f"the next call costs {exact_dollars(-found.cost_now_usd)} less"
    why = f"{_describe(batch, now)}: {money}"
    return ClearPlan(way="paid", batch=batch, why=why, cost_usd=found.cost_now_usd)


def _plan_at_line(
    batch: Batch, now: Snapshot, standing: CacheStanding, settings: ClearSettings
) -> ClearPlan | None:
    """Clear to avoid a compaction, which would drop more thinking than this does."""
    if not batch or not _is_tight(now, standing):
        return None
    left = now.full.used_tokens - now.freed_tokens(batch)
    if left > (1 - settings.line_room) * now.full.window.base_tokens:
        return None
    found = now.payback(batch)
    cost = max(0.0, found.cost_now_usd) if found else 0.0
    money = f"; it costs {exact_dollars(cost)}" if cost > 0 else ""
    why = f"{_describe(batch, now)}, so that nothing needs to be compacted yet{money}"
    return ClearPlan(way="line", batch=batch, why=why, cost_usd=cost)


def _is_tight(now: Snapshot, standing: CacheStanding) -> bool:
    """True if space must be freed now. Cheap, unlike the checks that read every result."""
    return now.is_at_line or (now.full.is_blocked and standing.can_move)


def _describe(batch: Batch, now: Snapshot) -> str:
    fresh = Batch()
    for result in batch.results:
        if result.result.cleared is None:
            fresh.add(result)
    known = len(batch) - len(fresh)
    parts = []
    if fresh or not known:
        parts.append(
            f"cleared {pluralize(len(fresh), 'old result')}, about {max(0, now.freed_tokens(fresh)):,} tokens"
        )
    if known:
        parts.append(
            f"took {pluralize(known, 'result')} out of the text that the provider was to leave out"
        )
    return ", and ".join(parts)


def server_clears(view: View, frame: Framed, answer: Replied, describe: Describe) -> Batch:
    """Infer which results the provider newly cleared from the prompt of an answer."""
    excluded = {
        name for edit in edits_in(frame.options) for name in edit.get("exclude_tools") or ()
    }
    left, found = cleared_count(answer.applied), Batch()
    for item, use, result in _iter_calls(view, answer):
        if left <= 0:
            break
        if use.name in excluded:
            continue
        left -= 1
        if result is not None and result.cleared is None:
            found.add(Candidate.of(item, use, result, describe(use.name)))
    return found


def _iter_calls(view: View, answer: Replied) -> Iterator[tuple[Round, ToolUse, Result | None]]:
    last = view.item_of(answer.n)
    for item in view.items:
        if last is None or item.order >= last.order:
            return
        if isinstance(item, Round):
            for use in item.tool_uses():
                yield item, use, item.result_of(use.id)


def plan_served(found: Batch, tokens: int, now: Snapshot) -> ClearPlan:
    size = f"{tokens:,}" if tokens else f"about {max(0, now.freed_tokens(found)):,}"
    saved = now.read_usd(tokens or now.freed_tokens(found))
    money = f"; each call costs {exact_dollars(saved)} less" if saved > 0 else ""
    why = (
        f"the provider cleared {pluralize(len(found), 'result')} on its side, {size} tokens, "
        f"taken to be the oldest{money}"
    )
    return ClearPlan(way="server", batch=found, why=why, how="server")
