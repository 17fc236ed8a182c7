"""`longhold context`: what fills the context window, by category."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import click

from longhold.cli import options
from longhold.cli.output import report
from longhold.cli.target import OURS, CommandTarget, calibrate, open_target
from longhold.core.messages.text import bar, clean_text, shorten_path, tokens
from longhold.core.settings import load_settings
from longhold.core.view.gauge import replay
from longhold.core.view.window import Window
from longhold.insight.context import Context, ContextPart, describe, session_window

INNER_PARTS = 6
NAME_COLUMNS, NARROW_NAME_COLUMNS, WIDE_COLUMNS = 44, 22, 80
"""The width of names in a terminal of `WIDE_COLUMNS` and in a narrower terminal."""
FIGURE_COLUMNS, BAR_COLUMNS, WHOLE_BAR_COLUMNS = 26, 16, 60
"""The widths of the figures between a name and its bar, of the bar, and of the window's bar."""


@click.command(epilog="Example: longhold context newest")
@options.target
@click.option("--model", help="Use this model's window instead of the session's own.")
@options.as_json
def command(target: str, model: str | None, as_json: bool) -> None:
    """Show what fills the context window.

    TARGET is a session's id or a file. The default is this project's newest session. The size is
    the last size that the provider reported, plus an estimate of later messages. The window is the
    size that the transcript proves, or else the model's window.
    """
    opened = open_target(target)
    view, gauge = replay(opened.history, calibrate())
    window = session_window(opened.format, view, load_settings(Path.cwd()), model or "")
    context = describe(view, gauge, window)
    document = {
        "target": opened.name,
        "format": opened.format,
        "items": len(view.items),
        "messages": len(view.messages()),
        "context": context,
        "damage": opened.damage,
        "imported": opened.imported,
    }
    report(as_json, document, lines(opened, context))


def lines(target: CommandTarget, context: Context) -> Iterator[str]:
    window, used = context.window, context.used_tokens
    basis = "reported by the provider" if context.is_reported else "estimated"
    title = f"  {clean_text(context.title)}" if context.title else ""
    yield f"{target.name}  ({target.format}){title}"
    yield (
        f"{context.model or 'unknown model'}   {tokens(used)} of {tokens(window.limit_tokens)} tokens"
        f" ({basis}, at most {tokens(context.margin_tokens)} more)"
    )
    columns = shutil.get_terminal_size().columns
    yield f"[{bar(used / window.limit_tokens, min(WHOLE_BAR_COLUMNS, columns - 4))}]"
    line = _line_words(target.format, window)
    at = f"{line} at {tokens(window.base_tokens)}" if window.auto else line
    yield f"{context.percent_left} % left until {at}"
    if target.format == OURS:
        yield _marks(context)
    yield ""
    whole = max(used, sum(max(0, part.tokens) for part in context.parts), 1)
    name, bars = _columns(columns)
    for part in context.parts:
        yield from _part_lines(part, whole, name, bars)
    free, beyond = max(0, window.base_tokens - used), window.limit_tokens - window.base_tokens
    yield f"{f'free until {line}'[:name]:<{name}} {tokens(free):>8}"
    if beyond:
        yield f"{'beyond the threshold':<{name}} {tokens(beyond):>8}"
    yield from target.problem_lines()


def _line_words(format: str, window: Window) -> str:
    if not window.auto:
        return "the window is full"
    return "space is freed" if format == OURS else f"{format} compacts"


def _marks(context: Context) -> str:
    window = context.window
    line = {
        "ok": "below every threshold",
        "warning": "past the warning level",
        "error": "past the error level: nearly full",
        "auto": "past the compaction threshold: space would be freed now",
        "blocking": "past the blocking level: nothing more fits until space is freed",
    }[context.level]
    return (
        f"warning {tokens(window.warning_tokens)} · auto {tokens(window.auto_tokens)}"
        f" · blocking {tokens(window.blocking_tokens)}: {line}"
    )


def _columns(columns: int) -> tuple[int, int]:
    narrow = max(1, min(NARROW_NAME_COLUMNS, columns - FIGURE_COLUMNS))
    name = NAME_COLUMNS if columns >= WIDE_COLUMNS else narrow
    return name, min(BAR_COLUMNS, max(0, columns - name - FIGURE_COLUMNS))


def _shorten(name: str, chars: int) -> str:
    name = clean_text(name)
    return shorten_path(name, chars) if "/" in name else name[:chars]


def _part_lines(part: ContextPart, used: int, name: int, bars: int) -> Iterator[str]:
    drawn = bar(part.tokens / used, bars)
    yield f"{_shorten(part.name, name):<{name}} {tokens(part.tokens):>8} {part.tokens / used:>6.1%} {part.count:>6,}  {drawn}".rstrip()
    inside = name - 2
    for inner in part.parts[:INNER_PARTS]:
        yield f"  {_shorten(inner.name, inside):<{inside}} {tokens(inner.tokens):>8} {inner.tokens / used:>6.1%} {inner.count:>6,}"
    if rest := part.parts[INNER_PARTS:]:
        total = sum(inner.tokens for inner in rest)
        yield f"  {f'{len(rest)} more':<{inside}} {tokens(total):>8} {total / used:>6.1%}"
