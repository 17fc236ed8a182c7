"""The clearing stage: remove old tool results from the view, as the table of rules decides."""

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

from msgspec import structs

from longhold.core.log.cursor import LogCursor
from longhold.core.log.entries import (
    AnyEntry,
    Asked,
    Cleared,
    Compacted,
    Failed,
    Forked,
    Framed,
    Replied,
    Switched,
    Undone,
)
from longhold.core.log.spending import day_of
from longhold.core.messages import Usage
from longhold.core.models.capabilities import capabilities
from longhold.core.models.prices import TOKENS_PER_PRICE, price_call, prices
from longhold.core.policy.candidates import Batch, Candidate, Candidates, weight
from longhold.core.policy.clearing import (
    NEVER_CACHED,
    UNPRICED,
    Clear,
    ClearingFacts,
    ReadableCache,
    old_thinking,
    plan_served,
)
from longhold.core.policy.cost_model import CostModel, expect
from longhold.core.policy.decide import SpaceDecision
from longhold.core.request.lifetime import describe_lifetime, lifetime_seconds, seconds_of
from longhold.core.request.server_side import (
    OPTION,
    cleared_count,
    cleared_tokens,
    deleted_tokens,
    edits_in,
    has_edits,
)
from longhold.core.stages.clear.placeholder import (
    LONGEST_WEIGHT,
    InputShortener,
    placeholder_of,
    read_shown,
)
from longhold.core.stages.space import Part, drops_thinking, may_move
from longhold.core.tools.describe import HISTORY, Describe, build_describe, description_of
from longhold.core.turn.engine import Engine
from longhold.core.view import View
from longhold.core.view.items import Round

EDITS_FAILED = "cache edits"


@dataclass(slots=True)
class CallStats:
    """Figures about calls from the log: cache use, cost, and savings by clearing."""

    calls: int = 0
    cold_calls: int = 0
    began: float = 0.0
    """Start of the last call that used the cache, or the time of its answer if imported."""
    began_at: int = 0
    held_at: int = 0
    """The frame and all messages before this entry are cached for an hour. 0 means neither."""
    void_at: int = 0
    void_by: str = ""
    """The kind of the last entry that may have changed the whole prompt, and the reason."""
    has_deleted: bool = False
    edits_failed: bool = False
    last_applied: Replied | None = None
    """The last answer for which the provider shortened the prompt."""
    served_tokens: int = 0
    """Tokens that the provider cleared since the previous prompt."""
    billed_usd: float = 0.0
    saved_usd: float = 0.0
    """Dollars saved by clearing so far. This is negative until a rewrite has paid for itself."""
    _saving: dict[int, float] = field(default_factory=dict)
    _cursor: LogCursor = field(default_factory=LogCursor)
    _model: str = ""
    _response: str = ""
    _is_late: bool = False

    def follow(self, history: Sequence[AnyEntry], lifetime_seconds: float) -> None:
        if self._cursor.is_past(history):
            self.__init__()  # type: ignore[misc]
        for entry in self._cursor.advance(history):
            self._count(entry, lifetime_seconds)
            self._book(entry)

    def stake_usd(self, share: float) -> float:
        """Return the largest acceptable cost of a cache rewrite.

        Even if the session ended right afterwards, clearing would add at most `share` to its cost.
        """
        return math.inf if share >= 1 else share * self.billed_usd + self.saved_usd

    def _count(self, entry: AnyEntry, lifetime_seconds: float) -> None:
        match entry:
            case Asked(at=at):
                self._is_late = self.began > 0 and at - self.began >= lifetime_seconds
                self.cold_calls += self._is_late
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
                self.held_at = entry.held
            case Compacted():
                self.void_at, self.void_by = entry.n, "the history was compacted"
                self.held_at = 0
            case Failed(what=what) if what == EDITS_FAILED:
                self.edits_failed = True

    def _book(self, entry: AnyEntry) -> None:
        match entry:
            case Cleared():
                self.saved_usd -= entry.cost_usd
                self._saving[entry.n] = entry.saves_usd
            case Undone(target=target):
                self._saving.pop(target, None)
            case Compacted():
                self._saving.clear()

    def _answer(self, entry: Replied) -> None:
        # An answer may be logged in several parts with one id. Together they are one call.
        is_new = not entry.response_id or entry.response_id != self._response
        self.calls += is_new
        if is_new and entry.usage is not None:
            model, day = entry.model or self._model, day_of(entry.at)
            self.billed_usd += price_call(model, entry.usage, day).usd
            self.saved_usd += sum(self._saving.values())
            if self.held_at:
                self.saved_usd += self._held_usd(model, entry.usage)
        self._response = entry.response_id
        self.has_deleted = self.has_deleted or deleted_tokens(entry.usage) > 0
        if entry.applied:
            self._serve(entry)

    def _held_usd(self, model: str, usage: Usage) -> float:
        """Return a call's saving by the 1-hour lifetime: later reads minus expensive writes."""
        listed = prices(model) or UNPRICED
        saved = usage.cache_read_tokens * (listed.write_5m - listed.read) if self._is_late else 0.0
        more = usage.written_1h_tokens * (listed.write_1h - listed.write_5m)
        return (saved - more) / TOKENS_PER_PRICE

    def _serve(self, entry: Replied) -> None:
        """Record server-side clearing. The provider reports a running total per prompt."""
        last = self.last_applied
        if last is None or not entry.response_id or last.response_id != entry.response_id:
            before = cleared_tokens(last.applied) if last else 0
            self.served_tokens = max(0, cleared_tokens(entry.applied) - before)
        self.last_applied = entry

    def may_be_void(self) -> bool:
        """Return whether something since the last call may have changed the whole prompt."""
        return self.void_at > self.began_at


