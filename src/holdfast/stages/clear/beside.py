"""What leaves the view beside old results: long inputs, and thinking while the cache is dead.

It never decides when to clear: it goes with results whose clearing rewrites the text behind them,
or when nothing is cached, by itself if that is enough to be worth it.
"""

from dataclasses import dataclass

from msgspec import structs

from holdfast.log.entries import Cleared
from holdfast.messages.cut import counted
from holdfast.settings import ClearSettings
from holdfast.stages.clear.candidates import Batch
from holdfast.stages.clear.inputs import InputShortener, OldInput
from holdfast.stages.clear.policy import CacheStanding, ClearPlan, usd
from holdfast.stages.clear.snapshot import NEVER_CACHED, Snapshot
from holdfast.stages.clear.thinking import old_thinking, thinking_weight
from holdfast.view import View
from holdfast.view.items import Round


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Inputs and thinking that leave the view now."""

    inputs: tuple[OldInput, ...] = ()
    thinking: tuple[Round, ...] = ()
    tokens: int = 0

    def __bool__(self) -> bool:
        return bool(self.inputs or self.thinking)

    @property
    def described(self) -> str:
        parts = []
        if self.inputs:
            parts.append(f"the inputs of {counted(len(self.inputs), 'old call')}")
        if self.thinking:
            parts.append(f"the thinking of {counted(len(self.thinking), 'earlier answer')}")
        return f"{' and '.join(parts)}, about {self.tokens:,} tokens"

    def add_to(self, entry: Cleared) -> Cleared:
        if not self:
            return entry
        return structs.replace(
            entry,
            inputs=tuple(one.short for one in self.inputs),
            thinking=tuple(item.id for item in self.thinking),
            why=f"{entry.why}; also {self.described}" if entry.ids else entry.why,
        )


def plan_beside(
    view: View,
    plan: ClearPlan | None,
    now: Snapshot,
    settings: ClearSettings,
    shortener: InputShortener,
) -> Beside:
    """Return what can go with a plan, or without one where the cache is dead."""
    is_dead = bool(now.cold) and now.cold != NEVER_CACHED and settings.idle
    if plan is not None and plan.how != "rewritten":
        return Beside()
    if plan is None and not is_dead:
        return Beside()
    vetoes = view.in_force.vetoes
    rewritten = plan.batch.results if plan is not None and not is_dead else ()
    start = min((one.order for one in rewritten), default=0)
    inputs = shortener.old_inputs(view, settings.keep_results, vetoes) if settings.inputs else []
    taken = tuple(one for one in inputs if one.order >= start)
    drops = is_dead and settings.thinking
    thinking = old_thinking(view, settings.keep_thinking_turns, vetoes) if drops else []
    lighter = sum(one.weight for one in taken) + sum(map(thinking_weight, thinking))
    return Beside(inputs=taken, thinking=tuple(thinking), tokens=round(lighter * now.scale))


def plan_alone(
    beside: Beside, now: Snapshot, standing: CacheStanding, settings: ClearSettings
) -> ClearPlan | None:
    """Return a plan without results, if what can go is enough to be worth losing."""
    if not standing.can_move or beside.tokens < max(1, now.scaled(settings.idle_least_tokens)):
        return None
    saved = now.write_usd(beside.tokens)
    money = f"; the next call costs {usd(saved)} less" if saved > 0 else ""
    why = f"cleared {beside.described}, for free, as {now.cold}{money}"
    return ClearPlan(way="idle", batch=Batch(), why=why, cost_usd=-saved)
