"""The state before a call that clearing depends on: sizes, prices, and what is cached.

A `Snapshot` converts weights to tokens and tokens to money; `policy` decides.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from holdfast.log.cursor import LogCursor
from holdfast.log.entries import (
    AnyEntry,
    Asked,
    Compacted,
    Failed,
    Forked,
    Framed,
    Replied,
    Switched,
)
from holdfast.models.prices import TOKENS_PER_PRICE, Prices, prices
from holdfast.request.cache.cost_model import CacheState, CostModel, Forecast, expect
from holdfast.request.cache.need import need_usd, needed_rate
from holdfast.request.cache.payback import HistoryEdit, Payback, edit_cost_usd, payback
from holdfast.request.edits import deleted_tokens
from holdfast.request.lifetime import Lifetime, seconds_of
from holdfast.request.server_side import cleared_tokens
from holdfast.settings import CostSettings
from holdfast.stages.clear.candidates import Batch, Candidate, Candidates, weight
from holdfast.turn.engine import Engine, Fullness
from holdfast.view.window import scaled

EDITS_FAILED = "cache edits"
"""The subject of the `Failed` entry for a provider that ignores cache edits."""


@dataclass(slots=True)
class CallStats:
    """Counts over a session's history, kept up to date by `follow`."""

    calls: int = 0
    cold_calls: int = 0
    began: float = 0.0
    """When the last call that used the cache began; in imported sessions, when its answer arrived."""
    began_at: int = 0
    void_at: int = 0
    void_by: str = ""
    """The last entry that invalidated the whole cache, and why."""
    has_deleted: bool = False
    """Some answer reported that cache edits were applied."""
    edits_failed: bool = False
    last_applied: Replied | None = None
    """The last answer to a prompt that the provider shortened."""
    served_tokens: int = 0
    """How many more tokens it cleared there than in the prompt before."""
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
        self.calls += not entry.response_id or entry.response_id != self._response
        self._response = entry.response_id
        self.has_deleted = self.has_deleted or deleted_tokens(entry.usage) > 0
        if entry.applied:
            self._serve(entry)

    def _serve(self, entry: Replied) -> None:
        """Note what the provider cleared; it reports a running total per prompt."""
        last = self.last_applied
        if last is None or not entry.response_id or last.response_id != entry.response_id:
            before = cleared_tokens(last.applied) if last else 0
            self.served_tokens = max(0, cleared_tokens(entry.applied) - before)
        self.last_applied = entry

    def is_void(self) -> bool:
        """True if nothing that the last call left in the cache can be read."""
        return self.void_at > self.began_at


