"""The one-line placeholder for a cleared result: what it was and how to get it again.

It is stored in the entry, so its timestamp never changes the cached prefix. It names only a file,
program or site, because queries and arguments may contain secrets.
"""

import re
import time
from collections.abc import Sequence
from urllib.parse import urlsplit

from longhold.core.log.cursor import clamp_time
from longhold.core.log.entries import AnyEntry
from longhold.core.messages import Image, Json, text_of
from longhold.core.messages.measure import Measure, measure_result
from longhold.core.messages.text import clean_text, pluralize, shorten_path
from longhold.core.stages.clear.candidates import Candidate
from longhold.core.stages.clear.policy import time_of

TARGET_CHARS = 80
"""Longer paths lose their beginning, where paths tend to be alike."""

LONGEST_WEIGHT = 120.0
"""Few placeholders weigh more, so lighter results are not worth replacing."""

_AGAIN = {
    "read": "Read it again",
    "search": "Search again",
    "shell": "Run it again",
    "fetch": "Fetch it again",
}
_WORD = r"""(?:"[^"]*"|'[^']*'|\\.|[^\s"'\\;&|()`])*"""
_PROGRAM = re.compile(
    rf"(?:\w+={_WORD}\s+|cd\s+{_WORD}\s*(?:&&|;)\s*|sudo\s+|(?:ba|da|z)?sh\s+-\w*c\s+)*"
    r"([\w./+][\w./+-]*)"
)


SPARE_LINES = 50
"""Placeholders of removed results that are kept before the cache is pruned."""


class PlaceholderLines:
    def __init__(self, history_tool: str = "") -> None:
        self.history_tool = history_tool
        self._made: dict[str, tuple[str, Measure]] = {}

    def __len__(self) -> int:
        return len(self._made)

    def make_ready(self, results: Sequence[Candidate], history: Sequence[AnyEntry]) -> None:
        """Make placeholders for new results, which are at the end, and prune old ones."""
        if len(self._made) > 2 * len(results) + SPARE_LINES:
            self._made = {one.id: self._made[one.id] for one in results if one.id in self._made}
        for result in reversed(results):
            if result.id in self._made:
                break
            self.line(result, history)

    def line(self, result: Candidate, history: Sequence[AnyEntry]) -> tuple[str, Measure]:
        """Return a result's placeholder and its measure. A sent placeholder never changes."""
        known = result.result.cleared
        if known is not None:
            return known.text, measure_result(known.text)
        if result.id not in self._made:
            came = time_of(history, result.result.id)
            text = placeholder(result, came, self.history_tool)
            self._made[result.id] = text, measure_result(text)
        return self._made[result.id]


def placeholder(cleared: Candidate, came: float, history_tool: str = "") -> str:
    """Describe what was cleared at `came`, in one line, and how to get it again."""
    use, kind = cleared.use, cleared.tool.kind
    when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(clamp_time(came)))
    what = " ".join(filter(None, (use.name, _target(cleared))))
    shown = f"[{what}: {_size(cleared)}, {when}, cleared to make room."
    hints = [_AGAIN[kind]] if kind in _AGAIN else []
    if history_tool:
        hints.append(f"{history_tool} #{cleared.result.id} has it")
    return shown + (f" {', or '.join(hints)}.]" if hints else "]")


def _target(cleared: Candidate) -> str:
    if cleared.tool.kind == "shell":
        return _program(cleared.use.input.get(cleared.tool.command_input))
    if cleared.paths:
        return shorten_path(clean_text(cleared.paths[0]), TARGET_CHARS)
    return _site(cleared.use.input.get("url"))


def _program(command: Json) -> str:
    """Return the program of a command. The model may have passed any JSON as `command`."""
    words = command if isinstance(command, list) else [command]
    text = " ".join(word for word in words if isinstance(word, str))
    found = _PROGRAM.match(text.strip())
    return found[1][:TARGET_CHARS] if found else ""


def _site(url: Json) -> str:
    if not isinstance(url, str):
        return ""
    try:
        parts = urlsplit(url if "//" in url else f"//{url}")
        return f"{parts.hostname or ''}{parts.path}"[:TARGET_CHARS]
    except ValueError:
        return ""


def _size(cleared: Candidate) -> str:
    content = cleared.result.content
    images = 0 if isinstance(content, str) else sum(isinstance(block, Image) for block in content)
    sizes = [pluralize(len(text_of(content)), "character")]
    return ", ".join([*sizes, pluralize(images, "image")] if images else sizes)
