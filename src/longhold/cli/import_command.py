"""`longhold sessions import`: import another agent's transcript as a session."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from longhold.cli import options
from longhold.cli.output import reading, report
from longhold.core.log import Header, write_log
from longhold.core.log.entries import Imported
from longhold.core.log.store import FoundSession, Store, StoredSession, new_id
from longhold.core.log.stores import default_store
from longhold.core.log.titles import find_import_source
from longhold.core.messages.text import human_size, pluralize
from longhold.errors import LongholdError
from longhold.insight.transcripts.claude_code.agents import agent_files, agent_name
from longhold.insight.transcripts.formats import decode_path, open_transcript
from longhold.session.importing.transcript_writer import ImportAccount

SHOWN_LINES = 5


@click.command(epilog="Example: longhold sessions import ~/.claude/projects/my-project/1234.jsonl")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--again", is_flag=True, help="Import a file that was imported before.")
@options.as_json
def command(file: Path, again: bool, as_json: bool) -> None:
    """Import another agent's transcript as a session.

    Formats: Claude Code, Codex and pi sessions, Anthropic and OpenAI message lists, plain or
    gzipped. Transcripts of sub-agents next to a Claude Code transcript are imported with it. The
    file itself is never changed. A file that has not changed since its import is not imported
    twice.
    """
    store = default_store()
    earlier = _earlier_imports(store, file)
    same = [one for one in earlier if one.header.created == _read_modified(file)]
    if same and not again:
        _report_known(same[0], as_json)
    else:
        _import(store, file, earlier, as_json)


def _report_known(found: StoredSession, as_json: bool) -> None:
    lines = [
        f"Already imported as {found.id}; the file has not changed since.",
        "--again imports it once more.",
    ]
    document = {"session": found.id, "path": _path_of(found), "is_new": False}
    report(as_json, document, lines)


def _import(store: Store, file: Path, earlier: list[StoredSession], as_json: bool) -> None:
    session = new_id()
    header = Header(
        session=session,
        created=_read_modified(file),
        directory=decode_path(Path.cwd()),
    )
    with reading(file) as progress, open_transcript(file.absolute(), progress) as transcript:
        store.add(header, transcript.entries)
    made = store.find(session)
    found = list(_import_agents(file, store, made, header))
    agents = [agent for agent, problem in found if not problem]
    left_out = {agent: problem for agent, problem in found if problem}
    account = transcript.account
    records = f"{account.records:,} records"
    known = ", ".join(one.id for one in earlier)
    details = (
        *_account_lines(account),
        *_agent_lines(agents, left_out),
        *([f"earlier imports of this file: {known}"] if known else ()),
    )
    report(
        as_json,
        {
            "session": session,
            "is_new": True,
            "earlier": [one.id for one in earlier],
            "path": _path_of(made),
            "format": transcript.format,
            "records": account.records,
            "skipped": dict(account.skipped),
            "malformed": account.malformed,
            "repaired": dict(account.repaired),
            "agents": agents,
            "agents_left_out": left_out,
        },
        [
            f"{session}  ({transcript.format}, {records}, {human_size(made.bytes)})",
            *(f"  {line}" for line in details),
            f"Next: longhold context {session}",
        ],
    )


def _read_modified(file: Path) -> float:
    return file.stat().st_mtime if file.exists() else 0.0


def _path_of(found: StoredSession) -> str:
    return decode_path(found.path) if isinstance(found, FoundSession) else ""


def _earlier_imports(store: Store, file: Path) -> list[StoredSession]:
    """Find imports of a file, newest first; in a database only those of the unchanged file."""
    source = decode_path(file.absolute())
    return [
        one for one in store.sessions() if _source_of(store, one, _read_modified(file)) == source
    ]


def _source_of(store: Store, found: StoredSession, modified: float) -> str:
    if isinstance(found, FoundSession):
        return find_import_source(found.path)
    if found.header.created != modified:
        return ""
    last = store.load(found.id).entries[-3:]
    return next((one.source for one in last if isinstance(one, Imported)), "")


def _import_agents(
    file: Path, store: Store, made: StoredSession, header: Header
) -> Iterator[tuple[str, str]]:
    """Import the transcripts of sub-agents; yield each agent and why it was left out."""
    for agent in agent_files(file):
        name = agent_name(agent)
        try:
            with open_transcript(agent) as transcript:
                if isinstance(made, FoundSession):  # a file name need not be an id
                    path = made.directory / "agents" / f"{name}.jsonl"
                    write_log(path, header, transcript.entries)
                else:
                    store.add(header, transcript.entries, agent=f"{made.id}/{name}")
        except LongholdError as error:  # the session itself is stored already
            yield decode_path(name), decode_path(str(error))
        else:
            yield decode_path(name), ""


def _agent_lines(agents: list[str], left_out: dict[str, str]) -> Iterator[str]:
    if agents:
        yield f"{pluralize(len(agents), 'sub-agent')} imported: {', '.join(agents)}"
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
        yield f"{pluralize(len(malformed), 'malformed line')} left out:"
        for line, reason in malformed[:SHOWN_LINES]:
            yield f"  line {line}: {reason}"
