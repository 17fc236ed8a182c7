"""`holdfast sessions`: list, branch, delete and prune sessions."""

from pathlib import Path

import click

from holdfast.cli import options
from holdfast.cli.output import ago, ask_yes_no, report, say, size
from holdfast.errors import LogLocked
from holdfast.log.retention import sweep_session
from holdfast.log.store import FileStore, FoundSession
from holdfast.log.titles import title_of
from holdfast.settings import SpillSettings, load_settings


@click.command(epilog="Example: holdfast sessions --all")
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

    Without an option, list those of this project, newest first.
    """
    store = FileStore()
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
        store.sweep()
        removed = _remove(store, store.expired(settings.log.retention_days), yes)
        _report_removed(removed, _sweep_results(store, settings.spill), as_json)
    else:
        for line in store.unreadable():
            say(line, err=True)
        _list(store.sessions(None if everywhere else Path.cwd()), everywhere, as_json)


def _remove(store: FileStore, doomed: list[FoundSession], yes: bool) -> list[str]:
    if doomed and not yes:
        names = ", ".join(found.id for found in doomed[:5])
        question = f"Delete {len(doomed)} sessions for good ({names})?"
        ask_yes_no(question, is_required=True, err=True)
    for found in doomed:
        store.delete(found.id)
    return [found.id for found in doomed]


def _sweep_results(store: FileStore, settings: SpillSettings) -> int:
    """Delete old results of the sessions that stay; each log records which."""
    count = 0
    for found in store.sessions():
        try:
            count += sum(len(swept.files) for swept in sweep_session(found.path, settings))
        except LogLocked as error:
            say(f"not swept: {error}", err=True)
    return count


def _report_removed(removed: list[str], swept: int, as_json: bool) -> None:
    lines = [f"{len(removed)} sessions removed."]
    if swept:
        lines.append(f"{swept} results on disk removed; the logs say which.")
    report(as_json, {"removed": removed, "swept": swept}, lines)


def _list(sessions: list[FoundSession], everywhere: bool, as_json: bool) -> None:
    found = [
        {
            "id": session.id,
            "title": title_of(session.path),
            "modified": session.modified,
            "bytes": session.bytes,
            "directory": session.header.directory,
            "parent": session.header.parent,
            "path": str(session.path),
        }
        for session in sessions
    ]
    lines = [
        f"{session.id}  {ago(session.modified):>14}  {size(session.bytes):>9}  {fields['title']}"
        + (f"  {session.header.directory}" if everywhere else "")
        for session, fields in zip(sessions, found, strict=True)
    ]
    where = "" if everywhere else " in this project; --all lists every project's"
    report(as_json, found, lines or [f"No sessions{where}."])
