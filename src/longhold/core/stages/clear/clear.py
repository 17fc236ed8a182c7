"""The clearing stage: remove old tool results from the view when that is free or pays off.

`policy` decides. Results are cleared in batches, because a cut that moved with every call would
rewrite the cache each time.
"""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from msgspec import structs

from longhold.core.log.cursor import LogCursor
from longhold.core.log.entries import (
    AnyEntry,
    Cleared,
    ClearedInput,
    Compacted,
    Failed,
    Replied,
    Undone,
)
from longhold.core.log.unique_answers import day_of
from longhold.core.messages import Json, JsonObject, ToolUse, is_thought
from longhold.core.messages.measure import measure_content, measure_text
from longhold.core.messages.text import exact_dollars, pluralize
from longhold.core.models.capabilities import capabilities
from longhold.core.models.prices import price_call
from longhold.core.request.lifetime import seconds_of
from longhold.core.request.server_side import OPTION, deleted_tokens, has_edits
from longhold.core.settings import ClearSettings
from longhold.core.stages.clear.candidates import Batch, Candidates, weight
from longhold.core.stages.clear.placeholder import LONGEST_WEIGHT, PlaceholderLines
from longhold.core.stages.clear.policy import (
    EDITS_FAILED,
    IDLE_LEAST_TOKENS,
    NEVER_CACHED,
    CacheStanding,
    CallStats,
    ClearPlan,
    Snapshot,
    is_at_ease,
    plan_clearing,
    plan_served,
    server_clears,
    take_snapshot,
)
from longhold.core.stages.prefix_lock import drops_thinking, may_move
from longhold.core.tools.describe import (
    HISTORY,
    Describe,
    Described,
    build_describe,
    description_of,
)
from longhold.core.tools.protocol import unwrap_call
from longhold.core.turn.engine import Engine
from longhold.core.view import View
from longhold.core.view.items import Round

KEEP_THINKING_TURNS = 1
"""The next turn builds on the thinking of the last one."""


class OldInput(NamedTuple):
    order: int
    short: ClearedInput
    weight: float


class InputShortener(NamedTuple):
    describe: Describe
    smallest: float
    history_tool: str = ""
    is_kept: Callable[[str], bool] = lambda path: False

    def old_inputs(self, view: View, keep: int, vetoes: AbstractSet[int | str]) -> list[OldInput]:
        answers = [item for item in view.items if isinstance(item, Round)]
        calls = [(item, use) for item in answers for use in item.tool_uses()]
        # The calls of the last answer stay, however many: no answer has followed them yet.
        unread = len(answers[-1].tool_uses()) if answers else 0
        found = [
            self._shorten(item, use)
            for item, use in calls[: max(0, len(calls) - max(keep, unread))]
            if use.id not in vetoes and use.id not in item.inputs and not view.is_pinned(item)
        ]
        return [one for one in found if one is not None]

    def _shorten(self, item: Round, use: ToolUse) -> OldInput | None:
        meant = unwrap_call(use)
        tool = self.describe(meant.name)
        # The long text of a write is in the file, so the model can read it there.
        if tool.kind != "write" or any(map(self.is_kept, tool.paths_in(meant.input))):
            return None
        long = [text for text in _texts(use.input) if self._is_long(text)]
        if not long:
            return None
        short: JsonObject = self._in_place(use.input, item.id, tool)
        lighter = sum(weight(measure_text(text)) for text in long)
        return OldInput(item.order, ClearedInput(tool_use_id=use.id, input=short), lighter)

    def _is_long(self, text: str) -> bool:
        return len(text) > self.smallest and weight(measure_text(text)) >= self.smallest

    def _in_place(self, value: Json, n: int, tool: Described) -> Json:
        if isinstance(value, dict):
            return {key: self._in_place(inner, n, tool) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._in_place(inner, n, tool) for inner in value]
        if not isinstance(value, str) or not self._is_long(value):
            return value
        hints = ["Read the file"] if tool.path_inputs else []
        if self.history_tool:
            hints.append(f"{self.history_tool} #{n} has it")
        again = f" {', or '.join(hints)}." if hints else ""
        return f"[{pluralize(len(value), 'character')}, cleared to make room.{again}]"


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def _old_thinking(view: View, keep_turns: int, vetoes: AbstractSet[int | str]) -> list[Round]:
    """Return the answers with thinking of all but the newest `keep_turns` turns, oldest first.

    Empty for models that lose later thinking by this or never see earlier turns' thinking.
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
    old = [item for turn in thoughtful[:-keep_turns] for item in turn]
    return [item for item in old if item.id not in vetoes and not view.is_pinned(item)]


def _thinking_weight(item: Round) -> float:
    return weight(measure_content(block for block in item.content if is_thought(block)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Tool inputs and thinking that are cleared in addition to results."""

    inputs: tuple[OldInput, ...] = ()
    thinking: tuple[Round, ...] = ()
    tokens: int = 0

    def __bool__(self) -> bool:
        return bool(self.inputs or self.thinking)

    @property
    def described(self) -> str:
        parts = []
        if self.inputs:
            parts.append(f"the inputs of {pluralize(len(self.inputs), 'old call')}")
        if self.thinking:
            parts.append(f"the thinking of {pluralize(len(self.thinking), 'earlier answer')}")
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