def expect_costs(
    engine: Engine, candidates: Candidates, stats: CallStats, scale: float
) -> CostModel:
    frame, used = engine.frame, engine.fullness().used_tokens
    cleared = round(candidates.cleared_weight * scale)
    outlook = expect(
        calls=stats.calls,
        cold_calls=stats.cold_calls,
        # Cleared tokens were part of the growth. Without them, growth would look slower.
        grown_tokens=max(0, round(used - weight(frame.measure) * scale) + cleared),
        removable_tokens=round(candidates.heavy.weight * scale) + cleared,
        lifetime=frame.lifetime,
    )
    listed = prices(engine.model) or UNPRICED
    if not frame.cached:  # without a cache, a pause does not end the savings
        listed, outlook = listed.without_cache(), replace(outlook, cold_share=0.0)
    return CostModel(listed=listed, forecast=outlook, lifetime=frame.lifetime)


def read_cache(engine: Engine, stats: CallStats) -> ReadableCache:
    """Infer the cached prefix from the elapsed time and the unchanged messages."""
    model, lifetime = engine.model, engine.frame.lifetime
    if not engine.frame.cached:
        return ReadableCache(NEVER_CACHED)
    if stats.began == 0:
        return ReadableCache("nothing was sent yet")
    idle = engine.monitor.clock() - stats.began
    if idle >= lifetime_seconds(model, lifetime):
        if stats.held_at and idle < seconds_of("1h"):
            return ReadableCache(live_end=stats.held_at, is_expired=True)
        cold = f"the cache expired after {describe_lifetime(model, lifetime)}"
        return ReadableCache(cold, is_expired=True)
    if _adds_first_image(engine):
        return ReadableCache("prompts with and without images are cached separately")
    if not stats.may_be_void():
        return ReadableCache()
    end = engine.find_live_end()
    return ReadableCache(live_end=end) if end else ReadableCache(stats.void_by)


def _adds_first_image(engine: Engine) -> bool:
    """Whether the next prompt has an image although the last prompt had none."""
    view, sent = engine.view, engine.view.reported
    if sent is None or sent.then.media_tokens or not view.total.media_tokens:
        return False
    return capabilities(engine.model).family in ("anthropic", "simulator")


def _find_affordable(engine: Engine, live_end: int, most_tokens: float) -> int:
    """Return the order of the first item beyond `most_tokens` of cache writes, or 0."""
    weigh = engine.make_weigher()
    left = most_tokens - (0.0 if live_end else weigh(engine.frame.measure))
    held = live_end if left < 0 else live_end or 1
    for item in engine.view.items:
        if item.order < held:
            continue
        left -= weigh(item.measure)
        if left < 0:
            return held
        held = item.order + 1
    return len(engine.view.history) + 1 if engine.view.items else held


def _count_cached(view: View, cache: ReadableCache, scale: float, sent_at: int) -> int:
    # A program that changes the last answer withdraws its report. Earlier messages stay cached.
    end = cache.live_end or (0 if view.reported else sent_at)
    if not end:
        return view.reported.usage.prompt_tokens if view.reported else 0
    gone = (weight(item.measure) for item in view.items if item.order >= end)
    return max(0, round((weight(view.total) - sum(gone)) * scale))


def server_clears(view: View, frame: Framed, answer: Replied, describe: Describe) -> Batch:
    """Infer which results the provider newly cleared before an answer."""
    edits, last, found = edits_in(frame.options), view.item_of(answer.n), Batch()
    excluded = {name for edit in edits for name in edit.get("exclude_tools") or ()}
    before = [item for item in view.items if last and item.order < last.order]
    rounds = [item for item in before if isinstance(item, Round)]
    calls = [(item, use) for item in rounds for use in item.tool_uses() if use.name not in excluded]
    for item, use in calls[: cleared_count(answer.applied)]:
        result = item.result_of(use.id)
        if result is not None and result.cleared is None:
            found.add(Candidate.of(item, use, result, describe(use.name)))
    return found


