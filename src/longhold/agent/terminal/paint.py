"""Renders cleaned Markdown, diffs and tones for the terminal. Only this module uses rich."""

import difflib
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.syntax import Syntax
from rich.text import Text

from longhold.agent.terminal.screen import Tone
from longhold.core.messages.text import clean_document, clean_text

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def whole_blocks(text: str) -> int:
    """Return the length of the leading complete blocks that end in a blank line.

    A list continues after a blank line if an indented line or another item follows.
    """
    cut, position, was_blank = 0, 0, False
    for line, was_code, _ in _lines(text):
        if was_blank and not was_code and line.strip() and not _goes_on(line):
            cut = position
        position += len(line)
        was_blank = not line.strip() and line.endswith("\n")
    return cut


def split_long(text: str) -> tuple[str, str]:
    """Split an incomplete block after a line or word. A code fence is closed and reopened."""
    at = text.rfind("\n") + 1 or text.rfind(" ") + 1 or len(text)
    head, rest = text[:at], text[at:]
    *_, (_, _, opening) = _lines(head)
    if not (fence := _FENCE.match(opening)):
        return head, rest
    end = "" if head.endswith("\n") else "\n"
    return f"{head}{end}{fence[1]}\n", f"{opening.rstrip()}\n{rest}"


def _with_breaks(text: str) -> str:
    return "".join(
        line if was_code or is_code or not line[:-1].strip() else f"{line.rstrip()}  \n"
        for line, was_code, is_code in _lines(text + "\n")
    )


def _lines(text: str) -> Iterator[tuple[str, bool, str]]:
    """Yield each line, whether it is inside a fence, and the fence open after it."""
    opened, fence = "", ""
    for line in text.splitlines(keepends=True):
        found, was_open = _FENCE.match(line), bool(fence)
        if found and not fence:
            opened, fence = line, found[1]
        elif found and _closes(fence, found[1], line):
            opened, fence = "", ""
        yield line, was_open, opened


def _goes_on(line: str) -> bool:
    return line.startswith(("  ", "\t")) or bool(re.match(r"(?:[-*+]|\d{1,9}[.)]) ", line))


def _closes(opened: str, mark: str, line: str) -> bool:
    return mark[0] == opened[0] and len(mark) >= len(opened) and not line.strip().strip(mark[0])


STYLES: dict[Tone, str] = {
    "plain": "",
    "dim": "bright_black",
    "notice": "yellow",
    "error": "red",
    "user": "bold",
    "document": "",
}
LEAST_COLUMNS = 20
"""The minimum width, because in a narrower terminal rich would loop over single letters."""
CONTEXT_LINES = 2
_COLUMN = re.compile(r" *\S+(?: \S+)* {2,}(?=\S)")


class _Heading(Heading):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.text


class _Code(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        yield Syntax(code, self.lexer_name, theme=self.theme, word_wrap=True, padding=(0, 1))


class _Document(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Paint:
    columns: Callable[[], int]
    has_colours: bool = True

    def render(self, what: RenderableType, *, indent: int = 0) -> str:
        out = io.StringIO()
        console = Console(
            file=out,
            force_terminal=self.has_colours,
            no_color=not self.has_colours,
            color_system="standard" if self.has_colours else None,
            width=max(LEAST_COLUMNS, self.columns()),
            legacy_windows=False,
            highlight=False,
            emoji=False,
            markup=False,
        )
        if isinstance(what, Text):  # because wrapped lines keep the indentation too
            lines = _folded_lines(what, console, console.width - indent)
            margin = Text(" " * indent)
            text = Text("\n").join(margin + line if line else line for line in lines)
            console.print(text, no_wrap=True, crop=False)
        else:
            console.print(what)
        return out.getvalue()

    def draw_text(self, text: str, tone: Tone = "plain", *, indent: int = 0) -> str:
        if tone == "document":
            return self.draw_markdown(text)
        return self.render(Text(clean_document(text), style=STYLES[tone]), indent=indent)

    def cut(self, text: str, columns: int) -> str:
        """Shorten a line to a number of columns. Wide characters count as two."""
        line = Text(text)
        line.truncate(max(columns, 1), overflow="ellipsis")
        return line.plain

    def draw_markdown(self, text: str) -> str:
        rendered = self.render(
            _Document(
                _with_breaks(clean_document(text)),
                code_theme="ansi_dark",
                hyperlinks=False,
                justify="left",
            )
        )
        # because `&#x202e;` is a character that `clean_document` removes
        rendered = clean_text(rendered, keep="\n\t\x1b", instead="")
        return "\n".join(line.rstrip() for line in rendered.split("\n")).strip("\n") + "\n"

    def diff(self, before: str, after: str, *, most: int, indent: int = 4) -> str:
        lines = list(_changed_lines(before, after))
        drawn = Text()
        for sign, line in lines[:most]:
            style = {"-": "red", "+": "green"}.get(sign, "bright_black")
            drawn.append(f"{sign} {clean_document(line)}\n", style=style)
        if len(lines) > most:
            drawn.append(f"… {len(lines) - most} more lines\n", style="bright_black")
        drawn.rstrip()
        return self.render(drawn, indent=indent)


def _folded_lines(text: Text, console: Console, width: int) -> Iterator[Text]:
    """Wrap long lines. Continuations align with the text or its second column."""
    text = text.copy()
    text.expand_tabs()
    for line in text.split(allow_blank=True):
        first, *more = line.wrap(console, width) or [line]
        first.rstrip()
        yield first
        if not more:
            continue
        hang = _hang(line.plain, width)
        rest = line[len(first.plain.rstrip()) :]
        rest = rest[len(rest.plain) - len(rest.plain.lstrip()) :]
        for piece in rest.wrap(console, width - hang):
            yield Text(" " * hang) + piece


def _hang(line: str, width: int) -> int:
    column = _COLUMN.match(line)
    deep = column.end() if column else 0
    if not 0 < deep <= width // 2:
        deep = len(line) - len(line.lstrip())
    return deep if deep <= width // 2 else 0


def _changed_lines(before: str, after: str) -> Iterator[tuple[str, str]]:
    """Yield diff lines with their signs, and `…` between distant changes."""
    unified = difflib.unified_diff(
        before.splitlines(), after.splitlines(), lineterm="", n=CONTEXT_LINES
    )
    for number, line in enumerate(unified):
        if number < 2:
            continue  # the names of the files
        if line.startswith("@@"):
            if number > 2:
                yield " ", "…"
        else:
            yield line[:1], line[1:]