def _plan_beside(
    view: View,
    plan: ClearPlan | None,
    now: Snapshot,
    settings: ClearSettings,
    shortener: InputShortener,
) -> Beside:
    """Choose inputs and thinking to clear along with a plan, or alone if the cache is dead."""
    is_dead = bool(now.cold) and now.cold != NEVER_CACHED and settings.idle
    if plan is not None and plan.how != "rewritten":
        return Beside()
    if plan is None and not is_dead:
        return Beside()
    vetoes = view.in_force.vetoes
    rewritten = plan.batch.results if plan is not None and not is_dead else ()
    # Only what follows the first rewritten result is sent anew anyway; the rest is still cached.
    start = min((one.order for one in rewritten), default=0)
    inputs = shortener.old_inputs(view, settings.keep_results, vetoes) if settings.inputs else []
    taken = tuple(one for one in inputs if one.order >= start)
    drops = is_dead and settings.thinking
    thinking = _old_thinking(view, KEEP_THINKING_TURNS, vetoes) if drops else []
    lighter = sum(one.weight for one in taken) + sum(map(_thinking_weight, thinking))
    return Beside(inputs=taken, thinking=tuple(thinking), tokens=round(lighter * now.scale))


def _plan_alone(beside: Beside, now: Snapshot, standing: CacheStanding) -> ClearPlan | None:
    if not standing.can_move or beside.tokens < max(1, now.scale_tokens(IDLE_LEAST_TOKENS)):
        return None
    saved = now.write_usd(beside.tokens)
    money = f"; the next call costs {exact_dollars(saved)} less" if saved > 0 else ""
    why = f"cleared {beside.described}, for free, as {now.cold}{money}"
    return ClearPlan(way="idle", batch=Batch(), why=why, cost_usd=-saved)


@dataclass(slots=True)
class ClearingBalance:
    """What a session has cost, and what its clearings have saved so far."""

    billed_usd: float = 0.0
    saved_usd: float = 0.0
    """Negative until a rewrite has paid for itself."""
    _saving: dict[int, float] = field(default_factory=dict)
    _cursor: LogCursor = field(default_factory=LogCursor)
    _model: str = ""
    _response: str = ""

    def follow(self, history: Sequence[AnyEntry], model: str) -> None:
        if self._cursor.is_past(history):
            self.__init__()  # type: ignore[misc]
        self._model = model
        for entry in self._cursor.advance(history):
            self._count(entry)

    def stake_usd(self, share: float) -> float:
        """Return the largest acceptable cost of a cache rewrite.

        Even if the session ended right after it, clearing would have cost at most `share` extra.
        """
        return share * self.billed_usd + self.saved_usd

    def _count(self, entry: AnyEntry) -> None:
        match entry:
            case Replied(response_id=response, usage=usage) if usage is not None:
                if response and response == self._response:
                    return
                self._response = response
                spent = price_call(entry.model or self._model, usage, day_of(entry.at))
                self.billed_usd += spent.usd
                self.saved_usd += sum(self._saving.values())
            case Cleared():
                self.saved_usd -= entry.cost_usd
                self._saving[entry.n] = entry.saves_usd
            case Undone(target=target):
                self._saving.pop(target, None)
            case Compacted():
                self._saving.clear()


USD_DIGITS = 6
STALE_SHARE = 0.5
"""If cache edits delete less than this share of the expected tokens, the provider ignores them."""
SURELY_LONGER = 4 * LONGEST_WEIGHT
"""Longer than any placeholder, so a heavier result needs no comparison with its placeholder."""
ASK_AGAIN_SHARE = 1 / 16
"""Growth before a refused batch is priced again: pricing is slow, and the gain is flat by then."""