USD_DIGITS = 6
STALE_SHARE = 0.5
"""If edits delete less than this share of the expected tokens, the provider ignores them."""
ASK_AGAIN_SHARE = 1 / 16
"""Growth after which a rejected batch is priced again, because pricing is slow."""


class Clearing(Part):
    steps = ("clear",)

    def __init__(
        self,
        *,
        describe: Describe = description_of,
        forget: Callable[[str], None] = lambda _: None,
        tell: Callable[[str], None] = lambda _: None,
        is_main: bool = True,
    ) -> None:
        """`forget` receives paths whose text is gone. Only main agents edit the cache."""
        self._describe = describe
        self._forget = forget
        self._tell = tell
        self._is_main = is_main
        self._candidates: Candidates | None = None
        self._stats = CallStats()
        self._served = 0
        self._refused = 0.0
        """The weight of the last batch that did not pay."""
        self._looked: ClearingFacts | None = None
        self._has_cleared = False

    def observe(self, engine: Engine) -> None:
        self._follow(engine)
        self._looked, self._has_cleared = None, False
        # This is checked even if clearing is off, because the frame may tell the provider to clear.
        self._record_served(engine)

    def _follow(self, engine: Engine) -> None:
        lives = lifetime_seconds(engine.model, engine.frame.lifetime)
        self._stats.follow(engine.view.history, lives)

    def facts(self, engine: Engine) -> dict[str, Any]:
        self._follow(engine)
        return {
            "has_edits": bool(engine.view.edits),
            "cache": partial(read_cache, engine, self._stats),
            "clearing": cache(partial(self._look, engine)),
        }

    def _look(self, engine: Engine) -> ClearingFacts:
        view, vetoes = engine.view, engine.view.in_force.vetoes
        candidates = self.look(engine)
        if vetoes and engine.fullness().is_blocked:
            # An undo prevents the same change only as long as requests fit without it.
            candidates.follow(view, is_forced=True)
        shortener = InputShortener(candidates, _history_tool(engine))
        grown = abs(candidates.heavy.weight - self._refused)
        facts, keep = self._measure(engine, candidates), engine.settings.clear.keep_results
        self._looked = replace(
            facts,
            asks_price=bool(facts.cold) or grown >= ASK_AGAIN_SHARE * self._refused,
            inputs=partial(shortener.old_inputs, view, keep, vetoes),
            thinking=partial(old_thinking, view, vetoes),
        )
        return self._looked

    def _measure(self, engine: Engine, candidates: Candidates) -> ClearingFacts:
        view, frame, model, stats = engine.view, engine.frame, engine.model, self._stats
        full, total, known = engine.fullness(), weight(view.total), read_cache(engine, stats)
        scale = full.used_tokens / total if total > 0 else 1.0
        is_able = has_edits(frame, model) and self._is_main
        is_stale = not known.cold and _is_stale(view, candidates.edited.weight * scale)
        return ClearingFacts(
            candidates=candidates,
            settings=engine.settings,
            history=view.history,
            full=full,
            scale=scale,
            frame_weight=weight(frame.measure),
            cached_tokens=_count_cached(view, known, scale, stats.began_at),
            cold=known.cold,
            live_end=known.live_end if known.is_expired else 0,
            is_readable_from=engine.monitor.clock() - lifetime_seconds(model, frame.lifetime),
            costs=expect_costs(engine, candidates, stats, scale),
            stake_usd=stats.stake_usd(engine.settings.clear.stake_share),
            can_move=may_move(engine),
            has_edits=is_able and not stats.edits_failed,
            is_stale=is_stale,
            is_served=OPTION in frame.options and capabilities(model).context_management,
        )

    def hold(self, engine: Engine) -> tuple[int, int]:
        """After a pause, cache as much for an hour as the stake allows.

        After a pause the cache is rewritten anyway. Return two entry numbers, or 0. Messages before
        the first were cached for an hour. Messages before the second will be.
        """
        self._follow(engine)
        stats, cache = self._stats, read_cache(engine, self._stats)
        before, listed, able = stats.held_at, prices(engine.model), capabilities(engine.model)
        is_able = able.family in ("anthropic", "simulator") and not able.cache_seconds
        if cache.is_expired and is_able and listed is not None:
            more = (listed.write_1h - listed.write_5m) / TOKENS_PER_PRICE
            stake = stats.stake_usd(engine.settings.clear.stake_share)
            held = _find_affordable(engine, cache.live_end, stake / more)
            if held != before:
                engine.record(structs.replace(engine.frame, n=0, at=0.0, held=held, rests_on=()))
                self._follow(engine)
        return before, stats.held_at

    async def carry_out(self, engine: Engine, decision: SpaceDecision) -> None:
        assert isinstance(decision.plan, Clear)
        self._clear(engine, decision.plan, decision)

    def finish(self, engine: Engine) -> None:
        """Remember a batch that no rule cleared, so that it is not priced again too soon."""
        one, self._looked = self._looked, None
        if one is None:
            return
        if one.is_stale and not self._stats.has_deleted and not self._stats.edits_failed:
            # This is recorded so that even a resumed session does not ask this provider again.
            engine.record(Failed(what=EDITS_FAILED, error="the provider ignored them"))
        if one.asks_price and one.can_move and not self._has_cleared:
            self._refused = one.candidates.heavy.weight

    def look(self, engine: Engine) -> Candidates:
        settings = engine.settings.clear
        if self._candidates is None:
            self._candidates = Candidates(
                build_describe(settings.also, self._describe),
                smallest=max(settings.smallest_tokens, LONGEST_WEIGHT),
                is_kept=partial(_is_memory, memory=str(engine.log.path.parent / "memory")),
            )
        self._candidates.follow(engine.view)
        return self._candidates

    def _clear(self, engine: Engine, plan: Clear, decision: SpaceDecision | None = None) -> None:
        entry = make_cleared(engine, plan, decision)
        if not entry.ids and not plan.describe_beside():
            return
        engine.record(entry)
        self._refused, self._has_cleared = 0.0, True
        # `Read` must not answer "unchanged" about a text that the model no longer sees.
        gone = frozenset(entry.ids)
        for result in plan.batch.results:
            if result.id in gone and result.tool.kind == "read":
                for path in result.paths:
                    self._forget(path)
        self._tell(entry.why)

    def _record_served(self, engine: Engine) -> None:
        answer = self._stats.last_applied
        if answer is None or answer.n <= self._served:
            return
        self._served, candidates = answer.n, self.look(engine)
        found = server_clears(engine.view, engine.frame, answer, self._describe)
        if found:
            facts, tokens = self._measure(engine, candidates), self._stats.served_tokens
            self._clear(engine, plan_served(found, tokens, facts))


