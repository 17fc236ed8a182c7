"""The fullness of the window, its fixed content, and the cheapest compaction threshold.

`cheapest_line` finds the cheapest compaction threshold. On a large window, this is far below the
default threshold.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, TypeAlias

from msgspec import Struct

from longhold.core.log.entries import Framed
from longhold.core.messages.measure import Measure, measure_json, measure_text
from longhold.core.messages.text import cut, one_line
from longhold.core.models.prices import TOKENS_PER_PRICE, prices
from longhold.core.policy.cost_model import CostModel, Forecast, expect, need_usd, step_at
from longhold.core.request.lifetime import Lifetime
from longhold.core.settings import CostSettings, Settings, WindowSettings
from longhold.core.view import View
from longhold.core.view.gauge import ViewSize
from longhold.core.view.items import Item, Result, Round
from longhold.core.view.tokens import FACTOR_MAX, default_weights, weigh
from longhold.core.view.window import COST, Window, scale_tokens, window_for

SUMMARY_TOKENS = 5_000
"""Size of a typical summary. The window reserves 20,000 tokens for a summary."""
FRAME_TOKENS = 15_000
"""Default size of a coding agent's system prompt and tools. No edit removes them."""
FRAME_STEP_TOKENS = 5_000
"""A frame's size is rounded up to this, so that one more tool does not move the threshold."""
RESTORED_TOKENS = 30_000
"""Size of restored files, plan and skills. With frame and summary, the median is 50,000."""
COMPACTED_TOKENS = FRAME_TOKENS + SUMMARY_TOKENS + RESTORED_TOKENS
NEEDS = CostSettings()
COMPACTION_NEEDS = 0.9
"""Mean number of results requested again per compaction: 27 after 29 compactions in replays."""
COMPACTION_NEED_TOKENS = 3_500
WORK_TOKENS = 30_000
"""Space for the current work after a compaction. Of 417 turns, 95 % needed less."""
WORK_SHARE = 0.25
"""The same space, as a share of a threshold that the user set."""
KEPT_STEP_TOKENS = 10_000
"""The size after a compaction is rounded up to this, to keep the threshold stable."""
NEAR_SHARE = 0.5
"""From this share of the threshold on, the content that a compaction would keep is measured."""
WAIT_SHARE = 0.25
"""The share of the threshold by which thinking, other work or an undo delays a compaction."""


def cheapest_line(
    model: str,
    window: Window,
    *,
    forecast: Forecast | None = None,
    lifetime: Lifetime = "5m",
    compacted_tokens: int = COMPACTED_TOKENS,
    frame_tokens: int = FRAME_TOKENS,
    cost: CostSettings = NEEDS,
) -> int:
    """Find the compaction threshold with the lowest cost per call, at most `window.auto_tokens`.

    A low threshold costs more summaries and loses more content. A high threshold makes every call
    longer. A length at which prices rise is a natural threshold.
    """
    listed = prices(model)
    forecast = forecast or Forecast()
    if listed is None or forecast.growth_tokens <= 0:
        return window.auto_tokens
    costs = CostModel(listed=listed, forecast=forecast, lifetime=lifetime)
    rewritten = costs.call_usd(compacted_tokens, min(frame_tokens, compacted_tokens))
    rewritten += _lost_usd(costs, compacted_tokens, cost)
    best_usd, best, paid, calls = float("inf"), window.auto_tokens, 0.0, 0
    prompt = float(compacted_tokens + COMPACTION_NEED_TOKENS)
    while prompt + forecast.growth_tokens <= window.auto_tokens:
        paid += _mean_usd(costs, prompt)
        prompt += forecast.growth_tokens
        calls += 1
        flat = step_at(listed, prompt).prices
        made = (prompt * flat.read + SUMMARY_TOKENS * flat.output) / TOKENS_PER_PRICE
        per_call = (paid + made + rewritten) / calls
        if per_call < best_usd:
            best_usd, best = per_call, int(prompt)
    return best


def _lost_usd(costs: CostModel, compacted_tokens: int, cost: CostSettings) -> float:
    """Return the expected cost of the content that a compaction loses."""
    tokens = COMPACTION_NEED_TOKENS / max(1.0, COMPACTION_NEEDS)
    return COMPACTION_NEEDS * cost.need_weight * need_usd(costs, compacted_tokens, tokens)


def _find_cold_line(
    model: str, lifetime: Lifetime, compacted_tokens: int, cost: CostSettings
) -> int:
    """Find the size from which compacting pays after the cache expires, or 0 without a price.

    After expiry the whole prompt is written again. A digest saves that write for the content it
    removes, and the reads until the next pause.
    """
    listed = prices(model)
    if listed is None:
        return 0
    costs = CostModel(listed=listed, forecast=expect(calls=0, lifetime=lifetime), lifetime=lifetime)
    flat = step_at(listed, compacted_tokens)
    saved = flat.write(lifetime) + costs.forecast.warm_calls * flat.prices.read
    lost = _lost_usd(costs, compacted_tokens, cost) * TOKENS_PER_PRICE
    return compacted_tokens + math.ceil(lost / saved) if saved else 0


