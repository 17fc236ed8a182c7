"""Lines for the user. A listener gets each line immediately. Without a listener, lines are kept."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from longhold.core.policy.threshold import Fullness
from longhold.core.turn.engine import Engine


@dataclass(slots=True)
class RoomWarning:
    """Warns once when the context is nearly full, and again only if space was freed meanwhile."""

    tell: Callable[[str], None]
    _is_given: bool = False

    def __call__(self, engine: Engine) -> None:
        full = engine.fullness()
        is_near = full.window.level(full.used_tokens) != "ok"
        if is_near and not self._is_given:
            self.tell(warning(full))
        self._is_given = is_near


def warning(full: Fullness) -> str:
    window = full.window
    if window.auto:
        return (
            f"the context is near the compaction threshold: {full.used_tokens:,} of "
            f"{window.auto_tokens:,} tokens; older history will be summarised (the window has "
            f"{window.limit_tokens:,})"
        )
    return (
        f"the context is nearly full: {full.used_tokens:,} of {window.limit_tokens:,} tokens; "
        f"history is not summarised automatically (window.auto is off), and requests over "
        f"{window.blocking_tokens:,} tokens are not sent"
    )


Listener: TypeAlias = Callable[[str], None]


class Notices:
    def __init__(self, listener: Listener | None = None, kept: Iterable[str] = ()) -> None:
        self._listener = listener
        self._kept = list(kept)
        self._output: Listener | None = None

    def listen(self, listener: Listener | None) -> None:
        """Send further lines to `listener`. With None, they are kept."""
        self._listener = listener

    def listen_to_tools(self, listener: Listener | None) -> None:
        self._output = listener

    def tool_output(self, line: str) -> None:
        if self._output is not None:
            self._output(line)

    def add(self, line: str) -> None:
        if self._listener is None:
            self._kept.append(line)
        else:
            self._listener(line)

    def extend(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.add(line)

    def progress(self, line: str) -> None:
        if self._listener is not None:
            self._listener(line)

    def take(self) -> list[str]:
        taken = list(dict.fromkeys(self._kept))
        self._kept.clear()
        return taken
