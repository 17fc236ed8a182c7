"""`longhold sessions`: list, branch, delete and prune sessions."""

import os
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from longhold.cli import options
from longhold.cli.output import ask_yes_no, report, say
from longhold.core.log.cursor import clamp_time
from longhold.core.log.results import DAY_SECONDS
from longhold.core.log.store import FileStore, FoundSession, Store, StoredSession, sweep_session
from longhold.core.log.stores import default_store
from longhold.core.messages.text import dollars, pluralize
from longhold.core.settings import SpillSettings, load_settings
from longhold.errors import LogLocked
from longhold.insight.report import SessionSummary, summarise
from longhold.insight.session_files import OURS, find_sessions, index_path
from longhold.insight.session_index import open_index
from longhold.insight.words import SessionWords


@click.command(epilog="Example: longhold sessions --all")
@click.option("--all", "everywhere", is_flag=True, help="List those of every project.")
@click.option("--branch", metavar="ID", help="Copy a session under a new id.")
@click.option(
    "--upto",
    type=click.IntRange(min=1),
    metavar="N",
    help="With --branch: only up to and including entry N.",
)
@click.option("--delete", metavar="ID", help="Delete a session for good.")
@click.option(
    "--prune",
    is_flag=True,
    help="Delete sessions past log.retention_days and stored results past spill.retention_days.",
)
@click.option("--yes", is_flag=True, help="Do not ask before deleting.")
@options.as_json
def command(
    everywhere: bool,
    branch: str | None,
    upto: int | None,
    delete: str | None,
    prune: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """List, branch, delete and prune sessions.

    Without an option, list those of this project, newest first: when each was last answered,
    whose it is, the model, and what it cost (~ where some of that is an estimate).
    """
    store = default_store()
    if upto is not None and not branch:
        raise click.UsageError("--upto goes with --branch")
    if branch:
        with store.branch(branch, upto=upto) as log:
            facts = {"branched": log.header.session, "from": log.header.parent}
            report(as_json, facts, ["  ".join(f"{key}: {value}" for key, value in facts.items())])
    elif delete:
        _report_removed(_remove(store, [store.find(delete)], yes), 0, as_json)
    elif prune:
        settings = load_settings(Path.cwd())
        removed = _remove(store, _find_expired(store, settings.log.retention_days), yes)
        swept = 0
        if isinstance(store, FileStore):
            store.sweep()
            swept = _sweep_results(store, settings.spill)
        _report_removed(removed, swept, as_json)
    else:
        for line in store.unreadable() if isinstance(store, FileStore) else ():
            say(line, err=True)
        _list(store, None if everywhere else Path.cwd(), as_json)


def _find_expired(store: Store, retention_days: int) -> list[StoredSession]:
    oldest = time.time() - retention_days * DAY_SECONDS
    return [found for found in store.sessions() if retention_days and found.modified < oldest]


def _remove(store: Store, doomed: Sequence[StoredSession], yes: bool) -> list[str]:
    if doomed and not yes:
        names = ", ".join(found.id for found in doomed[:5])
        question = f"Delete {pluralize(len(doomed), 'session')} for good ({names})?"
        ask_yes_no(question, is_required=True, err=True)
    for found in doomed:
        store.delete(found.id)
    with open_index() as index:
        index.forget(found.path for found in doomed if isinstance(found, FoundSession))
    if doomed:
        with closing(SessionWords()) as words:
            words.renew()  # so that a search does not find deleted sessions
    return [found.id for found in doomed]


def _sweep_results(store: FileStore, settings: SpillSettings) -> int:
    """Delete old results of the remaining sessions; each log records which."""
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
        lines.append(f"{pluralize(swept, 'result')} on disk removed; the logs say which.")
    report(as_json, {"removed": removed, "swept": swept}, lines)


def _list(store: Store, directory: Path | None, as_json: bool) -> None:
    sessions, everywhere = store.sessions(directory), directory is None
    paths = {found.id: found.path for found in sessions if isinstance(found, FoundSession)}
    facts = session_facts(list(paths.values())) if paths else {}
    found = [
        {
            "id": session.id,
            "title": store.title(session),
            "modified": session.modified,
            "bytes": session.bytes,
            "directory": session.header.directory,
            "parent": session.header.parent,
            "path": str(paths.get(session.id, "")),
            **asdict(session_summary(paths.get(session.id), facts)),
        }
        for session in sessions
    ]
    lines = [_line(fields, everywhere) for fields in found]
    where = "" if everywhere else " in this project; --all lists every project's"
    report(as_json, found, lines or [f"No sessions{where}."])


def session_summary(path: Path | None, facts: dict[str, SessionSummary]) -> SessionSummary:
    """Describe a session from the index of files, which lacks sessions in a database."""
    if path is None:
        return SessionSummary(agent=OURS)
    return facts.get(index_path(Path(os.path.realpath(path))), SessionSummary())


def session_facts(paths: list[Path]) -> dict[str, SessionSummary]:
    with open_index() as index:
        index.refresh(find_sessions(paths))
        return summarise(index, paths)


def _line(fields: dict[str, Any], everywhere: bool) -> str:
    at = datetime.fromtimestamp(clamp_time(fields["last_at"]) or fields["modified"])
    cost = dollars(fields["usd"]) if fields["calls"] else ""
    model = fields["model"].removeprefix("claude-")
    return (
        f"{fields['id']}  {at:%Y-%m-%d %H:%M}  {fields['agent']:<11} {model:<20.20} "
        f"{'~' if fields['is_estimated'] else ' '}{cost:<11} {fields['title']}"
        + (f"  {fields['directory']}" if everywhere else "")
    ).rstrip()
