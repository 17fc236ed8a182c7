"""`longhold context`: what fills the context window, by category."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click

from longhold.cli import options
from longhold.cli.output import report_all
from longhold.cli.target import CommandTarget, calibrate, open_targets
from longhold.core.messages.text import bar, clean_text, shorten_path, tokens
from longhold.core.policy.advice import window_at_cost
from longhold.core.settings import WindowSettings, load_settings
from longhold.core.view.gauge import replay
from longhold.core.view.window import infer_window
from longhold.insight.context import Context, ContextPart, describe

INNER_PARTS = 6
NAME_COLUMNS, NARROW_NAME_COLUMNS, WIDE_COLUMNS = 44, 22, 80
"""Width of names in a terminal of `WIDE_COLUMNS` and in a narrower one."""
FIGURE_COLUMNS, BAR_COLUMNS = 26, 16
"""Width of the figures between a name and its bar, and of the bar."""


@click.command(epilog="Example: longhold context newest")
@options.targets
@click.option("--model", help="Use this model's window instead of the session's own.")
@options.as_json
def command(targets: tuple[str, ...], model: str | None, as_json: bool) -> None:
    """Show what fills the context window.

    TARGETS are session ids, files or directories; by default this project's newest session. The
    size is the last one that the provider reported, plus an estimate of what came after. The
    window is what the transcript proves, else the model's.
    """
    report_all(as_json, (_describe(opened, model) for opened in open_targets(targets)))


def _describe(opened: CommandTarget, model: str | None) -> tuple[object, Iterator[str]]:
    view, gauge = replay(opened.history, calibrate())
    settings = replace(load_settings(Path.cwd()), window=window_settings(opened, model))
    window = window_at_cost(model or view.model, settings, view.frame)
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
    return document, lines(opened, context)


def window_settings(target: CommandTarget, model: str | None) -> WindowSettings:
    """Return the settings; without `model`, with the window that the transcript proves."""
    settings = load_settings(Path.cwd()).window
    proved = 0 if model else infer_window(target.history)
    return replace(settings, limit_tokens=settings.limit_tokens or proved)


def lines(target: CommandTarget, context: Context) -> Iterator[str]:
    window, used = context.window, context.used_tokens
    basis = "reported by the provider" if context.is_reported else "estimated"
    title = f"  {clean_text(context.title)}" if context.title else ""
    yield f"{target.name}  ({target.format}){title}"
    yield (
        f"{context.model or 'unknown model'}   {tokens(used)} of {tokens(window.limit_tokens)} tokens"
        f" ({basis}, at most {tokens(context.margin_tokens)} more)"
    )
    yield f"[{bar(used / window.limit_tokens, 60)}]"
    yield f"{context.percent_left} % left until room is made at {tokens(window.base_tokens)}"
    yield _marks(context)
    yield ""
    whole = max(used, sum(max(0, part.tokens) for part in context.parts), 1)
    name, bars = _columns()
    for part in context.parts:
        yield from _part_lines(part, whole, name, bars)
    free, beyond = max(0, window.base_tokens - used), window.limit_tokens - window.base_tokens
    yield f"{'free until room is made':<{name}} {tokens(free):>8}"
    yield f"{'beyond that line':<{name}} {tokens(beyond):>8}"
    yield from target.problem_lines()


def _marks(context: Context) -> str:
    window = context.window
    line = {
        "ok": "below every line",
        "warning": "past the warning line",
        "error": "past the error line: nearly full",
        "auto": "past the auto line: room would be made now",
        "blocking": "past the blocking line: nothing more fits before room is made",
    }[context.level]
    return (
        f"warning {tokens(window.warning_tokens)} · auto {tokens(window.auto_tokens)}"
        f" · blocking {tokens(window.blocking_tokens)}: {line}"
    )


def _columns() -> tuple[int, int]:
    columns = shutil.get_terminal_size().columns
    name = NAME_COLUMNS if columns >= WIDE_COLUMNS else NARROW_NAME_COLUMNS
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
