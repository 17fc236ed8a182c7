"""One line for the user when the context comes near the line at which history is summarised."""

from collections.abc import Callable
from dataclasses import dataclass

from holdfast.turn.engine import Engine, Fullness


@dataclass(slots=True)
class RoomWarning:
    """Warns once past the warning line, and again only after there was room."""

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
    used = f"the context is nearly full: {full.used_tokens:,} of {window.limit_tokens:,} tokens"
    if window.auto:
        return f"{used}; from {window.auto_tokens:,} on history is summarised by itself"
    return (
        f"{used}; history is not summarised by itself (window.auto is off), and from "
        f"{window.blocking_tokens:,} on nothing more is sent"
    )
