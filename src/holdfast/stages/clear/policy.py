"""What to clear before a call, and by which method. Pure.

The methods in order: rewrite what the provider failed to leave out; clear for free while the cache
is dead; delete inside a living cache; otherwise a batch must pay for the rewrite it causes, by
cheaper reads or by avoiding a compaction. What the provider clears itself is only read back: it
reports counts, so the oldest results are assumed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from holdfast.log.entries import Framed, How, Replied
from holdfast.messages import ToolUse
from holdfast.messages.cut import counted
from holdfast.request.server_side import cleared_count, edits_in
from holdfast.settings import ClearSettings
from holdfast.stages.clear.candidates import Batch, Candidate, Candidates
from holdfast.stages.clear.snapshot import NEVER_CACHED, Snapshot
from holdfast.tools.describe import Describe
from holdfast.view import View
from holdfast.view.items import Result, Round

Way: TypeAlias = Literal["stale", "idle", "edits", "server", "paid", "line"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheStanding:
    """What the cache and the provider allow before this call."""

    can_move: bool = True
    """What was sent before may change."""
    has_edits: bool = False
    """The provider deletes inside its cache on request."""
    is_stale: bool = False
    """It was asked to and did not, or no longer does."""
    is_served: bool = False
    """The provider clears on its side."""
    asks_price: bool = True
    """Enough has changed since clearing was last found not to pay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearPlan:
    """What to clear, how, and the line for the user."""

    way: Way
    batch: Batch
    why: str
    how: How = "rewritten"
    cost_usd: float = 0.0
    """How much more the next call costs; negative if less."""


def plan_clearing(
    candidates: Candidates, now: Snapshot, standing: CacheStanding, settings: ClearSettings
) -> ClearPlan | None:
    """Decide what to clear before the next call, by the first method that applies."""
    batch = candidates.batch(settings.keep_results)
    if standing.is_stale and standing.can_move:
        return _stale(candidates.edited, batch, now, settings)
    if now.cold and now.cold != NEVER_CACHED and settings.idle and standing.can_move:
        return _idle(candidates, batch, now, settings)
    if standing.is_stale:
        return _at_line(candidates.edited + batch, now, standing, settings)
    if standing.has_edits and not now.cold:
        active = len(candidates.heavy) + candidates.unread
        is_due = active >= settings.edits_trigger_results and not now.is_mostly_empty
        # deleting fewer is worth it if that avoids a compaction: no rewrite is paid
        return _edits(batch, now) if is_due or _at_line(batch, now, standing, settings) else None
    may_pay = standing.can_move and standing.asks_price and not standing.is_served
    may_pay = may_pay and (bool(now.cold) or not now.is_mostly_empty)
    by_price = _paid(candidates, batch, now, settings) if settings.paid and may_pay else None
    if by_price or not _is_tight(now, standing):
        return by_price
    return _at_line(spared(batch, candidates, now), now, standing, settings)


def _stale(edited: Batch, batch: Batch, now: Snapshot, settings: ClearSettings) -> ClearPlan | None:
    """Rewrite what a cache edit failed to delete; since everything after it is rewritten, clear more."""
    taken = _with(edited, batch, now, settings)
    why = f"{_described(taken, now)}: its cache does not do so"
    return ClearPlan(way="stale", batch=taken, why=why)


def _idle(
    candidates: Candidates, batch: Batch, now: Snapshot, settings: ClearSettings
) -> ClearPlan | None:
    """Clear old results while the cache is dead, including what the provider hid."""
    hidden = candidates.edited + candidates.served
    taken = _with(hidden, spared(batch, candidates, now), now, settings)
    if not taken:
        return None
    saved = now.write_usd(now.freed_tokens(taken))
    money = f"; the next call costs {usd(saved)} less" if saved > 0 else ""
    why = f"{_described(taken, now)} for free, as {now.cold}{money}"
    return ClearPlan(way="idle", batch=taken, why=why, cost_usd=-saved)


def _with(hidden: Batch, batch: Batch, now: Snapshot, settings: ClearSettings) -> Batch:
    """Add what is free to clear, if it is enough to be worth losing."""
    is_enough = now.freed_tokens(batch) >= max(1, now.scaled(settings.idle_least_tokens))
    return hidden + batch if is_enough else hidden


