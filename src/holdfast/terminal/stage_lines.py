"""What the layers just did to the view, a line each; `/explain` has more."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.log.cursor import LogCursor
from holdfast.log.entries import AnyEntry, CacheBroke, Collapsed, Snipped, Spilled
from holdfast.reports.explain import describe_entry, kind_of
from holdfast.terminal.text import one_line

LINE_CHARS = 160
_SHOWN = (Spilled, Collapsed, Snipped)
"""Clearing and compacting say themselves what they did."""


@dataclass(slots=True)
class StageLines:
    """Follows a log from where it is when first looked at."""

    _cursor: LogCursor = field(default_factory=LogCursor)

    def follow(self, history: Sequence[AnyEntry]) -> list[str]:
        return [
            one_line(f"◇ {kind_of(entry)}: {describe_entry(entry)}", LINE_CHARS)
            for entry in self._cursor.advance(history)
            if isinstance(entry, _SHOWN) or (isinstance(entry, CacheBroke) and not entry.expected)
        ]
