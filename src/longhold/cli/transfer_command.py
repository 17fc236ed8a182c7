"""`longhold sessions import` and `export` convert sessions from and to other agents' formats."""

import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click

from longhold.cli import options
from longhold.cli.output import encoded_out, reading, report, say
from longhold.cli.target import OURS, open_target
from longhold.core.log import Header
from longhold.core.log.store import FoundSession, new_id
from longhold.core.log.stores import default_store
from longhold.core.messages.text import human_size, pluralize
from longhold.core.settings.private_files import write_new
from longhold.errors import StoreError
from longhold.insight.session_files import client_session
from longhold.insight.transcripts.formats import (
    CLIENTS,
    FORMATS,
    decode_path,
    load_format,
    losses,
    open_transcript,
)
from longhold.session.importing.transcript_writer import ImportAccount

SHOWN_LINES = 5


@click.command(epilog="Example: longhold sessions import ~/.claude/projects/my-project/1234.jsonl")
@click.argument("file", type=click.Path(path_type=Path))
@options.as_json
def import_file(file: Path, as_json: bool) -> None:
    """Import another agent's transcript as a session.

    The file is a session of Claude Code, Codex or pi, or a message list of Anthropic or OpenAI,
    plain or gzipped. The calls of sub-agents count as calls of the session. The file itself is
    never changed.
    """
    store, session = default_store(), new_id()
    with reading(file) as progress, open_transcript(file.absolute(), progress) as transcript:
        header = Header(
            session=session, created=file.stat().st_mtime, directory=decode_path(Path.cwd())
        )
        store.add(header, transcript.entries)
    made, account = store.find(session), transcript.account
    report(
        as_json,
        {
            "session": session,
            "path": decode_path(made.path) if isinstance(made, FoundSession) else "",
            "format": transcript.format,
            "records": account.records,
            "skipped": dict(account.skipped),
            "malformed": account.malformed,
            "repaired": dict(account.repaired),
        },
        [
            f"{session}  ({transcript.format}, {account.records:,} records, {human_size(made.bytes)})",
            *(f"  {line}" for line in _account_lines(account)),
            f"Next: longhold context {session}",
        ],
    )


def _account_lines(account: ImportAccount) -> Iterator[str]:
    if account.skipped:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in account.skipped.most_common())
        yield f"not part of what a model sees: {kinds}"
    for what, count in account.repaired.most_common():
        yield f"repaired: {count:,} {what}"
    yield from malformed_lines(account.malformed)


def malformed_lines(malformed: Sequence[tuple[int, str]]) -> Iterator[str]:
    if malformed:
        yield f"{pluralize(len(malformed), 'malformed line')} left out:"
        for line, reason in malformed[:SHOWN_LINES]:
            yield f"  line {line}: {reason}"


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
@click.option("--json", "as_json", is_flag=True, help="With --out, print the result as JSON.")
def export(session: str, format: str, out: Path | None, as_json: bool) -> None:
    """Write a session in another format.

    SESSION is an id, the start of an id, `newest`, or a file. The output contains what the model
    sees.
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
