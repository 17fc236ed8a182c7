"""`holdfast import`: take a transcript of another agent into the store."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from holdfast.cli.show import json_out, reading, size
from holdfast.errors import HoldfastError
from holdfast.log import Header, write_log
from holdfast.log.store import FileStore, new_id
from holdfast.messages import JsonObject
from holdfast.transcripts.formats import Transcript, open_transcript, printable
from holdfast.transcripts.writer import ImportAccount

SUFFIXES = (".jsonl", ".jsonl.gz")
"""How the names of transcripts end, plain and packed."""

SHOWN_LINES = 5
"""So many malformed lines are shown one by one; all of them are in the JSON."""


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
        directory=printable(Path.cwd()),
    )
    with reading(file) as progress, open_transcript(file, progress) as transcript:
        path = store.add(header, transcript.entries)
    agents = _import_agents(file, path.with_suffix("") / "agents", header)
    if as_json:
        json_out(_report(session, path, transcript, list(agents)))
        return
    records = f"{transcript.account.records:,} records"
    click.echo(f"{session}  ({transcript.format}, {records}, {size(path.stat().st_size)})")
    for line in (*account_lines(transcript.account), *_agent_lines(list(agents))):
        click.echo(f"  {line}")
    click.echo(f"Next: holdfast context {session}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Agent:
    """A sub-agent's transcript beside the session's, and why it could not come along, if so."""

    id: str
    problem: str = ""


def _report(session: str, path: Path, transcript: Transcript, agents: list[_Agent]) -> JsonObject:
    account = transcript.account
    return {
        "session": session,
        "path": printable(path),
        "format": transcript.format,
        "records": account.records,
        "skipped": dict(account.skipped),
        "malformed": account.malformed,
        "repaired": dict(account.repaired),
        "agents": [agent.id for agent in agents if not agent.problem],
        "agents_left_out": {agent.id: agent.problem for agent in agents if agent.problem},
    }


def _import_agents(file: Path, directory: Path, header: Header) -> Iterator[_Agent]:
    """Import the sub-agents' transcripts that the format keeps beside the session's."""
    beside = file.with_name(_stem(file)) / "subagents"
    found = [path for suffix in SUFFIXES for path in beside.glob(f"agent-*{suffix}")]
    for agent in sorted(found):
        name = _stem(agent).removeprefix("agent-")
        try:
            with open_transcript(agent) as transcript:
                write_log(directory / f"{name}.jsonl", header, transcript.entries)
        except HoldfastError as error:  # the session itself is stored; one agent less is no failure
            yield _Agent(id=printable(name), problem=printable(str(error)))
        else:
            yield _Agent(id=printable(name))


def _stem(file: Path) -> str:
    """Name a file without what says that it is a transcript, and packed; other dots stay."""
    suffix = next((suffix for suffix in SUFFIXES if file.name.endswith(suffix)), "")
    return file.name.removesuffix(suffix)


def _agent_lines(agents: list[_Agent]) -> Iterator[str]:
    came = [agent.id for agent in agents if not agent.problem]
    if came:
        yield f"{len(came)} sub-agents came along: {', '.join(came)}"
    for agent in agents:
        if agent.problem:
            yield f"sub-agent {agent.id} was left out: {agent.problem}"


def account_lines(account: ImportAccount) -> Iterator[str]:
    """Say in plain lines what of a transcript has no place in a view, and what was mended."""
    if account.skipped:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in account.skipped.most_common())
        yield f"not part of what a model sees: {kinds}"
    for what, count in account.repaired.most_common():
        yield f"mended: {count:,} {what}"
    yield from malformed_lines(account.malformed)


def malformed_lines(malformed: Sequence[tuple[int, str]]) -> Iterator[str]:
    """Say which lines of a transcript could not be read."""
    if malformed:
        yield f"{len(malformed):,} malformed lines were left out:"
        for line, reason in malformed[:SHOWN_LINES]:
            yield f"  line {line}: {reason}"
