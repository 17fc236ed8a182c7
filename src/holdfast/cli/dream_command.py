"""`holdfast dream`: put the memories of this project in order, as one commit that can be undone."""

from pathlib import Path

import click

from holdfast.cli.memory_command import memory_store
from holdfast.cli.show import harmless, json_out
from holdfast.memory.dream import DreamReport, dream, dream_alone
from holdfast.memory.lock import DreamLock
from holdfast.memory.paths import team_directory
from holdfast.settings import load_settings


@click.command(epilog="Example: holdfast dream --dry-run")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def command(dry_run: bool, as_json: bool) -> None:
    """Put this project's memories in order, without a model.

    Merges what says the same, marks what a newer memory contradicts, mends links, names sources
    that changed, orders the index. One commit: `holdfast memory undo` takes it back.
    """
    settings = load_settings(Path.cwd()).dream
    repository = team_directory(Path.cwd()).parent.parent
    with memory_store() as store:
        if dry_run:
            report = dream(store, settings, repository=repository, is_trial=True)
        else:
            lock = DreamLock(store.root, stale_seconds=settings.stale_minutes * 60)
            report = dream_alone(store, settings, lock, repository=repository)
    if as_json:
        json_out(report)
        return
    click.echo(harmless(report.diff), nl=False)
    click.echo(_said(report, dry_run))


def _said(report: DreamReport, dry_run: bool) -> str:
    if dry_run:
        return f"Would do: {report.line}."
    undo = f" Take it back: holdfast memory undo {report.commit.id}" if report.commit else ""
    return f"{report.line.capitalize()}.{undo}"