class Clearing:
    def __init__(
        self,
        *,
        describe: Describe = description_of,
        forget: Callable[[str], None] = lambda _: None,
        tell: Callable[[str], None] = lambda _: None,
        is_main: bool = True,
    ) -> None:
        """`forget` gets each path the model no longer sees. Only the main agent edits the cache."""
        self._describe = describe
        self._forget = forget
        self._tell = tell
        self._is_main = is_main
        self._candidates: Candidates | None = None
        self._stats, self._balance = CallStats(), ClearingBalance()
        self._lines = PlaceholderLines()
        self._served = 0
        self._refused = 0.0
        """The batch weight at which clearing was last found not to pay."""

    async def __call__(self, engine: Engine) -> None:
        settings = engine.settings.clear
        self._stats.follow(engine.view.history, seconds_of(engine.frame.lifetime))
        # Even if clearing is off here: the provider clears as the frame says, and the view follows.
        self._record_served(engine)
        if not settings.on or (not engine.view.edits and is_at_ease(engine, self._stats)):
            return
        candidates = self.look(engine)
        self._lines.make_ready(candidates.heavy.results, engine.view.history)
        now = take_snapshot(engine, candidates, self._stats, stake_usd=self._stake_usd(engine))
        if now.full.is_blocked and engine.view.in_force.vetoes:
            # An undo is a veto only as long as something can be sent without breaking it.
            candidates.follow(engine.view, is_forced=True)
        standing = self._standing(engine, candidates, now)
        if standing.is_stale and not self._stats.has_deleted and not self._stats.edits_failed:
            # Recorded so that this provider is not asked again, in a resumed session either.
            engine.record(Failed(what=EDITS_FAILED, error="the provider did not act on them"))
        plan = plan_clearing(candidates, now, standing, settings)
        beside = _plan_beside(engine.view, plan, now, settings, self._shortener(engine))
        plan = plan or _plan_alone(beside, now, standing)
        if plan is not None:
            self._clear(engine, plan, beside, now)
        elif standing.asks_price and standing.can_move:
            self._refused = candidates.heavy.weight

    def look(self, engine: Engine) -> Candidates:
        settings = engine.settings.clear
        if self._candidates is None:
            self._candidates = Candidates(
                build_describe(settings.also, self._describe),
                smallest=max(settings.smallest_tokens, LONGEST_WEIGHT),
                is_kept=partial(_is_memory, memory=str(engine.log.path.parent / "memory")),
            )
        tool = HISTORY if any(tool.get("name") == HISTORY for tool in engine.frame.tools) else ""
        if self._lines.history_tool != tool:
            self._lines = PlaceholderLines(tool)
        self._candidates.follow(engine.view)
        return self._candidates

    def _shortener(self, engine: Engine) -> InputShortener:
        settings = engine.settings.clear
        return InputShortener(
            build_describe(settings.also, self._describe),
            max(settings.smallest_tokens, LONGEST_WEIGHT),
            self._lines.history_tool,
            partial(_is_memory, memory=str(engine.log.path.parent / "memory")),
        )

    def _standing(self, engine: Engine, candidates: Candidates, now: Snapshot) -> CacheStanding:
        is_able = has_edits(engine.frame, engine.model) and self._is_main
        grown = abs(candidates.heavy.weight - self._refused)
        return CacheStanding(
            can_move=may_move(engine),
            has_edits=is_able and not self._stats.edits_failed,
            is_stale=not now.cold and is_stale(engine.view, candidates.edited, now),
            is_served=OPTION in engine.frame.options
            and capabilities(engine.model).context_management,
            asks_price=bool(now.cold) or grown >= ASK_AGAIN_SHARE * self._refused,
        )

    def _stake_usd(self, engine: Engine) -> float:
        share = engine.settings.clear.stake_share
        if share >= 1:
            return math.inf
        self._balance.follow(engine.view.history, engine.model)
        return self._balance.stake_usd(share)

    def _clear(self, engine: Engine, plan: ClearPlan, beside: Beside, now: Snapshot) -> None:
        freed = now.freed_tokens(plan.batch) + beside.tokens
        entry = structs.replace(
            beside.add_to(make_cleared(engine, plan, self._lines)),
            cost_usd=round(plan.cost_usd, USD_DIGITS),
            saves_usd=round(now.read_usd(max(0, freed)), USD_DIGITS),
        )
        if not entry.ids and not beside:
            return
        engine.record(entry)
        self._refused = 0.0
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
        found = _keep_shortened(found, self._lines, engine.view.history)
        if found:
            now = take_snapshot(engine, candidates, self._stats)
            plan = plan_served(found, self._stats.served_tokens, now)
            self._clear(engine, plan, Beside(), now)


def make_cleared(engine: Engine, plan: ClearPlan, lines: PlaceholderLines) -> Cleared:
    """Make the entry for a plan, omitting results whose placeholder would not be shorter."""
    taken = _keep_shortened(plan.batch, lines, engine.view.history)
    made = [lines.line(result, engine.view.history) for result in taken.results]
    return Cleared(
        ids=tuple(result.id for result in taken.results),
        texts=tuple(text for text, _ in made),
        measures=tuple(measure for _, measure in made),
        how=plan.how,
        inferred=plan.how == "server",
        # An edit is sent again with every call, at the place where it was first sent.
        place=engine.view.items[-1].order if plan.how == "edited" else 0,
        drops_thinking=plan.how == "rewritten" and drops_thinking(engine),
        why=plan.why,
    )


def _keep_shortened(batch: Batch, lines: PlaceholderLines, history: Sequence[AnyEntry]) -> Batch:
    longer = {
        result.id
        for result in batch.results
        if result.weight <= SURELY_LONGER
        and weight(lines.line(result, history)[1]) >= result.weight
    }
    return batch.without(longer) if longer else batch


def is_stale(view: View, edited: Batch, now: Snapshot) -> bool:
    """True if the provider was asked to omit results but still counted them."""
    if not edited or not view.edits or view.reported is None or view.reported.n < view.edits[-1].n:
        return False
    return deleted_tokens(view.reported.usage) < STALE_SHARE * edited.weight * now.scale


def _is_memory(path: str, *, memory: str) -> bool:
    given = os.path.expanduser(path)  # noqa: PTH111 - leaves `~nobody` alone, where Path raises
    return given.endswith("MEMORY.md") or given.startswith((f"{memory}/", f"{memory}\\"))
