"""Long inputs of old calls: what was written or edited lies on disk, and whole in the log.

They leave together with results that are cleared anyway, or while the cache is dead; either way the
text behind them is written again, so it costs nothing more.
"""

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from holdfast.log.entries import ClearedInput
from holdfast.messages import Json, JsonObject, ToolUse
from holdfast.messages.cut import counted
from holdfast.messages.measure import measure_text
from holdfast.stages.clear.candidates import weight
from holdfast.tools.call_tool import called
from holdfast.tools.describe import Describe, Described
from holdfast.view import View
from holdfast.view.items import Round


class OldInput(NamedTuple):
    order: int
    short: ClearedInput
    weight: float
    """What clearing it takes away."""


class InputShortener(NamedTuple):
    """Decides which inputs are long, and what stands in for them."""

    describe: Describe
    smallest: float
    """Lighter texts stay."""
    history_tool: str = ""
    is_kept: Callable[[str], bool] = lambda path: False

    def old_inputs(self, view: View, keep: int, vetoes: AbstractSet[int | str]) -> list[OldInput]:
        """Return the long inputs of all but the newest calls, oldest first."""
        answers = [item for item in view.items if isinstance(item, Round)]
        calls = [(item, use) for item in answers for use in item.tool_uses()]
        unread = len(answers[-1].tool_uses()) if answers else 0
        found = [
            self._shortened(item, use)
            for item, use in calls[: max(0, len(calls) - max(keep, unread))]
            if use.id not in vetoes and use.id not in item.inputs and not view.is_pinned(item)
        ]
        return [one for one in found if one is not None]

    def _shortened(self, item: Round, use: ToolUse) -> OldInput | None:
        meant = called(use)
        tool = self.describe(meant.name)
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
        """Put a line in place of each long text, however deep it stands."""
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
        return f"[{counted(len(value), 'character')}, cleared to make room.{again}]"


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)
