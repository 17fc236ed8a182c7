"""`longhold sessions export`: write what the model sees of a session in another format."""

import uuid
from collections.abc import Iterable
from pathlib import Path

import click

from longhold.cli import options
from longhold.cli.import_command import malformed_lines
from longhold.cli.output import encoded_out, report, say
from longhold.cli.target import OURS, open_target
from longhold.core.settings.private_files import write_new
from longhold.errors import StoreError
from longhold.insight.resume import client_session
from longhold.insight.transcripts.formats import CLIENTS, FORMATS, decode_path, load_format, losses


@click.command(epilog="Example: longhold sessions export newest --to anthropic > request.json")
@options.session
@click.option(
    "--to",
    "format",
    type=click.Choice(FORMATS),
    default="anthropic",
    show_default=True,
    help="Format to write.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="New file to write, instead of stdout."
)
@click.option("--json", "as_json", is_flag=True, help="With --out: print the result as JSON.")
def command(session: str, format: str, out: Path | None, as_json: bool) -> None:
    """Write a session in another format.

    SESSION is an id, the start of an id, `newest`, or a file. It contains what the model sees.
    """
    target = open_target(session)
    id = str(uuid.uuid5(uuid.NAMESPACE_URL, decode_path(target.name)))
    client = client_session(format, target.worked_in, id=id) if format in CLIENTS else None
    directory = client.directory if client else ""
    lines = load_format(format).write(target.view, session=id, directory=directory)
    lost = losses(format, target.view)
    # For a log, the import has already reported the malformed lines.
    malformed = target.imported.malformed if target.imported and target.format != OURS else ()
    for line in (*malformed_lines(malformed), *target.damage_lines()):
        say(line, err=True)
    if lost:
        kinds = ", ".join(f"{count} {kind}" for kind, count in lost.most_common())
        say(f"left out, because {format} has no place for it: {kinds}", err=True)
    if out is None:
        for piece in lines:
            encoded_out(piece)
        return
    written = write_out(out, lines)
    hint = [f"To resume it: copy it to {client.path}, then run: {client.command}"] if client else []
    report(
        as_json,
        {
            "session": decode_path(target.name),
            "format": format,
            "file": decode_path(out),
            "bytes": written,
            "left_out": lost,
            "client_session": id if client else "",
            "malformed": malformed,
            "damage": target.damage,
        },
        [f"{decode_path(out)}: {len(target.view.messages())} messages, {written:,} bytes", *hint],
    )


def write_out(out: Path, lines: Iterable[bytes]) -> int:
    try:
        return write_new(out, lines)
    except FileExistsError:
        raise StoreError(f"{out} exists and is not overwritten; choose another name") from None
    except OSError as error:
        raise StoreError(f"{out}: {error.strerror}; choose a writable location") from error
