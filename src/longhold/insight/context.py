"""The contents of the context window by category, for `longhold context`.

The size of each part is estimated and scaled to the provider's count. If the log lacks the system
prompt and tools, their size is inferred from the first prompt, or from the first prompt after a
compaction.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeAlias

from longhold.core.log.entries import AnyEntry, Compacted, Configured, Ran, Replied, Said
from longhold.core.messages import Document, Image, Text, ToolUse, is_thought
from longhold.core.messages.measure import (
    NOTHING,
    Measure,
    measure_block,
    measure_json,
    measure_text,
)
from longhold.core.policy.threshold import window_at_cost
from longhold.core.settings import Settings
from longhold.core.view import View
from longhold.core.view.items import Item, Round, Spoken
from longhold.core.view.tokens import Gauge
from longhold.core.view.window import COST, Level, Window, infer_window
from longhold.insight.session_files import OURS

UNSEEN_FRAME = "system prompt and tools, estimated from the first calls"
"""Tokens that the provider counted and that the log does not contain."""
UNSEEN = "not in the transcript, according to the last usage"
"""Tokens in later usage that estimation errors do not explain."""
ROUNDING_TOKENS = 50  # smaller remainders are rounding errors
MOST_SCALE = 1.5  # the largest factor by which estimates are scaled to the provider's count

_SPOKEN = {
    "said": "user messages",
    "summary": "summaries",
    "line": "collapsed spans",
    "restored": "restored context",
    "late": "late results",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPart:
    name: str
    tokens: int
    count: int
    parts: tuple["ContextPart", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    model: str
    title: str
    used_tokens: int
    margin_tokens: int
    """The true size is below used plus margin in 95 % of cases."""
    is_reported: bool
    """Whether the size is based on a provider's usage of the current view."""
    percent_left: int
    level: Level
    window: Window
    parts: tuple[ContextPart, ...]


AGENT_LINES: dict[str, Callable[[int], int]] = {
    "claude-code": lambda limit: limit - 33_000,
    "codex": lambda limit: limit * 9 // 10,
    "pi": lambda limit: limit - 16_384,
}
SHOWN_BUFFER_TOKENS = 20_000
"""How far before an agent's own threshold its context is shown as nearly full."""


def session_window(format: str, view: View, settings: Settings, model: str = "") -> Window:
    """Return a session's window with the threshold of the agent that compacts it.

    Without `model`, the window is inferred from the history, or else taken from the recorded model.
    For a gateway, the threshold depends on the window's size, because its clients compact there.
    """
    own = settings.window
    limit = own.limit_tokens or (0 if model else infer_window(view.history))
    is_gateway = any(isinstance(entry, Configured) and entry.client for entry in view.history)
    line = "" if own.auto_line == COST and is_gateway else own.auto_line
    chosen = replace(settings, window=replace(own, limit_tokens=limit, auto_line=line))
    window = window_at_cost(model or view.model, chosen, view.frame)
    if format == OURS:
        return window
    limit = window.limit_tokens
    at = _find_line(format, view.history, limit)
    near = max(1, (at or limit) - SHOWN_BUFFER_TOKENS)
    return replace(
        window,
        effective_tokens=limit,
        auto_tokens=at or limit,
        warning_tokens=near,
        error_tokens=near,
        blocking_tokens=limit,
        full_tokens=limit,
        auto=bool(at),
    )


def _find_line(format: str, history: Sequence[AnyEntry], limit: int) -> int:
    """Return another agent's compaction threshold, or 0 if it is unknown. It is unknown if the
    agent continued past the usual threshold.
    """
    seen = largest = 0
    for entry in history:
        if isinstance(entry, Compacted) and entry.by == "import" and entry.trigger == "auto":
            seen, largest = entry.before_tokens or seen, 0
        elif isinstance(entry, Replied) and entry.usage is not None:
            largest = max(largest, entry.usage.prompt_tokens)
    known = AGENT_LINES[format](limit) if format in AGENT_LINES else 0
    return next((line for line in (seen, known) if max(0, largest - 1) < line <= limit), 0)


def describe(view: View, gauge: Gauge, window: Window) -> Context:
    used, margin = gauge.size_tokens(view.total), gauge.margin_tokens(view.total)
    parts = _parts(view, gauge)
    if gauge.is_reported:
        parts = _fit(parts, used, min(used, _unseen_frame(view, gauge)))
    return Context(
        model=view.model,
        title=view.title,
        used_tokens=used,
        margin_tokens=margin,
        is_reported=gauge.is_reported and _is_counted(view),
        percent_left=window.percent_left(used),
        level=window.level(used + margin),
        window=window,
        parts=tuple(parts),
    )


