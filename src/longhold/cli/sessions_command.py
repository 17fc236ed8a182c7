"""`longhold sessions`: list, branch, delete and prune sessions, and the commands on their logs."""

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

import click

from longhold.cli import LazyGroup, options, store_command
from longhold.cli.output import ask_yes_no, report, say
from longhold.core.log.cursor import clamp_time
from longhold.core.log.store import (
    FileStore,
    FoundSession,
    Store,
    StoredSession,
    list_expired,
    sweep_session,
)
from longhold.core.log.stores import default_store
from longhold.core.messages.text import clean_text, dollars, pluralize, shorten
from longhold.core.models.capabilities import canonical_name
from longhold.core.settings import SpillSettings, home, load_settings
from longhold.core.settings.private_files import sweep
from longhold.core.settings.project import project_root
from longhold.errors import LogLocked
from longhold.insight.report import SessionSummary, summarise
from longhold.insight.session_files import ID_CHARS, OURS, agent_roots, find_sessions, index_path
from longhold.insight.session_index import open_index
from longhold.insight.session_search import SessionWords

LEAST_WIDTH = 80
PARTS = {
    "check": ("Read every session and report damage.", "store_command:check"),
    "copy": ("Copy sessions from one store to another.", "store_command:copy"),
    "export": ("Write a session in another format.", "transfer_command:export"),
    "forget": ("Erase a person's data for good.", "store_command:forget"),
    "import": ("Import another agent's transcript as a session.", "transfer_command:import_file"),
    "migrate": ("Create or update the tables of a database.", "store_command:migrate"),
    "notes": ("Show or edit a session's notes.", "notes_command:command"),
}