def make_cleared(engine: Engine, plan: Clear, decision: SpaceDecision | None = None) -> Cleared:
    """Make the entry for a plan. Results whose placeholder would not be shorter are omitted."""
    history, tool, beside = engine.view.history, _history_tool(engine), plan.describe_beside()
    shown = read_shown(engine.view, {result.id for result in plan.batch.results})
    made = []
    for result in plan.batch.results:
        made.append((result, *placeholder_of(result, history, tool, shown)))
        shown += made[-1][1]
    taken = [(one, text, size) for one, text, size in made if weight(size) < one.weight]
    also = f"; also {beside}" if beside and taken else ""
    return Cleared(
        ids=tuple(one.id for one, _, _ in taken),
        texts=tuple(text for _, text, _ in taken),
        measures=tuple(size for _, _, size in taken),
        inputs=tuple(one.short for one in plan.inputs),
        thinking=tuple(item.id for item in plan.thinking),
        how=plan.how,
        inferred=plan.how == "server",
        # Every call repeats an edit in the position where it was first sent.
        place=engine.view.items[-1].order if plan.how == "edited" else 0,
        drops_thinking=plan.how == "rewritten" and drops_thinking(engine),
        cost_usd=round(plan.cost_usd, USD_DIGITS),
        saves_usd=round(plan.saves_usd, USD_DIGITS),
        why=plan.why + also,
        rule=decision.rule if decision else "",
        lost=tuple(map(str, decision.lost)) if decision else (),
    )


def _history_tool(engine: Engine) -> str:
    return HISTORY if any(tool.get("name") == HISTORY for tool in engine.frame.tools) else ""


def _is_stale(view: View, edited_tokens: float) -> bool:
    """Whether the provider still counts results that it was asked to delete."""
    if not edited_tokens or not view.edits or view.reported is None:
        return False
    is_answered = view.reported.n >= view.edits[-1].n
    return is_answered and deleted_tokens(view.reported.usage) < STALE_SHARE * edited_tokens


def _is_memory(path: str, *, memory: str) -> bool:
    given = os.path.expanduser(path)  # noqa: PTH111 - unlike Path, this accepts `~nobody`
    return given.endswith("MEMORY.md") or given.startswith((f"{memory}/", f"{memory}\\"))
