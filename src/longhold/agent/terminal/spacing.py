"""Blank lines between blocks, lines about the actions of stages, and a reminder on resume."""

import importlib.util
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from longhold.agent.terminal.screen import Tone
from longhold.core.log.cursor import LogCursor
from longhold.core.log.entries import (
    AnyEntry,
    CacheBroke,
    Collapsed,
    Replied,
    Said,
    Snipped,
    Spilled,
)
from longhold.core.log.entry_lines import describe_entry, kind_of
from longhold.core.messages import text_of
from longhold.core.messages.text import clean_line
from longhold.core.stages.notes.file import load_page, summarise_state
from longhold.errors import LongholdError

if TYPE_CHECKING:
    from longhold.agent.agent import Agent


@dataclass(slots=True)
class Spacing:
    """Writes text so that two blocks are never more than one blank line apart."""

    write: Callable[[str], None]
    _is_apart: bool = True

    def __call__(self, text: str) -> None:
        text = text.lstrip("\n") if self._is_apart else text
        if text:
            self._is_apart = text.endswith("\n\n")
            self.write(text)


def is_drawable(stream: TextIO) -> bool:
    """Return whether a stream is a terminal with cursor control and UTF-8."""
    is_dumb = os.environ.get("TERM", "dumb") in ("dumb", "unknown", "")
    is_unicode = (stream.encoding or "").lower().replace("-", "") == "utf8"
    return stream.isatty() and not is_dumb and is_unicode


def has_libraries() -> bool:
    return all(map(importlib.util.find_spec, ("prompt_toolkit", "rich")))


def has_colours() -> bool:
    return not os.environ.get("NO_COLOR")


LINE_CHARS = 160
MESSAGE_CHARS, LAST_ANSWERS = 2_000, 2
_SHOWN = (Spilled, Collapsed, Snipped)
"""Clearing and compacting print their own lines."""


@dataclass(slots=True)
class StageLines:
    limit_chars: int = LINE_CHARS
    _cursor: LogCursor = field(default_factory=LogCursor)

    def follow(self, history: Sequence[AnyEntry]) -> list[str]:
        return [
            clean_line(f"◇ {kind_of(entry)}: {describe_entry(entry)}", self.limit_chars)
            for entry in self._cursor.advance(history)
            if isinstance(entry, _SHOWN) or (isinstance(entry, CacheBroke) and not entry.expected)
        ]


def last_messages(history: Sequence[AnyEntry]) -> list[tuple[str, Tone]]:
    found: list[tuple[str, Tone]] = []
    for entry in history:
        text = text_of(entry.content).strip() if isinstance(entry, Said | Replied) else ""
        text = text if len(text) <= MESSAGE_CHARS else f"{text[:MESSAGE_CHARS]} …"
        if isinstance(entry, Said) and not entry.hidden:
            found = [(f"> {text}", "user")]
        elif isinstance(entry, Replied) and text:
            found.append((text, "document"))
    return found[:1] + found[1:][-LAST_ANSWERS:]


def where_lines(agent: "Agent") -> list[str]:
    try:
        file = agent.session._layers.notes.file(agent.engine)
        page = load_page(file, agent.session.view.history)
    except LongholdError:
        return []  # because unreadable notes do not prevent resuming
    lines = summarise_state(page)
    return ["Where you were:", *lines] if lines else []
