"""What stays before the model when a segment leaves the view: rounds, and the files they show. Pure.

A file whose text stands in a round that is kept need not be shown again. A result that was
cleared, spilled or only points at an earlier one shows nothing.
"""

from collections.abc import Iterable, Iterator

from holdfast.messages import text_of
from holdfast.stages.compact.segment import Segment
from holdfast.tools.describe import description_of
from holdfast.tools.read import UNCHANGED
from holdfast.view import View
from holdfast.view.items import Result, Round


def kept_rounds(view: View, segment: Segment) -> list[Round]:
    """List the rounds that stay in the view when a segment leaves it."""
    gone = {item.order for item in segment.items if not view.is_pinned(item)}
    return [item for item in view.items if isinstance(item, Round) and item.order not in gone]


def shown_paths(rounds: Iterable[Round]) -> Iterator[str]:
    """Yield the files whose text stands in some rounds: read there, or written whole."""
    for item in rounds:
        for use in item.tool_uses():
            described, result = description_of(use.name), item.result_of(use.id)
            if result is None or result.is_error:
                continue
            is_read = described.kind == "read" and is_whole(result)
            if is_read or (described.kind == "write" and "content" in use.input):
                yield from described.paths_in(use.input)


def is_whole(result: Result) -> bool:
    """Say whether a result still shows what came, and that was more than a pointer."""
    return result.stand_in("seen") is None and UNCHANGED not in text_of(result.content)
