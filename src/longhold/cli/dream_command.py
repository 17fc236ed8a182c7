"""`longhold dream`: tidy the project's memories in one commit that can be undone."""

import asyncio
from pathlib import Path

import click

from longhold.cli import options
from longhold.cli.agent_options import running_agent
from longhold.cli.memory_command import memory_store
from longhold.cli.output import report, say
from longhold.core.memory.dream import DreamReport, dream
from longhold.core.memory.lock import DreamLock
from longhold.core.memory.paths import team_directory
from longhold.core.messages.text import clean_text
from longhold.core.models import open_model
from longhold.core.settings import Settings, load_settings


@click.command(epilog="Example: longhold dream --dry-run")
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@click.option("--model", help="Use this model; without one only safe changes are made.")
@options.base_url
@options.as_json
def command(dry_run: bool, model: str | None, base_url: str, as_json: bool) -> None:
    """Tidy the project's memories in one commit.

    Merges duplicates, marks memories that a newer one contradicts, repairs links, lists sources
    that changed, sorts the index. With a model also reviews the sessions since the last dream.
    `longhold memory undo` undoes the commit; Ctrl-C stops it without a trace.
    """
    settings = load_settings(Path.cwd())
    if model is not None:
        address = base_url or settings.model.base_url
        done = asyncio.run(_dream_with_model(model, address, settings, is_trial=dry_run))
    else:
        done = _dream_alone(settings, is_trial=dry_run)
    report(as_json, done, [f"{done.diff}{_summary(done, dry_run)}"])


def _dream_alone(settings: Settings, *, is_trial: bool) -> DreamReport:
    repository = team_directory(Path.cwd()).parent.parent
    with memory_store() as store:
        if is_trial:
            return dream(store, settings.dream, repository=repository, is_trial=True)
        lock = DreamLock(store.root)
        if dead := lock.release_dead():
            say(f"A dream of process {dead.pid} was killed and changed nothing.", err=True)
        with lock.hold(is_by_hand=True):
            return dream(store, settings.dream, repository=repository)


async def _dream_with_model(
    name: str, base_url: str, settings: Settings, *, is_trial: bool
) -> DreamReport:
    """Dream in a separate session, so that its calls are recorded and billed like any others."""
    model = open_model(name, base_url=base_url or None, is_typed=True)
    async with running_agent(model, settings, source="dream") as agent:
        return await agent.dream(is_trial=is_trial)


def _summary(done: DreamReport, dry_run: bool) -> str:
    left = "".join(f"\nLeft out: {clean_text(file)}, {why}." for file, why in done.dropped.items())
    if dry_run:
        return f"Would do: {done.line}.{left}"
    undo = f" To undo it: longhold memory undo {done.commit.id}" if done.commit else ""
    return f"{done.line.capitalize()}.{undo}{left}"
