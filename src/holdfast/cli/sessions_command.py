"""`holdfast sessions`: list sessions; branch, remove and prune them."""

from pathlib import Path

import click

from holdfast.cli.show import ago, json_out, size
from holdfast.errors import LogLocked
from holdfast.log.retention import sweep_session
from holdfast.log.store import FileStore, FoundSession
from holdfast.log.titles import title_of
from holdfast.settings import SpillSettings, load_settings


@click.command(epilog="Example: holdfast sessions --all")
@click.option("--all", "everywhere", is_flag=True, help="Of every project, not only this one.")
@click.option("--branch", metavar="ID", help="Copy a session under a new id.")
@click.option(
    "--upto",
    type=click.IntRange(min=1),
    metavar="N",
    help="With --branch: up to and including entry N.",
)
@click.option("--delete", metavar="ID", help="Remove a session for good.")
@click.option(
    "--prune",
    is_flag=True,
    help="Remove sessions past log.retention_days, and results on disk past spill.retention_days.",
)
@click.option("--yes", is_flag=True, help="Do not ask before removing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def command(
    everywhere: bool,
    branch: str | None,
    upto: int | None,
    delete: str | None,
    prune: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """List the sessions of this project, the newest first."""
    store = FileStore()
    if upto is not None and not branch:
        raise click.UsageError("--upto goes with --branch")
    if branch:
        with store.branch(branch, upto=upto) as log:
            _say({"branched": log.header.session, "from": log.header.parent}, as_json)
    elif delete:
        _tell_removed(_remove(store, [store.find(delete)], yes), 0, as_json)
    elif prune:
        settings = load_settings(Path.cwd())
        store.sweep()
        removed = _remove(store, store.expired(settings.log.retention_days), yes)
        _tell_removed(removed, _sweep_results(store, settings.spill), as_json)
    else:
        _list(store.sessions(None if everywhere else Path.cwd()), everywhere, as_json)


def _say(facts: dict[str, str], as_json: bool) -> None:
    if as_json:
        json_out(facts)
    else:
        click.echo("  ".join(f"{key}: {value}" for key, value in facts.items()))


def _remove(store: FileStore, doomed: list[FoundSession], yes: bool) -> list[str]:
    if doomed and not yes:
        names = ", ".join(found.id for found in doomed[:5])
        click.confirm(f"Remove {len(doomed)} sessions for good ({names})?", abort=True, err=True)
    for found in doomed:
        store.delete(found.id)
    return [found.id for found in doomed]


def _sweep_results(store: FileStore, settings: SpillSettings) -> int:
    """Remove old results of the sessions that stay; each log says what is gone."""
    count = 0
    for found in store.sessions():
        try:
            count += sum(len(swept.files) for swept in sweep_session(found.path, settings))
        except LogLocked as error:
            click.echo(f"not swept: {error}", err=True)
    return count


def _tell_removed(removed: list[str], swept: int, as_json: bool) -> None:
    if as_json:
        json_out({"removed": removed, "swept": swept})
        return
    click.echo(f"{len(removed)} sessions removed.")
    if swept:
        click.echo(f"{swept} results on disk removed; the logs say which.")


def _list(sessions: list[FoundSession], everywhere: bool, as_json: bool) -> None:
    if as_json:
        json_out(
            [
                {
                    "id": found.id,
                    "title": title_of(found.path),
                    "modified": found.modified,
                    "bytes": found.bytes,
                    "directory": found.header.directory,
                    "parent": found.header.parent,
                    "path": str(found.path),
                }
                for found in sessions
            ]
        )
        return
    if not sessions:
        where = "" if everywhere else " in this project; --all shows every project's"
        click.echo(f"No sessions{where}.")
    for found in sessions:
        place = f"  {found.header.directory}" if everywhere else ""
        click.echo(
            f"{found.id}  {ago(found.modified):>14}  {size(found.bytes):>9}  {title_of(found.path)}{place}"
        )
