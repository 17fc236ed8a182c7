"""`holdfast dream`: put the memories of this project in order, as one commit that can be undone."""

import asyncio
from pathlib import Path

import click

from holdfast.cli.memory_command import memory_store
from holdfast.cli.rendering import opened_model, working_agent
from holdfast.cli.show import harmless, json_out
from holdfast.memory.dream_offline import DreamReport, dream, dream_alone
from holdfast.memory.lock import DreamLock
from holdfast.memory.paths import team_directory
from holdfast.models import Model
from holdfast.settings import Settings, load_settings


@click.command(epilog="Example: holdfast dream --dry-run")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@click.option("--model", help="Let this model dream; without one only what is safe is done.")
@click.option("--base-url", help="Where the model's provider answers.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def command(dry_run: bool, model: str | None, base_url: str | None, as_json: bool) -> None:
    """Put this project's memories in order, with a model or without.

    Merges what says the same, marks what a newer memory contradicts, mends links, names sources
    that changed, orders the index. A model also looks into the sessions since the last dream. One
    commit: `holdfast memory undo` takes it back. Ctrl-C stops it, and then it never happened.
    """
    settings = load_settings(Path.cwd())
    if model is not None:
        with opened_model(model, base_url or settings.model.base_url, offline=False) as opened:
            report = asyncio.run(_with_model(opened, settings, is_trial=dry_run))
    else:
        report = _without(settings, is_trial=dry_run)
    if as_json:
        json_out(report)
        return
    click.echo(harmless(report.diff), nl=False)
    click.echo(_said(report, dry_run))


def _without(settings: Settings, *, is_trial: bool) -> DreamReport:
    repository = team_directory(Path.cwd()).parent.parent
    with memory_store() as store:
        if is_trial:
            return dream(store, settings.dream, repository=repository, is_trial=True)
        lock = DreamLock(store.root, stale_seconds=settings.dream.stale_minutes * 60)
        return dream_alone(store, settings.dream, lock, repository=repository, is_by_hand=True)


async def _with_model(model: Model, settings: Settings, *, is_trial: bool) -> DreamReport:
    """Dream in a session of its own, so that its calls are counted like any others."""
    async with working_agent(model, settings, directory=Path.cwd(), source="dream") as agent:
        return await agent.dream(is_trial=is_trial)


def _said(report: DreamReport, dry_run: bool) -> str:
    if report.wrong:
        return f"Would be refused: {harmless('; '.join(report.wrong))}."
    if dry_run:
        return f"Would do: {report.line}."
    undo = f" Take it back: holdfast memory undo {report.commit.id}" if report.commit else ""
    return f"{report.line.capitalize()}.{undo}"