def window_at_cost(
    model: str, settings: Settings, frame: Framed | None = None, kept_tokens: float = 0
) -> Window:
    """Return a model's window, with the cheapest compaction threshold if `auto_line` is `cost`.

    The threshold depends on the frame and on `kept_tokens` of messages, which compactions keep.
    """
    frame = frame or Framed()
    frame_tokens = _frame_tokens(model, frame.measure)
    own = window_for(model, settings.window)
    step = max(1, scale_tokens(KEPT_STEP_TOKENS, own.limit_tokens))
    kept = math.ceil(kept_tokens / step) * step
    return _find_window(model, settings.window, settings.cost, frame.lifetime, frame_tokens, kept)


@lru_cache(maxsize=16)
def _frame_tokens(model: str, measure: Measure) -> int:
    steps = math.ceil(weigh(measure, default_weights(model)) / FRAME_STEP_TOKENS)
    return steps * FRAME_STEP_TOKENS or FRAME_TOKENS


@lru_cache(maxsize=64)
def _find_window(
    model: str,
    settings: WindowSettings,
    cost: CostSettings,
    lifetime: Lifetime,
    frame_tokens: int,
    kept_tokens: int,
) -> Window:
    """Find the window. Its threshold always leaves space above the kept content."""
    window = window_for(model, settings)
    if settings.auto_line != COST:
        least = kept_tokens + int(WORK_SHARE * window.auto_tokens)
        if least <= window.auto_tokens:
            return window
        return window_for(model, replace(settings, auto_line=str(least)))
    compacted = frame_tokens + SUMMARY_TOKENS + max(RESTORED_TOKENS, kept_tokens)
    line = cheapest_line(
        model,
        window,
        forecast=expect(calls=0, lifetime=lifetime),
        lifetime=lifetime,
        compacted_tokens=compacted,
        frame_tokens=frame_tokens,
        cost=cost,
    )
    line = max(line, compacted + WORK_TOKENS)
    cold = _find_cold_line(model, lifetime, compacted, cost)
    return replace(window_for(model, replace(settings, auto_line=str(line))), cold_tokens=cold)


def _mean_usd(costs: CostModel, prompt_tokens: float) -> float:
    forecast = costs.forecast
    cold = costs.call_usd(prompt_tokens + forecast.growth_tokens, 0.0)
    return (1 - forecast.cold_share) * costs.next_usd(prompt_tokens) + forecast.cold_share * cold


class Fullness(Struct, frozen=True, kw_only=True):
    used_tokens: int
    margin: Callable[[], int]
    window: Window
    aim_tokens: int = 0
    """The threshold minus unanswered content. Target sizes are shares of this."""

    @classmethod
    def of(cls, view: View, size: ViewSize, settings: Settings) -> "Fullness":
        window, used = window_at_cost(view.model, settings, view.frame), size.tokens
        aim = window.base_tokens
        if NEAR_SHARE * window.auto_tokens <= used and window.auto_tokens < window.full_tokens:
            weights = default_weights(view.model)
            scale = used / max(1.0, weigh(view.total, weights))
            words, waiting = (scale * weigh(one, weights) for one in view.measure_kept())
            steady = window_at_cost(view.model, settings, view.frame, words)
            window = window_at_cost(view.model, settings, view.frame, words + waiting)
            aim = steady.base_tokens
        return cls(
            used_tokens=used, margin=lambda: size.margin_tokens, window=window, aim_tokens=aim
        )

    @property
    def wait_tokens(self) -> int:
        """The size up to which something may delay a compaction that is due."""
        window = self.window
        return min(window.full_tokens, int((1 + WAIT_SHARE) * window.auto_tokens))

    @property
    def margin_tokens(self) -> int:
        """Uncertainty of `used_tokens`, which holds in 19 of 20 cases. It is slow to compute."""
        return self.margin()

    @property
    def is_blocked(self) -> bool:
        """Whether space must be freed before anything may be sent."""
        used, most = self.used_tokens, self.window.blocking_tokens
        # The rough bound is checked first, because computing the margin is slow.
        return used * FACTOR_MAX >= most and used + self.margin_tokens >= most


LISTED = 6
ABOUT_CHARS = 80
ASK_LESS = "ask for less at a time"
TOOL_ADVICE = "give the agent fewer tools (`tools=`)"
MCP = "mcp__"

