"""The floor: the part of every request that no compaction removes, itemised by weight."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from longhold.core.log.entries import Framed
from longhold.core.messages.measure import Measure, measure_json, measure_text
from longhold.core.view import View
from longhold.core.view.items import Item, Spoken

LISTED = 6
TOOL_ADVICE = "an agent that is given fewer tools (`tools=`) goes without it"
MCP = "mcp__"

FloorKind: TypeAlias = Literal["tools", "system", "instructions", "pinned", "restored", "waiting"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    kind: FloorKind
    name: str
    tokens: int
    advice: str


def floor(view: View, weigh: Callable[[Measure], float]) -> list[Weight]:
    found = (
        Weight(kind=kind, name=name, tokens=round(weigh(measure)), advice=advice)
        for kind, name, measure, advice in _parts(view)
    )
    return sorted((part for part in found if part.tokens), key=lambda part: -part.tokens)


_Part: TypeAlias = tuple[FloorKind, str, Measure, str]


def _parts(view: View) -> Iterator[_Part]:
    yield from _list_frame_parts(view.frame)
    for item in view.items:
        if view.is_pinned(item):
            yield "pinned", f"pinned message #{item.id}", item.measure, "unpin it"
    for item in view.items[view.count_compactable() :]:
        if not view.is_pinned(item):
            yield from _list_waiting(item)


def _list_frame_parts(frame: Framed | None) -> Iterator[_Part]:
    if frame is None:
        return
    for section in frame.sections:
        named, size = f"system section {section.name}", measure_text(section.text)
        yield "system", named, size, "shorten the prompt"
    for tool in frame.tools:
        name = str(tool.get("name"))
        yield "tools", f"tool {name}", measure_json(tool), _tool_advice(name)
    if frame.instructions:
        advice = "shorten AGENTS.md or CLAUDE.md, or what they import"
        yield "instructions", "instructions", measure_text(frame.instructions), advice


def _tool_advice(name: str) -> str:
    if not name.startswith(MCP):
        return TOOL_ADVICE
    server = name.removeprefix(MCP).partition("__")[0]
    return f"take the MCP server {server} out"


def _list_waiting(item: Item) -> Iterator[_Part]:
    """List items after everything compactable. A summary is omitted because it can be shortened."""
    match item:
        case Spoken(kind="summary"):
            return
        case Spoken(kind="restored"):
            advice = "lower compact.restore_tokens"
            yield "restored", "what was restored", item.measure, advice
        case _:
            named = f"message #{item.id}, not answered yet"
            yield "waiting", named, item.measure, "say it in fewer words"


def explain_floor(weights: list[Weight], line_tokens: int, least_tokens: int = 0) -> str:
    """Explain why compacting does not help. The shortest summary leaves `least_tokens`."""
    total = sum(weight.tokens for weight in weights)
    if total >= line_tokens or not least_tokens:
        why = f"compacting cannot help: what every request holds is about {total:,} tokens and the line is at {line_tokens:,}"
    else:
        why = (
            f"compacting does not help enough: with the shortest summary about {least_tokens:,} "
            f"tokens are left, {total:,} of them in every request, and the line is at {line_tokens:,}"
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