def spared(batch: Batch, candidates: Candidates, now: Snapshot) -> Batch:
    """Leave out results whose keeping costs less than the chance of needing them.

    What was asked for again since is not needed as it was before; other parts of a file that was
    read again are, but seldom. Getting a result again is cheaper with a shorter prompt, so what is
    taken makes more worth taking.
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


def _edits(batch: Batch, now: Snapshot) -> ClearPlan | None:
    saved = now.read_usd(now.freed_tokens(batch))
    money = f"; each call costs {usd(saved)} less" if saved > 0 else ""
    why = f"{_described(batch, now)} inside the provider's cache{money}"
    return ClearPlan(way="edits", batch=batch, why=why, how="edited") if batch else None


def _paid(
    candidates: Candidates, batch: Batch, now: Snapshot, settings: ClearSettings
) -> ClearPlan | None:
    """Clear a batch that saves more than the cache rewrite it causes costs."""
    batch = now.affordable(spared(batch, candidates, now))
    least = max(settings.paid_least_tokens, settings.idle_least_tokens)
    if now.freed_tokens(batch) < max(1, now.scaled(least)):
        return None
    found = now.payback(batch)
    if found is None or not found.worth_it:
        return None
    money = (
        f"it costs {usd(found.cost_now_usd)} now and saves {usd(found.saved_per_call_usd)} a call"
    )
    if found.cost_now_usd <= 0:
        money = f"the next call costs {usd(-found.cost_now_usd)} less"
    why = f"{_described(batch, now)}: {money}"
    return ClearPlan(way="paid", batch=batch, why=why, cost_usd=found.cost_now_usd)


def _at_line(
    batch: Batch, now: Snapshot, standing: CacheStanding, settings: ClearSettings
) -> ClearPlan | None:
    """Clear to avoid a compaction, if that makes room for a while.

    This does not wait for bound thinking: a compaction would drop more of it.
    """
    if not batch or not _is_tight(now, standing):
        return None
    left = now.full.used_tokens - now.freed_tokens(batch)
    if left > (1 - settings.line_room) * now.full.window.base_tokens:
        return None
    found = now.payback(batch)
    cost = max(0.0, found.cost_now_usd) if found else 0.0
    money = f"; it costs {usd(cost)}" if cost > 0 else ""
    why = f"{_described(batch, now)}, so that nothing needs to be compacted yet{money}"
    return ClearPlan(way="line", batch=batch, why=why, cost_usd=cost)


def _is_tight(now: Snapshot, standing: CacheStanding) -> bool:
    """Return whether room must be made now: looked at first, since the rest reads every result."""
    return now.is_at_line or (now.full.is_blocked and standing.can_move)


def _described(batch: Batch, now: Snapshot) -> str:
    fresh = Batch()
    for result in batch.results:
        if result.result.cleared is None:
            fresh.add(result)
    known = len(batch) - len(fresh)
    parts = []
    if fresh or not known:
        parts.append(
            f"cleared {counted(len(fresh), 'old result')}, about {max(0, now.freed_tokens(fresh)):,} tokens"
        )
    if known:
        parts.append(
            f"took {counted(known, 'result')} out of the text that the provider was to leave out"
        )
    return ", and ".join(parts)


def usd(amount: float) -> str:
    """Format an amount so that a small one does not read as $0.00."""
    return f"${amount:.2f}" if abs(amount) >= 0.1 else f"${amount:.4f}"


def server_clears(view: View, frame: Framed, answer: Replied, describe: Describe) -> Batch:
    """Infer which results the provider newly cleared from the prompt of an answer."""
    excluded = {
        name for edit in edits_in(frame.options) for name in edit.get("exclude_tools") or ()
    }
    left, found = cleared_count(answer.applied), Batch()
    for item, use, result in _called_before(view, answer):
        if left <= 0:
            break
        if use.name in excluded:
            continue
        left -= 1
        if result is not None and result.cleared is None:
            found.add(Candidate.of(item, use, result, describe(use.name)))
    return found


def _called_before(view: View, answer: Replied) -> Iterator[tuple[Round, ToolUse, Result | None]]:
    last = view.item_of(answer.n)
    for item in view.items:
        if last is None or item.order >= last.order:
            return
        if isinstance(item, Round):
            for use in item.tool_uses():
                yield item, use, item.result_of(use.id)


def plan_served(found: Batch, tokens: int, now: Snapshot) -> ClearPlan:
    """Describe what is new, with the provider's own token count where it reports one."""
    size = f"{tokens:,}" if tokens else f"about {max(0, now.freed_tokens(found)):,}"
    saved = now.read_usd(tokens or now.freed_tokens(found))
    money = f"; each call costs {usd(saved)} less" if saved > 0 else ""
    why = (
        f"the provider cleared {counted(len(found), 'result')} on its side, {size} tokens, "
        f"taken to be the oldest{money}"
    )
    return ClearPlan(way="server", batch=found, why=why, how="server")
