"""`holdfast export`: write what a model sees of a session in another format."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from holdfast.cli.import_command import malformed_lines
from holdfast.cli.show import json_out
from holdfast.cli.target import CommandTarget, open_target
from holdfast.errors import StoreError
from holdfast.settings.files import write_new
from holdfast.transcripts.formats import FORMATS, losses, named, printable


@click.command(epilog="Example: holdfast export newest --to anthropic > request.json")
@click.argument("session")
@click.option(
    "--to",
    "format",
    type=click.Choice(FORMATS),
    default="anthropic",
    show_default=True,
    help="The format to write.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="A file to write; it must not exist yet."
)
@click.option("--json", "as_json", is_flag=True, help="With --out: print what was written as JSON.")
def command(session: str, format: str, out: Path | None, as_json: bool) -> None:
    """Write what the model sees of SESSION (an id, its beginning, `newest`, or a file)."""
    target = open_target(session)
    lines = named(format).write(target.view)
    lost = losses(format, target.view)
    malformed = _malformed(target)
    for line in (*_read_lines(target, malformed), *_lost_lines(format, lost)):
        click.echo(line, err=True)
    if out is None:
        for piece in lines:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return
    written = _written(out, lines)
    if not as_json:
        click.echo(f"{printable(out)}: {len(target.view.messages())} messages, {written:,} bytes")
        return
    json_out(
        {
            "session": printable(target.name),
            "format": format,
            "file": printable(out),
            "bytes": written,
            "left_out": lost,
            "malformed": malformed,
            "damage": target.damage,
        }
    )


def _malformed(target: CommandTarget) -> tuple[tuple[int, str], ...]:
    """List the lines of a transcript that could not be read just now; a log told them once."""
    if target.imported is None or target.format == "holdfast":
        return ()
    return target.imported.malformed


def _read_lines(target: CommandTarget, malformed: tuple[tuple[int, str], ...]) -> Iterator[str]:
    """Say what of the source could not be read and is therefore missing."""
    yield from malformed_lines(malformed)
    for damage in target.damage:
        yield f"damaged: line {damage.line} of the log ({damage.reason})"


def _lost_lines(format: str, lost: Counter[str]) -> Iterator[str]:
    if lost:
        kinds = ", ".join(f"{count} {kind}" for kind, count in lost.most_common())
        yield f"left out, because {format} cannot hold it: {kinds}"


def _written(out: Path, lines: Iterable[bytes]) -> int:
    """Write a new file, or say why not; count its bytes."""
    try:
        return write_new(out, lines)
    except FileExistsError:
        raise StoreError(f"{out} exists and is not overwritten; choose another name") from None
    except OSError as error:
        raise StoreError(f"{out}: {error.strerror}; choose a place that can be written") from error
