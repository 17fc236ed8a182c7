"""Long pastes: the input shows a short mark for each, and the message has every character of it."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.terminal.text import size

LONG_CHARS, LONG_LINES = 1_000, 12
"""What fits an input without pushing everything else off the screen stays as it is."""
_MARK = re.compile(r"\[paste (\d+): [^\]]*\]")
_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".webp")


@dataclass(slots=True)
class Pastes:
    """The pastes that marks stand for."""

    _kept: dict[int, str] = field(default_factory=dict)

    def take(self, text: str) -> str:
        """Return what the input shows for a paste: itself, a mark, or a mention of an image."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        if mention := _image_mention(text):
            return mention
        lines = text.count("\n") + 1
        if len(text) <= LONG_CHARS and lines <= LONG_LINES:
            return text
        number = len(self._kept) + 1
        self._kept[number] = text
        return f"[paste {number}: {lines:,} line{'s' if lines > 1 else ''}, {size(len(text))}]"

    def expand(self, text: str) -> str:
        """Put every paste in the place of its mark; a mark that somebody typed stays as it is."""
        return _MARK.sub(lambda found: self._kept.get(int(found[1]), found[0]), text)


def _image_mention(text: str) -> str:
    """Return `@path` for the path of an image, which is what dropping a file pastes; else ''."""
    name = text.strip().strip("'\"").replace("\\ ", " ")
    if "\n" in name or not name.lower().endswith(_IMAGES):
        return ""
    path = Path(name.removeprefix("file://")).expanduser()
    return f'@"{path}" ' if path.is_file() and " " in str(path) else f"@{path} "