def _is_counted(view: View) -> bool:
    for entry in reversed(view.history):
        if isinstance(entry, Replied) and entry.usage is not None:
            return True
        if isinstance(entry, Compacted) and entry.n not in view.in_force.dead:
            return False
    return False


def _unseen_frame(view: View, gauge: Gauge) -> int:
    """Return by how many tokens prompts exceed their logged content. The result is the minimum over
    the first calls, because a log may begin in mid-conversation.
    """
    if view.frame is not None and view.frame.sections:
        return 0
    found: list[int] = []
    before, is_first = NOTHING, True
    for entry in view.history:
        if isinstance(entry, Replied) and entry.usage is not None and is_first:
            found.append(entry.usage.prompt_tokens - round(gauge.calibration.weigh(before)))
            is_first = False
        if isinstance(entry, Compacted):
            before, is_first = NOTHING, True
        if isinstance(entry, Said | Replied | Ran | Compacted):
            before = before + entry.measure
    return max(0, min(found, default=0))


def _fit(parts: list[ContextPart], used: int, frame: int) -> list[ContextPart]:
    estimated = sum(part.tokens for part in parts)
    scale = min(MOST_SCALE, (used - frame) / estimated) if estimated else 1.0
    fitted = [_scale(part, scale) for part in parts]
    unseen = used - frame - sum(part.tokens for part in fitted)
    if fitted and unseen <= ROUNDING_TOKENS:
        largest = fitted[0]
        fitted[0] = replace(largest, tokens=max(0, largest.tokens + unseen))
        unseen = 0
    rows = ((UNSEEN_FRAME, frame), (UNSEEN, unseen))
    return [*(ContextPart(name=name, tokens=n, count=1) for name, n in rows if n), *fitted]


def _scale(part: ContextPart, scale: float) -> ContextPart:
    inner = tuple(_scale(each, scale) for each in part.parts)
    return replace(part, tokens=round(part.tokens * scale), parts=inner)


_Measures: TypeAlias = defaultdict[str, defaultdict[str, list[Measure]]]


def _part(category: str, found: Mapping[str, list[Measure]], gauge: Gauge) -> ContextPart:
    inner = [
        ContextPart(
            name=name,
            tokens=round(gauge.calibration.weigh(sum(measures, NOTHING))),
            count=len(measures),
        )
        for name, measures in found.items()
    ]
    inner.sort(key=lambda part: part.tokens, reverse=True)
    return ContextPart(
        name=category,
        tokens=sum(part.tokens for part in inner),
        count=sum(part.count for part in inner),
        parts=tuple(inner) if inner[0].name else (),
    )


def _parts(view: View, gauge: Gauge) -> list[ContextPart]:
    found: _Measures = defaultdict(lambda: defaultdict(list))
    if view.frame is not None:
        for section in view.frame.sections:
            found["system prompt"][section.name].append(measure_text(section.text))
        for tool in view.frame.tools:
            found["tools"][str(tool.get("name"))].append(measure_json(tool))
        for source in view.frame.sources:
            found["instructions"][source.file].append(source.measure)
        if view.frame.instructions and not view.frame.sources:
            found["instructions"][""].append(measure_text(view.frame.instructions))
    for item in view.items:
        _add_item(found, item)
    parts = [_part(category, named, gauge) for category, named in found.items()]
    return sorted(parts, key=lambda part: part.tokens, reverse=True)


def measure_item(item: Item) -> dict[str, Measure]:
    found: _Measures = defaultdict(lambda: defaultdict(list))
    _add_item(found, item)
    return {
        category: sum(chain.from_iterable(named.values()), NOTHING)
        for category, named in found.items()
    }


def _add_item(found: _Measures, item: Item) -> None:
    if isinstance(item, Spoken):
        _add_spoken(found, item)
    else:
        _add_round(found, item)


def _add_spoken(found: _Measures, item: Spoken) -> None:
    category = "reminders" if item.hidden and item.kind == "said" else _SPOKEN[item.kind]
    for block in item.content:
        is_medium = isinstance(block, Image | Document)
        found["images and documents" if is_medium else category][""].append(measure_block(block))


def _add_round(found: _Measures, item: Round) -> None:
    tools: dict[str, str] = {}
    for block in item.content:
        if isinstance(block, ToolUse):
            tools[block.id] = block.name
            found["tool calls"][block.name].append(measure_block(block))
        elif is_thought(block):
            if not item.hides_thinking("seen"):
                found["thinking"][""].append(measure_block(block))
        else:
            category = "answers" if isinstance(block, Text) else "other blocks"
            found[category][""].append(measure_block(block))
    for result in item.results:
        name = tools.get(result.tool_use_id, "?")
        instead = result.placeholder("seen")
        category = "tool results"
        if instead is not None:
            category = "spilled results" if instead.how == "spilled" else "cleared results"
        found[category][name].append(result.seen_measure)
