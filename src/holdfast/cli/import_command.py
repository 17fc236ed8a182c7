"""`holdfast import`: import another agent's transcript as a session."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from holdfast.cli import options
from holdfast.cli.output import reading, report, size
from holdfast.errors import HoldfastError
from holdfast.log import Header, write_log
from holdfast.log.store import FileStore, new_id
from holdfast.messages import JsonObject
from holdfast.transcripts.formats import Transcript, open_transcript, printable
from holdfast.transcripts.writer import ImportAccount

SUFFIXES = (".jsonl", ".jsonl.gz")
"""Of transcripts, plain and gzipped."""
SHOWN_LINES = 5
"""Of the malformed ones; --json has all of them."""


@click.command(epilog="Example: holdfast import ~/.claude/projects/my-project/1234.jsonl")
@click.argument("file", type=click.Path(path_type=Path))
@options.as_json
def command(file: Path, as_json: bool) -> None:
    """Import another agent's transcript as a session.

    Formats: Claude Code, Codex and pi sessions, Anthropic and OpenAI message lists, plain or
    gzipped. Transcripts of sub-agents beside a Claude Code transcript are imported with it. The
    file itself is never changed.
    """
    store, session = FileStore(), new_id()
    header = Header(
        session=session,
        created=file.stat().st_mtime if file.exists() else 0,
        directory=printable(Path.cwd()),
    )
    with reading(file) as progress, open_transcript(file, progress) as transcript:
        path = store.add(header, transcript.entries)
    agents = list(_import_agents(file, path.with_suffix("") / "agents", header))
    fields = _fields(session, path, transcript, agents)
    report(as_json, fields, _lines(session, path, transcript, agents))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Agent:
    """A sub-agent's transcript beside the session's, and why it was left out, if it was."""

    id: str
    problem: str = ""


def _lines(session: str, path: Path, transcript: Transcript, agents: list[_Agent]) -> Iterator[str]:
    records = f"{transcript.account.records:,} records"
    yield f"{session}  ({transcript.format}, {records}, {size(path.stat().st_size)})"
    for line in (*_account_lines(transcript.account), *_agent_lines(agents)):
        yield f"  {line}"
    yield f"Next: holdfast context {session}"


def _fields(session: str, path: Path, transcript: Transcript, agents: list[_Agent]) -> JsonObject:
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
    beside = file.with_name(_stem(file)) / "subagents"
    found = [path for suffix in SUFFIXES for path in beside.glob(f"agent-*{suffix}")]
    for agent in sorted(found):
        name = _stem(agent).removeprefix("agent-")
        try:
            with open_transcript(agent) as transcript:
                write_log(directory / f"{name}.jsonl", header, transcript.entries)
        except HoldfastError as error:  # the session itself is stored already
            yield _Agent(id=printable(name), problem=printable(str(error)))
        else:
            yield _Agent(id=printable(name))


def _stem(file: Path) -> str:
    suffix = next((suffix for suffix in SUFFIXES if file.name.endswith(suffix)), "")
    return file.name.removesuffix(suffix)


def _agent_lines(agents: list[_Agent]) -> Iterator[str]:
    came = [agent.id for agent in agents if not agent.problem]
    if came:
        yield f"{len(came)} sub-agents imported: {', '.join(came)}"
    for agent in agents:
        if agent.problem:
            yield f"sub-agent {agent.id} was left out: {agent.problem}"


def _account_lines(account: ImportAccount) -> Iterator[str]:
    if account.skipped:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in account.skipped.most_common())
        yield f"not part of what a model sees: {kinds}"
    for what, count in account.repaired.most_common():
        yield f"repaired: {count:,} {what}"
    yield from malformed_lines(account.malformed)


def malformed_lines(malformed: Sequence[tuple[int, str]]) -> Iterator[str]:
    """Say which lines of a transcript could not be read."""
    if malformed:
        yield f"{len(malformed):,} malformed lines were left out:"
        for line, reason in malformed[:SHOWN_LINES]:
            yield f"  line {line}: {reason}"