WeightKind: TypeAlias = Literal[
    "tools", "system", "instructions", "pinned", "restored", "waiting", "message", "result"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """A part of the prompt."""

    kind: WeightKind
    name: str
    tokens: int
    advice: str
    is_fixed: bool = True
    """Whether no compaction removes this part."""
    id: str = ""
    """The id of the tool call whose result this part is, if the result is shown."""

    def __str__(self) -> str:
        where = " in every request" if self.kind in ("tools", "system", "instructions") else ""
        return f"{self.name}{where} ({self.tokens:,} tokens)"


def weigh_parts(view: View, weigh: Callable[[Measure], float]) -> list[Weight]:
    """List the parts that fill the window, heaviest first."""

    def make(part: _Part, *, is_fixed: bool = True) -> Weight:
        kind, name, measure, advice, id = part
        size = round(weigh(measure))
        return Weight(kind=kind, name=name, tokens=size, advice=advice, is_fixed=is_fixed, id=id)

    found, end = list(map(make, _list_frame(view.frame))), view.count_compactable()
    for i, item in enumerate(view.items):
        is_pinned, is_read = view.is_pinned(item), i < end
        parts = _list_item(view, item, is_pinned=is_pinned, is_read=is_read)
        found += [make(part, is_fixed=is_pinned or not is_read) for part in parts]
    return sorted((part for part in found if part.tokens), key=lambda part: -part.tokens)


def floor(view: View, weigh: Callable[[Measure], float]) -> list[Weight]:
    """List the parts that no compaction removes, heaviest first."""
    return [part for part in weigh_parts(view, weigh) if part.is_fixed]


_Part: TypeAlias = tuple[WeightKind, str, Measure, str, str]


def _list_frame(frame: Framed | None) -> Iterator[_Part]:
    if frame is None:
        return
    for section in frame.sections:
        named, size = f"system section {section.name}", measure_text(section.text)
        yield "system", named, size, "shorten the prompt", ""
    for tool in frame.tools:
        name = str(tool.get("name"))
        server = name.removeprefix(MCP).partition("__")[0]
        advice = f"take the MCP server {server} out" if name.startswith(MCP) else TOOL_ADVICE
        yield "tools", f"tool {name}", measure_json(tool), advice, ""
    if frame.instructions:
        advice = "shorten AGENTS.md or CLAUDE.md, or the files they import"
        yield "instructions", "instructions", measure_text(frame.instructions), advice, ""


def _list_item(view: View, item: Item, *, is_pinned: bool, is_read: bool) -> Iterator[_Part]:
    """List the parts of an item. A summary is omitted because it can be shortened."""
    size = item.measure
    if is_pinned:
        yield "pinned", f"pinned message #{item.id}", size, "unpin it", ""
    elif isinstance(item, Round) and is_read:
        for result in item.results:
            id = result.tool_use_id if result.cleared is None else ""
            named = f"the result of {_name_call(view, result)}"
            yield "result", named, result.seen_measure, ASK_LESS, id
    elif isinstance(item, Round):
        named = f"the calls of #{item.id}, whose results are not read yet"
        yield "waiting", named, size, ASK_LESS, ""
    elif item.kind == "restored":
        named, advice = "content restored after each compaction", "lower compact.restore_tokens"
        yield "restored", named, size, advice, ""
    elif item.kind != "summary":
        kind: WeightKind = "message" if is_read else "waiting"
        named = f"message #{item.id}{'' if is_read else ', not answered yet'}"
        yield kind, named, size, "shorten the message", ""


def _name_call(view: View, result: Result) -> str:
    use = view.use_of(result.tool_use_id)
    if use is None:
        return result.tool_use_id
    about = next((value for value in use.input.values() if isinstance(value, str) and value), "")
    return f"{use.name} {cut(one_line(about), ABOUT_CHARS)}".strip()


def explain_floor(weights: list[Weight], line_tokens: int, least_tokens: int = 0) -> str:
    """Explain why compacting does not help. `least_tokens` remain with the shortest summary."""
    total = sum(weight.tokens for weight in weights)
    if total >= line_tokens or not least_tokens:
        why = f"compacting cannot help: every request contains about {total:,} tokens and the window's limit is {line_tokens:,}"
    else:
        why = (
            f"compacting does not help enough: with the shortest summary about {least_tokens:,} "
            f"tokens are left, {total:,} of them in every request, and the window's limit is {line_tokens:,}"
        )
    return f"{why}. {itemise(weights)}. Or use a model with a larger window"


def itemise(weights: list[Weight]) -> str:
    kinds: Counter[str] = Counter()
    for weight in weights:
        kinds[weight.kind] += weight.tokens
    grouped = ", ".join(f"{kind} {tokens:,}" for kind, tokens in kinds.most_common())
    heavy = "; ".join(f"{w.name} {w.tokens:,} ({w.advice})" for w in weights[:LISTED])
    rest = weights[LISTED:]
    more = f"; and {len(rest)} more: {sum(w.tokens for w in rest):,}" if rest else ""
    return f"By kind: {grouped}. Heaviest: {heavy}{more}"
