"""One blank line between blocks of a conversation, whichever of the two asks for it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class Spacing:
    """Passes text on to `write`; a text begins or ends with a blank line where it wants to stand apart."""

    write: Callable[[str], None]
    _is_apart: bool = True
    """Whether nothing, or a blank line, stands above."""

    def __call__(self, text: str) -> None:
        text = text.lstrip("\n") if self._is_apart else text
        if text:
            self._is_apart = text.endswith("\n\n")
            self.write(text)
