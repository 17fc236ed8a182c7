"""Where things stand at the bottom of the live screen: what is in progress, the queue, input, status."""

from collections.abc import Callable
from dataclasses import dataclass

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText, StyleAndTextTuples
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.layout.processors import AfterInput, ConditionalProcessor, PasswordProcessor
from prompt_toolkit.styles import Style

INPUT_ROWS = 10
"""A longer message scrolls within the input."""
MENU_ROWS = 8
STYLE = Style.from_dict(
    {
        "rule": "ansibrightblack",
        "prompt": "bold",
        "suggestion": "ansibrightblack",
        "queued": "ansibrightblack italic",
        "working": "ansiyellow",
        "chosen": "reverse",
        "status": "ansibrightblack",
        "status.warning": "ansiyellow",
        "status.full": "ansired bold",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenParts:
    """What is drawn; each is asked for when the screen is."""

    live: Callable[[], str]
    working: Callable[[], str]
    queued: Callable[[], list[str]]
    menu: Callable[[], StyleAndTextTuples]
    question: Callable[[], str]
    """One that is too long to stand before its answer."""
    prompt: Callable[[], str]
    suggestion: Callable[[], str]
    status: Callable[[], tuple[str, str]]
    """A style and the line."""
    is_secret: Callable[[], bool]
    """Whether what is typed must not be seen."""


def make_layout(buffer: Buffer, parts: ScreenParts) -> Layout:
    suggestion = ConditionalProcessor(
        AfterInput(parts.suggestion, style="class:suggestion"), Condition(lambda: not buffer.text)
    )
    hidden = ConditionalProcessor(PasswordProcessor(), Condition(parts.is_secret))
    typing = Window(
        BufferControl(buffer=buffer, input_processors=[suggestion, hidden]),
        height=Dimension(min=1, max=INPUT_ROWS),
        dont_extend_height=True,
        wrap_lines=True,
        get_line_prefix=lambda line, wrap: _prefix(parts.prompt(), line, wrap),
    )
    rows = [
        _text(lambda: ANSI(parts.live()), Condition(lambda: bool(parts.live()))),
        _text(
            lambda: [("class:working", parts.working())], Condition(lambda: bool(parts.working()))
        ),
        _text(lambda: _queued(parts.queued()), Condition(lambda: bool(parts.queued()))),
        Window(char="─", height=1, style="class:rule"),
        _text(
            lambda: [("class:prompt", parts.question())], Condition(lambda: bool(parts.question()))
        ),
        _text(parts.menu, Condition(lambda: bool(parts.menu()))),
        ConditionalContainer(typing, Condition(lambda: not parts.menu())),
        CompletionsMenu(max_height=MENU_ROWS, scroll_offset=1),
        Window(FormattedTextControl(lambda: [parts.status()]), height=1),
    ]
    return Layout(HSplit(rows), focused_element=typing)


def _text(text: Callable[[], AnyFormattedText], when: Condition) -> ConditionalContainer:
    window = Window(FormattedTextControl(text), dont_extend_height=True, wrap_lines=True)
    return ConditionalContainer(window, when)


def _prefix(prompt: str, line: int, wrap: int) -> StyleAndTextTuples:
    is_first = line == 0 and wrap == 0
    return [("class:prompt", prompt if is_first else " " * min(len(prompt), 2))]


def _queued(lines: list[str]) -> StyleAndTextTuples:
    return [("class:queued", "\n".join(lines))]