@click.group(
    cls=LazyGroup,
    table=PARTS,
    invoke_without_command=True,
    epilog="Example: longhold sessions --all",
)
@click.pass_context
@click.option("--all", "everywhere", is_flag=True, help="List the sessions of every project.")
@click.option("--branch", metavar="ID", help="Copy a session under a new id.")
@click.option("--delete", metavar="ID", help="Delete a session for good.")
@click.option(
    "--prune",
    is_flag=True,
    help="Delete sessions past log.retention_days and stored results past spill.retention_days.",
)
@click.option(
    "--archive",
    metavar="STORE",
    help="With --prune, first copy to this directory or database, and delete only complete copies.",
)
@click.option("--yes", is_flag=True, help="Do not ask before deleting.")
@options.as_json
def command(
    context: click.Context,
    everywhere: bool,
    branch: str | None,
    delete: str | None,
    prune: bool,
    archive: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """List, import, export, copy, branch and delete sessions.

    Without an option, the command lists this project's sessions of Longhold, Claude Code, Codex and
    pi, newest first. A line shows the time of the last answer, the client, the model, and the cost
    (~ if partly estimated).
    """
    if context.invoked_subcommand:
        return
    store = default_store()
    if branch:
        with store.branch(store.find(branch, by_prefix=True).id) as log:
            facts = {"branched": log.header.session, "from": log.header.parent}
            report(as_json, facts, ["  ".join(f"{key}: {value}" for key, value in facts.items())])
    elif delete:
        _report_removed(_remove(store, [store.find(delete, by_prefix=True)], yes), 0, as_json)
    elif prune:
        settings = load_settings(Path.cwd())
        removed = _remove(store, list_expired(store, settings.log.retention_days), yes, archive)
        swept = 0
        if isinstance(store, FileStore):
            sweep(store.root)  # files that killed imports left
            swept = _sweep_results(store, settings.spill)
        _report_removed(removed, swept, as_json)
    else:
        for line in store.unreadable() if isinstance(store, FileStore) else ():
            say(line, err=True)
        _list(store, None if everywhere else Path.cwd(), as_json)


def _remove(
    store: Store, doomed: Sequence[StoredSession], yes: bool, archive: str | None = None
) -> list[str]:
    if doomed and not yes:
        names = ", ".join(found.id for found in doomed[:5])
        question = f"Delete {pluralize(len(doomed), 'session')} for good ({names})?"
        ask_yes_no(question, is_required=True, err=True)
    removed = []
    for found in store_command.archive(store, archive, doomed) if archive else doomed:
        store.delete(found.id)
        removed.append(found)
    with open_index() as index:
        index.forget(found.path for found in removed if isinstance(found, FoundSession))
    if removed:
        with closing(SessionWords()) as words:
            words.renew()  # so that a search does not find deleted sessions
    return [found.id for found in removed]


def _sweep_results(store: FileStore, settings: SpillSettings) -> int:
    """Delete old results of the remaining sessions. Each log records the deleted results."""
    count = 0
    for found in store.sessions():
        try:
            count += sum(len(swept.files) for swept in sweep_session(found.path, settings))
        except LogLocked as error:
            say(f"not swept: {error}", err=True)
    return count


def _report_removed(removed: list[str], swept: int, as_json: bool) -> None:
    lines = [f"{pluralize(len(removed), 'session')} removed."]
    if swept:
        lines.append(f"{pluralize(swept, 'result')} on disk removed; the logs list them.")
    report(as_json, {"removed": removed, "swept": swept}, lines)


def _list(store: Store, directory: Path | None, as_json: bool) -> None:
    everywhere = directory is None
    found = list_own(store, store.sessions(directory)) + _list_foreign(directory)
    found.sort(key=lambda fields: -(clamp_time(fields["last_at"]) or fields["modified"]))
    lines = [session_line(fields, everywhere) for fields in found]
    where = "" if everywhere else " in this project; --all lists every project's"
    report(as_json, found, lines or [f"No sessions{where}."])


def list_own(store: Store, sessions: Sequence[StoredSession]) -> list[dict[str, Any]]:
    """Describe sessions of Longhold. The index has no figures for sessions in a database."""
    paths = {found.id: found.path for found in sessions if isinstance(found, FoundSession)}
    facts: dict[str, SessionSummary] = {}
    if paths:
        with open_index() as index:
            index.refresh(find_sessions(paths.values()))
            facts = summarise(index, list(paths.values()))
    known = {id: index_path(Path(os.path.realpath(path))) for id, path in paths.items()}
    return [
        {
            **asdict(facts.get(known.get(session.id, ""), SessionSummary(agent=OURS))),
            "id": session.id,
            "title": store.title(session),
            "modified": session.modified,
            "bytes": session.bytes,
            "directory": session.header.directory,
            "parent": session.header.parent,
            "path": str(paths.get(session.id, "")),
        }
        for session in sessions
    ]


def _list_foreign(directory: Path | None) -> list[dict[str, Any]]:
    from longhold.cli.report_command import fresh_index

    roots = [root for agent, places in agent_roots().items() if agent != OURS for root in places]
    files = {index_path(file.path): file for file in find_sessions(roots)}
    with fresh_index(list(files.values())) as index:
        facts = summarise(index, roots)
    here = {str(directory.resolve()), str(project_root(directory))} if directory else set()
    return [
        {
            **asdict(known),
            "id": known.session or file.path.stem,
            "modified": file.modified,
            "bytes": file.bytes,
            "parent": "",
            "path": path,
        }
        for path, known in facts.items()
        if (file := files.get(path)) and (directory is None or known.directory in here)
    ]


def session_line(fields: dict[str, Any], everywhere: bool = False) -> str:
    """Describe a session in one line of the terminal. Other agents' ids are shortened."""
    at = datetime.fromtimestamp(clamp_time(fields["last_at"]) or fields["modified"])
    cost = dollars(fields["usd"]) if fields["calls"] else ""
    model = canonical_name(fields["model"]).removeprefix("claude-")
    is_own = not fields["path"] or Path(fields["path"]).is_relative_to(home())
    id = fields["id"] if is_own else fields["id"][:ID_CHARS]
    where = f"{fields['directory']}  " if everywhere else ""
    line = (
        f"{id:<{ID_CHARS}}  {at:%Y-%m-%d %H:%M}  {fields['agent']:<11} {model:<12.12} "
        f"{'~' if fields['is_estimated'] else ' '}{cost:<9} {where}{fields['title']}"
    )
    return shorten(clean_text(line).rstrip(), max(get_terminal_size().columns, LEAST_WIDTH))
