"""How commands print: JSON or lines of text, numbers, sizes, times, bars, progress."""

import dataclasses
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec

from holdfast.transcripts.formats import Progress

PROGRESS_FLOOR_BYTES = 8 << 20
"""Smaller files are read before a progress bar would be noticed."""
SAID_CHARS = 76
"""One line of what was said is enough to recognise a turn or a message."""


def json_out(value: Any) -> None:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


def report(as_json: bool, value: Any, lines: Iterable[str]) -> None:
    """Print `value` as JSON, or `lines` for people, made safe for a terminal."""
    if as_json:
        json_out(value)
        return
    for line in lines:
        click.echo(harmless(line))


def tokens(count: float) -> str:
    """Format a number of tokens: 950, 12.3K, 1.05M."""
    if count < 0:
        return f"-{tokens(-count)}"
    if count < 1_000:
        return f"{count:.0f}"
    if count < 999_500:
        return f"{count / 1_000:.1f}K"
    return f"{count / 1_000_000:.2f}M"


def plain(text: str) -> str:
    """Make untrusted text safe to print on one line: no control characters."""
    return "".join(char if char.isprintable() else " " for char in text)


def harmless(text: str) -> str:
    """Make untrusted text safe to print, keeping its lines and tabs."""
    return "".join(char if char.isprintable() or char in "\n\t" else " " for char in text)


def one_line(text: str, chars: int = SAID_CHARS) -> str:
    """Put untrusted text on one line of at most `chars` characters."""
    text = plain(" ".join(text.split()))
    return text if len(text) <= chars else text[: chars - 1] + "…"


def size(bytes: float) -> str:
    for unit in ("B", "KB", "MB"):
        if bytes < 1_000:
            return f"{bytes:.0f} {unit}" if unit == "B" else f"{bytes:.1f} {unit}"
        bytes /= 1_000
    return f"{bytes:.1f} GB"


def ago(then: float, now: float | None = None) -> str:
    seconds = max(0.0, (now or time.time()) - then)
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        count = int(seconds // length)
        if count:
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"


def bar(share: float, width: int = 24) -> str:
    """Draw a share of the whole as a bar, in eighths of a character."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    full, rest = divmod(eighths, 8)
    drawn = "█" * full + ("▏▎▍▌▋▊▉"[rest - 1] if rest else "")
    return drawn.ljust(width)


@contextmanager
def reading(path: Path) -> Iterator[Progress | None]:
    """Show a progress bar while a large file is read, if stderr is a terminal."""
    total = path.stat().st_size if path.is_file() else 0
    if total < PROGRESS_FLOOR_BYTES or not sys.stderr.isatty():
        yield None
        return
    with click.progressbar(length=total, label=f"Reading {path.name}", file=sys.stderr) as shown:
        yield lambda position: shown.update(position - shown.pos)
