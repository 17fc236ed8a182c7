"""`holdfast import`: import another agent's transcript as a session."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from holdfast.cli import options
from holdfast.cli.output import reading, report, size
from holdfast.errors import HoldfastError
from holdfast.log import Header, write_log
from holdfast.log.store import FileStore, new_id
from holdfast.transcripts.claude_code.agents import agent_files, agent_name
from holdfast.transcripts.formats import open_transcript, printable
from holdfast.transcripts.writer import ImportAccount

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
    found = list(_import_agents(file, path.with_suffix("") / "agents", header))
    agents = [agent for agent, problem in found if not problem]
    left_out = {agent: problem for agent, problem in found if problem}
    account = transcript.account
    records = f"{account.records:,} records"
    details = (*_account_lines(account), *_agent_lines(agents, left_out))
    report(
        as_json,
        {
            "session": session,
            "path": printable(path),
            "format": transcript.format,
            "records": account.records,
            "skipped": dict(account.skipped),
            "malformed": account.malformed,
            "repaired": dict(account.repaired),
            "agents": agents,
            "agents_left_out": left_out,
        },
        [
            f"{session}  ({transcript.format}, {records}, {size(path.stat().st_size)})",
            *(f"  {line}" for line in details),
            f"Next: holdfast context {session}",
        ],
    )


def _import_agents(file: Path, directory: Path, header: Header) -> Iterator[tuple[str, str]]:
    """Import the transcripts beside the session's; yield each agent and why it was left out."""
    for agent in agent_files(file):
        name = agent_name(agent)
        try:
            with open_transcript(agent) as transcript:
                write_log(directory / f"{name}.jsonl", header, transcript.entries)
        except HoldfastError as error:  # the session itself is stored already
            yield printable(name), printable(str(error))
        else:
            yield printable(name), ""


def _agent_lines(agents: list[str], left_out: dict[str, str]) -> Iterator[str]:
    if agents:
        yield f"{len(agents)} sub-agents imported: {', '.join(agents)}"
    for agent, problem in left_out.items():
        yield f"sub-agent {agent} was left out: {problem}"


def _account_lines(account: ImportAccount) -> Iterator[str]:
    if account.skipped:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in account.skipped.most_common())
        yield f"not part of what a model sees: {kinds}"
    for what, count in account.repaired.most_common():
        yield f"repaired: {count:,} {what}"
    yield from malformed_lines(account.malformed)


def malformed_lines(malformed: Sequence[tuple[int, str]]) -> Iterator[str]:
    if malformed:
        yield f"{len(malformed):,} malformed lines were left out:"
        for line, reason in malformed[:SHOWN_LINES]:
            yield f"  line {line}: {reason}"
