"""`holdfast import`: take a transcript of another agent into the store."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from holdfast.cli.show import json_out, reading, size
from holdfast.entries import AnyEntry
from holdfast.log import Header
from holdfast.store import FileStore, new_id
from holdfast.transcripts.formats import open_transcript
from holdfast.transcripts.scribe import Account


@click.command(epilog="Example: holdfast import ~/.claude/projects/my-project/1234.jsonl")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def command(file: Path, as_json: bool) -> None:
    """Import a transcript as a session. The file itself is never changed.

    Formats: Claude Code, Codex and pi sessions, Anthropic and OpenAI message lists, plain or
    gzipped. Sub-agents' files that lie beside a Claude Code transcript come along.
    """
    store, session = FileStore(), new_id()
    header = Header(
        session=session,
        created=file.stat().st_mtime if file.exists() else 0,
        directory=str(Path.cwd()),
    )
    with reading(file) as progress, open_transcript(file, progress) as transcript:
        path = store.add(header, transcript.entries)
    agents = list(_import_agents(file, path.with_suffix("") / "agents", header))
    account = transcript.account
    if as_json:
        json_out(
            {
                "session": session,
                "path": str(path),
                "format": transcript.format,
                "records": account.records,
                "skipped": dict(account.skipped),
                "malformed": account.malformed,
                "repaired": dict(account.repaired),
                "agents": agents,
            }
        )
        return
    click.echo(
        f"{session}  ({transcript.format}, {account.records:,} records, {size(path.stat().st_size)})"
    )
    for line in account_lines(account):
        click.echo(f"  {line}")
    if agents:
        click.echo(f"  {len(agents)} sub-agents came along: {', '.join(agents)}")
    click.echo(f"Next: holdfast context {session}")


def _import_agents(file: Path, directory: Path, header: Header) -> Iterator[str]:
    """Import the sub-agents' transcripts that the format keeps beside the session's."""
    from holdfast.log import write_log

    beside = file.with_name(file.name.split(".")[0]) / "subagents"
    for agent in sorted(beside.glob("agent-*.jsonl*")) if beside.is_dir() else ():
        id = agent.name.split(".")[0].removeprefix("agent-")
        with open_transcript(agent) as transcript:
            entries: Iterable[AnyEntry] = transcript.entries
            write_log(directory / f"{id}.jsonl", header, entries)
        yield id


def account_lines(account: Account) -> Iterator[str]:
    """Say in plain lines what of a transcript has no place in a view, and what was mended."""
    if account.skipped:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in account.skipped.most_common())
        yield f"not part of what a model sees: {kinds}"
    for what, count in account.repaired.most_common():
        yield f"mended: {count:,} {what}"
    if account.malformed:
        yield f"{len(account.malformed):,} malformed lines were left out:"
        for line, reason in account.malformed[:5]:
            yield f"  line {line}: {reason}"
