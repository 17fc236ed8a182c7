"""The floor: what every request holds, however much is compacted, and what of it weighs how much.

When even that is over the line no compaction helps, and saying so at once, with the heaviest
things by name and what to do about each, is worth more than trying.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from holdfast.items import Item, Spoken
from holdfast.measure import Measure, measure_json, measure_text
from holdfast.view import View

LISTED = 6
"""The heaviest few are what can be acted on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """One thing that cannot be compacted away."""

    name: str
    tokens: int
    advice: str


def floor(view: View, weigh: Callable[[Measure], float]) -> list[Weight]:
    """List what stays in every request, heaviest first."""
    found = [
        Weight(name=name, tokens=round(weigh(measure)), advice=advice)
        for name, measure, advice in _parts(view)
    ]
    return sorted((part for part in found if part.tokens), key=lambda part: -part.tokens)


def _parts(view: View) -> Iterator[tuple[str, Measure, str]]:
    frame = view.frame
    if frame is not None:
        for section in frame.sections:
            yield f"system section {section.name}", measure_text(section.text), "shorten the prompt"
        for tool in frame.tools:
            advice = "take the tool or its server out"
            yield f"tool {tool.get('name')}", measure_json(tool), advice
        if frame.instructions:
            advice = "shorten AGENTS.md or CLAUDE.md, or what they import"
            yield "instructions", measure_text(frame.instructions), advice
    for item in view.items:
        if view.is_pinned(item):
            yield f"pinned message #{item.id}", item.measure, "unpin it"
    for item in view.items[view.compactable() :]:
        if not view.is_pinned(item):
            yield from _waiting(item)


def _waiting(item: Item) -> Iterator[tuple[str, Measure, str]]:
    """Name what stands behind everything that can be compacted; a summary can be told shorter."""
    match item:
        case Spoken(kind="summary"):
            return
        case Spoken(kind="restored"):
            yield "what was restored", item.measure, "lower compact.restore_tokens"
        case _:
            advice = "say it in fewer words"
            yield f"message #{item.id}, not answered yet", item.measure, advice


def told(weights: list[Weight], line_tokens: int) -> str:
    """Say why there is no room, and what to do."""
    total = sum(weight.tokens for weight in weights)
    heavy = "; ".join(f"{w.name} {w.tokens:,} ({w.advice})" for w in weights[:LISTED])
    return (
        f"compacting cannot help: what every request holds is about {total:,} tokens and the line "
        f"is at {line_tokens:,}. Heaviest: {heavy}. Or use a model with a larger window"
    )
