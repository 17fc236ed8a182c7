"""`holdfast export`: write what a model sees of a session in another format."""

import sys
from pathlib import Path

import click

from holdfast.cli.show import json_out
from holdfast.cli.target import open_target
from holdfast.errors import StoreError
from holdfast.transcripts.formats import FORMATS, losses, named


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
    if lost:
        kinds = ", ".join(f"{count} {kind}" for kind, count in lost.most_common())
        click.echo(f"left out, because {format} cannot hold it: {kinds}", err=True)
    if out is None:
        for line in lines:
            sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
        return
    try:
        with out.open("xb") as file:
            written = sum(file.write(line) for line in lines)
    except FileExistsError:
        raise StoreError(f"{out} exists and is not overwritten; choose another name") from None
    except OSError as error:
        raise StoreError(f"{out}: {error.strerror}; choose a place that can be written") from error
    if as_json:
        json_out(
            {
                "session": target.name,
                "format": format,
                "file": str(out),
                "bytes": written,
                "left_out": lost,
            }
        )
    else:
        click.echo(f"{out}: {len(target.view.messages())} messages, {written:,} bytes")
