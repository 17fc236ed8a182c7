"""Functions for the output of commands: JSON, lines of text, and progress.

All output goes through these functions, which remove characters that would control the terminal or
reorder text.
"""

import dataclasses
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from longhold.core.messages.text import clean_document, clean_text, dollars, tokens
from longhold.core.messages.usage import Tally

if TYPE_CHECKING:
    from longhold.insight.transcripts.formats import Progress

PROGRESS_FLOOR_BYTES = 8 << 20  # smaller files are read before a progress bar would be noticed


_UNESCAPED = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""Characters that are valid in JSON but may control a terminal."""


def say(text: object = "", *, err: bool = False, nl: bool = True, **style: Any) -> None:
    """Print untrusted text, made safe for a terminal. `style` applies to the whole text."""
    click.secho(clean_document(str(text)), err=err, nl=nl, **style)


def print_marked(text: str, spans: Sequence[tuple[int, int]]) -> None:
    shown, at = "", 0
    for start, stop in spans:
        shown += clean_text(text[at:start]) + click.style(clean_text(text[start:stop]), bold=True)
        at = stop
    click.echo(shown + clean_text(text[at:]))


def show_notice(notice: str) -> None:
    say(clean_text(notice), err=True, fg="yellow")


def ask_yes_no(question: str, *, is_required: bool = False, err: bool = False) -> bool:
    return click.confirm(clean_document(question), abort=is_required, err=err)


def json_out(value: Any) -> None:
    click.echo(json_text(value))


def json_text(value: Any) -> str:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    return _escape(msgspec.json.format(msgspec.json.encode(value), indent=2))


def json_line(value: Any) -> None:
    click.echo(_escape(msgspec.json.encode(value)))


def encoded_out(encoded: bytes) -> None:
    """Print part of a JSON document unchanged except for the escapes."""
    click.echo(_escape(encoded), nl=False)


def _escape(encoded: bytes) -> str:
    return _UNESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", encoded.decode())


def text_out(text: str) -> None:
    """Print a document. It is cleaned for a terminal and unchanged for a file or program."""
    click.echo(clean_document(text) if sys.stdout.isatty() else text, nl=False)


def print_painted(text: str) -> None:
    """Print the output of `terminal.paint`, which is already cleaned and has its own colours."""
    click.echo(text, nl=False, color=True)


def rewrite_line(text: str) -> None:
    is_terminal = sys.stderr.isatty()
    click.echo(("\r" if is_terminal else "") + clean_text(text), nl=not is_terminal, err=True)


def report(as_json: bool, value: Any, lines: Iterable[str]) -> None:
    if as_json:
        json_out(value)
        return
    for line in lines:
        say(line)


def describe_recorded(spent: Tally) -> str:
    """Describe the recorded and the estimated part of a cost, or return '' if all is recorded."""
    if not spent.unrecorded_output and not spent.unrecorded_calls:
        return ""
    missing = [f"~{tokens(spent.unrecorded_output)} output tokens"] * bool(spent.unrecorded_output)
    if count := spent.unrecorded_calls:
        missing.append("a summary" if count == 1 else f"{count:,} summaries")
    estimated = f"about {dollars(spent.unrecorded_usd)} for {' and '.join(missing)}"
    return f"{dollars(spent.usd)} as recorded, {estimated} that the client did not record"


@contextmanager
def reading(path: Path) -> Iterator["Progress | None"]:
    total = path.stat().st_size if path.is_file() else 0
    with progress_bar(total, f"Reading {clean_text(path.name)}") as advance:
        if advance is None:
            yield None
            return
        read = 0

        def move_to(position: int) -> None:
            nonlocal read
            advance(position - read)
            read = position

        yield move_to


@contextmanager
def progress_bar(
    total_bytes: int, label: str, floor: int = PROGRESS_FLOOR_BYTES
) -> Iterator["Progress | None"]:
    """Yield a callback that advances a bar by bytes, or None for little work or no terminal."""
    if total_bytes < floor or not sys.stderr.isatty():
        yield None
        return
    with click.progressbar(length=total_bytes, label=label, file=sys.stderr) as shown:
        yield shown.update
