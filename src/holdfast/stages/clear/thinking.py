"""Thinking of earlier turns, which can go while the cache is dead."""

from collections.abc import Set as AbstractSet

from holdfast.messages import is_thought
from holdfast.messages.measure import measure_content
from holdfast.models.capabilities import capabilities
from holdfast.stages.clear.candidates import weight
from holdfast.view import View
from holdfast.view.items import Round


def old_thinking(view: View, keep_turns: int, vetoes: AbstractSet[int | str]) -> list[Round]:
    """Return the answers of all but the newest turns that have thinking, oldest first.

    None for models that bind thinking to what was sent, where later thinking would be lost, and for
    those that are not shown the thinking of earlier turns anyway.
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


def thinking_weight(item: Round) -> float:
    return weight(measure_content(block for block in item.content if is_thought(block)))
