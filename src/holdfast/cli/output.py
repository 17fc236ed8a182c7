"""How commands print: JSON or lines of text, numbers, sizes, times, bars, progress.

Every command prints through `say`, `ask_yes_no`, `json_out`, `json_line` or `text_out`: no text
reaches a terminal with characters in it that would steer the terminal or reorder what is read.
"""

import dataclasses
import re
import shutil
import sys
import time
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec

from holdfast.transcripts.formats import Progress

PROGRESS_FLOOR_BYTES = 8 << 20
"""Smaller files are read before a progress bar would be noticed."""
INDENT, WIDE = 6, 2
"""Columns of what stands below a question, and of a wide character."""
SAID_CHARS = 76
"""One line of what was said is enough to recognise a turn or a message."""


_UNESCAPED = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""What JSON may hold as it is and a terminal may obey."""


def say(text: object = "", *, err: bool = False, nl: bool = True, **style: Any) -> None:
    """Print text from anywhere, made safe for a terminal; `style` is the line's own colour."""
    click.secho(harmless(str(text)), err=err, nl=nl, **style)


def say_below(label: str, text: str) -> None:
    """Print a foreign line on stderr, folded so that none of it begins at a terminal's left edge.

    A line long enough would else continue there and pose as one of ours.
    """
    room = max(shutil.get_terminal_size().columns - WIDE * INDENT, WIDE)
    line, width = label, len(label)
    for char in plain(text):
        width += WIDE if unicodedata.east_asian_width(char) in "WF" else 1
        if width > room:
            say(line, err=True)
            line, width = " " * INDENT + char, INDENT + WIDE
        else:
            line += char
    say(line, err=True)


def ask_yes_no(question: str, *, is_required: bool = False, err: bool = False) -> bool:
    """Ask the user; with `is_required` a no ends the command."""
    return click.confirm(harmless(question), abort=is_required, err=err)


def json_out(value: Any) -> None:
    click.echo(json_text(value))


def json_text(value: Any) -> str:
    """Write a value as indented JSON that is safe to print."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    return _escaped(msgspec.json.format(msgspec.json.encode(value), indent=2))


def json_line(value: Any) -> None:
    click.echo(_escaped(msgspec.json.encode(value)))


def encoded_out(encoded: bytes) -> None:
    """Print a part of a JSON document, such as a line, as it is but for the escapes."""
    click.echo(_escaped(encoded), nl=False)


def _escaped(encoded: bytes) -> str:
    return _UNESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", encoded.decode())


def text_out(text: str) -> None:
    """Print a document: safe for a terminal, and as it is for a file or another program."""
    click.echo(harmless(text) if sys.stdout.isatty() else text, nl=False)


def rewrite_line(text: str) -> None:
    """Show progress on stderr, where a terminal shows it in place of the line before."""
    is_terminal = sys.stderr.isatty()
    click.echo(("\r" if is_terminal else "") + plain(text), nl=not is_terminal, err=True)


def report_all(as_json: bool, found: Iterable[tuple[Any, Iterable[str]]]) -> None:
    """Print what was found of each target: one document, a list of several, or lines for people."""
    if as_json:
        values = [value for value, _ in found]
        json_out(values[0] if len(values) == 1 else values)
        return
    for place, (_, lines) in enumerate(found):
        report(False, None, [""] if place else [])
        report(False, None, lines)


def report(as_json: bool, value: Any, lines: Iterable[str]) -> None:
    """Print `value` as JSON, or `lines` for people, made safe for a terminal."""
    if as_json:
        json_out(value)
        return
    for line in lines:
        say(line)


def tokens(count: float) -> str:
    """Format a number of tokens: 950, 12.3K, 1.05M, 21.8B."""
    if count < 0:
        return f"-{tokens(-count)}"
    if count < 1_000:
        return f"{count:.0f}"
    if count < 999_500:
        return f"{count / 1_000:.1f}K"
    if count < 999_500_000:
        return f"{count / 1_000_000:.2f}M"
    return f"{count / 1_000_000_000:.1f}B"


def dollars(usd: float) -> str:
    """Format money for people: $13,469, $4.04, less than a cent as such."""
    if usd < 0:
        return f"-{dollars(-usd)}"
    if usd >= 99.995:
        return f"${usd:,.0f}"
    return "under $0.01" if 0 < usd < 0.005 else f"${usd:.2f}"


def recorded(usd: float, *, estimated_usd: float, output: int, summaries: int) -> str:
    """Write a sum, and what of it is an estimate because nothing recorded it."""
    if not output and not summaries:
        return dollars(usd)
    missing = not_recorded(output, summaries)
    return f"about {dollars(usd + estimated_usd)}: {dollars(usd)} recorded, and {missing}"


def not_recorded(output: int, summaries: int) -> str:
    """Name what a transcript shows and did not count."""
    missing = [f"~{tokens(output)} output tokens"] if output else []
    if summaries:
        missing.append("a summary" if summaries == 1 else f"{summaries:,} summaries")
    return f"{' and '.join(missing)} that {'was' if missing == ['a summary'] else 'were'} not"


def percent(part: float, whole: float) -> str:
    return f"{part / whole:.0%}".replace("%", " %") if whole else "0 %"


def plain(text: str) -> str:
    """Make untrusted text safe to print on one line: no control characters."""
    return "".join(char if char.isprintable() else " " for char in text)


def harmless(text: str) -> str:
    """Make untrusted text safe to print, keeping its lines and tabs."""
    if text.isprintable():
        return text
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
    with progress_bar(total, f"Reading {plain(path.name)}") as advance:
        if advance is None:
            yield None
            return
        read = 0

        def reached(position: int) -> None:
            nonlocal read
            advance(position - read)
            read = position

        yield reached


@contextmanager
def progress_bar(
    total_bytes: int, label: str, floor: int = PROGRESS_FLOOR_BYTES
) -> Iterator[Progress | None]:
    """Yield what advances a bar by so many bytes; None where there is little to do or nobody looks."""
    if total_bytes < floor or not sys.stderr.isatty():
        yield None
        return
    with click.progressbar(length=total_bytes, label=label, file=sys.stderr) as shown:
        yield shown.update
