"""`longhold worker`: run the queued jobs of sessions in a database."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from longhold.cli import options
from longhold.cli.output import json_line, say
from longhold.core.log.stores import VARIABLE, default_store, read_store_name
from longhold.core.messages.text import clean_text
from longhold.core.settings import Mode, load_settings
from longhold.errors import ConfigError, LongholdError

if TYPE_CHECKING:
    from longhold.core.log.queued_job import SessionJob


@click.command(epilog="Example: longhold worker --add resume user-7")
@click.option("--add", nargs=2, metavar="JOB SESSION", help="Queue a job and exit.")
@click.option("--model", default="", help="Use this model instead of each session's own.")
@options.base_url
@click.option("--mode", type=click.Choice(get_args(Mode)), help="The permission mode of tools.")
@click.option("--at-once", default=1, metavar="N", help="Number of parallel jobs.")
@click.option("--until-done", is_flag=True, help="Exit when no job is left.")
@options.as_json
def command(
    add: tuple[str, str] | None,
    model: str,
    base_url: str,
    mode: Mode | None,
    at_once: int,
    until_done: bool,
    as_json: bool,
) -> None:
    """Run jobs on sessions in a database: resumed turns, memories, notes.

    LONGHOLD_STORE names the database. A JOB is `resume` (continue a turn that waits for an answer),
    `extract` (look for memories), `dream` (tidy the project's memories) or `notes`. Any number of
    workers may run. If a worker dies, the others take over its jobs. Each job runs once. --json
    prints one object per job.
    """
    url = read_store_name()
    if "://" not in url or url.startswith("file:"):
        raise ConfigError(f"a worker needs a database: set {VARIABLE} to its postgresql:// address")
    from longhold.core.log.stores.postgres.queue import open_queue  # needs an extra

    tell = partial(_tell, as_json)
    run = partial(_run, model=model, base_url=base_url, mode=mode, tell=tell)

    logging.getLogger("procrastinate.worker").addFilter(_is_not_told)

    async def work() -> None:
        from longhold.agent.fleet import job_for

        async with open_queue(url, load_settings().store, run) as queue:
            if add is None:
                await queue.work(at_once=at_once, is_endless=not until_done)
                return
            kind: Any = add[0]
            job = job_for(default_store(), kind, add[1])
            is_new = await queue.put(job)
            tell(job, "queued" if is_new else "is already queued")

    asyncio.run(work())


def _is_not_told(record: logging.LogRecord) -> bool:
    """Return False for the queue's traceback of a failure that was already reported in one line."""
    return not (record.exc_info and isinstance(record.exc_info[1], LongholdError))


def _tell(as_json: bool, job: "SessionJob", said: str, *, is_failure: bool = False) -> None:
    if as_json:
        named = {"job": job.kind, "session": job.session, "position": job.position}
        json_line({**named, "failed" if is_failure else "done": said})
    else:
        say(f"{job.kind} of {job.session}: {clean_text(said)}", err=is_failure)


async def _run(
    job: "SessionJob", *, model: str, base_url: str, mode: Mode | None, tell: Callable[..., None]
) -> str:
    from longhold.agent.fleet import run_job
    from longhold.core.models import open_model

    address = base_url or load_settings(Path.cwd()).model.base_url

    try:
        done = await run_job(
            job,
            default_store(),
            lambda name: open_model(model or name, base_url=address or None, is_typed=bool(model)),
            mode,
        )
    except LongholdError as error:
        tell(job, str(error), is_failure=True)
        raise
    tell(job, done)
    return done