NEVER_CACHED = "nothing is cached"
"""Caching is off, so the cache is cold before every call."""
STAND_IN_WEIGHT = 60.0
"""About the weight of a placeholder with its frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything about the moment before a call that clearing depends on."""

    history: Sequence[AnyEntry]
    full: Fullness
    scale: float
    """Tokens per unit of weight."""
    frame_weight: float
    cached_tokens: int
    cold: str
    """Why none of it can be read any more; "" if it can."""
    is_readable_from: float
    """Prefixes used since then are still cached."""
    lifetime: Lifetime
    listed: Prices | None
    outlook: Forecast
    cost: CostSettings = field(default_factory=CostSettings)
    warm_share: float = 0.0
    stake_usd: float = math.inf
    """What a rewrite of the cache may cost."""
    rounds: int = 0
    """Answers in the view, by which the age of a result is counted."""

    @property
    def is_at_line(self) -> bool:
        """True if the history will be compacted unless room is made."""
        return self.full.window.auto and self.full.used_tokens >= self.full.window.auto_tokens

    def scaled(self, tokens: int) -> int:
        return scaled(tokens, self.full.window.limit_tokens)

    def freed_tokens(self, batch: Batch) -> int:
        """Estimate how much shorter the prompt gets if a batch is cleared."""
        return round((batch.weight - STAND_IN_WEIGHT * len(batch)) * self.scale)

    def payback(self, batch: Batch) -> Payback | None:
        """Price clearing a batch; None if the model has no price."""
        if self.listed is None or not batch.results:
            return None
        return payback(
            self._edit(batch),
            prompt_tokens=self.full.used_tokens,
            cache=self._cache_state(batch.results[0]),
            model=self.listed,
            forecast=self.outlook,
        )

    def affordable(self, batch: Batch) -> Batch:
        """Return the newest part of a batch whose rewrite costs no more than the stake.

        The later the first change, the less is written again.
        """
        costs = self._costs()
        if costs is None or not batch.results or math.isinf(self.stake_usd):
            return batch

        def is_affordable(start: int) -> bool:
            part = batch.since(start)
            cache = self._cache_state(part.results[0])
            cost = edit_cost_usd(costs, self._edit(part), self.full.used_tokens, cache)
            return cost <= self.stake_usd

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
        """Return what can still be read if everything from a result on changes.

        Each call leaves its prompt in the cache, so the text before a round can be read as long as
        a prefix from that time is alive.
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
        """Price the chance that a result is needed once it is gone, and so much else with it."""
        costs = self._costs()
        if costs is None:
            return 0.0
        age, tokens = self.rounds - result.round, result.weight * self.scale
        rate = needed_rate(self.cost, result.tool.kind, max(0, age))
        if is_reread and result.tool.kind == "read":
            rate = min(rate, self.cost.needed_reread)
        prompt = max(0, self.full.used_tokens - freed_tokens)
        return rate * need_usd(costs, prompt, tokens, self.cost)

    def keep_usd(self, result: Candidate) -> float:
        """Price keeping a result until the session ends or the cache dies."""
        tokens = max(0, round((result.weight - STAND_IN_WEIGHT) * self.scale))
        now = self.write_usd(tokens) if self.cold else 0.0
        return now + self.outlook.warm_calls * self.read_usd(tokens)

    def read_usd(self, tokens: int) -> float:
        """Price reading tokens from the cache once; 0 without a price."""
        listed = self.listed.at_length(self.full.used_tokens).read if self.listed else 0.0
        return listed * tokens / TOKENS_PER_PRICE

    def write_usd(self, tokens: int) -> float:
        """Price writing tokens to the cache once; 0 without a price."""
        if self.listed is None:
            return 0.0
        flat = self.listed.at_length(self.full.used_tokens)
        return (
            (flat.write_1h if self.lifetime == "1h" else flat.write_5m) * tokens / TOKENS_PER_PRICE
        )

    def _tokens(self, weight: float) -> int:
        return round((self.frame_weight + weight) * self.scale)


def is_mostly_empty(full: Fullness, warm_share: float) -> bool:
    """True while clearing what is cached would only lose information: there is room."""
    return full.used_tokens < warm_share * full.window.base_tokens


def is_at_ease(engine: Engine, stats: CallStats) -> bool:
    """True if there is nothing to gain from clearing: the cache is alive, and there is room."""
    if why_cold(engine, stats):
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
        cold=why_cold(engine, stats),
        is_readable_from=now - seconds_of(lifetime),
        lifetime=lifetime,
        listed=prices(engine.model),
        outlook=expect(
            calls=stats.calls,
            cold_calls=stats.cold_calls,
            grown_tokens=max(0, round(full.used_tokens - frame_weight * scale) + cleared),
            removable_tokens=round(candidates.heavy.weight * scale) + cleared,
            lifetime=lifetime,
        ),
        cost=engine.settings.cost,
        warm_share=engine.settings.clear.warm_share,
        stake_usd=stake_usd,
        rounds=candidates.rounds,
    )


def why_cold(engine: Engine, stats: CallStats) -> str:
    """Return why nothing of the last prompt can be read from the cache, or ""."""
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
    """Return when an entry was written; 0.0 if there is no such entry."""
    if 0 < n <= len(history) and history[n - 1].n == n:
        return history[n - 1].at
    i = bisect_left(history, n, key=attrgetter("n"))
    return history[i].at if i < len(history) and history[i].n == n else 0.0
