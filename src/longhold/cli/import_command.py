"""`longhold sessions import`: import another agent's transcript as a session."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from longhold.cli import options
from longhold.cli.output import reading, report
from longhold.core.log import Header
from longhold.core.log.store import FoundSession, new_id
from longhold.core.log.stores import default_store
from longhold.core.messages.text import human_size, pluralize
from longhold.insight.transcripts.formats import decode_path, open_transcript
from longhold.session.importing.transcript_writer import ImportAccount

SHOWN_LINES = 5


@click.command(epilog="Example: longhold sessions import ~/.claude/projects/my-project/1234.jsonl")
@click.argument("file", type=click.Path(path_type=Path))
@options.as_json
def command(file: Path, as_json: bool) -> None:
    """Import another agent's transcript as a session.

    Formats: Claude Code, Codex and pi sessions, Anthropic and OpenAI message lists, plain or
    gzipped. The calls of sub-agents count as calls of the session. The file itself is never
    changed.
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
