"""`holdfast run`: give the agent one task and let it work, without a screen."""

import asyncio
import signal
import sys
from pathlib import Path
from typing import get_args

import click
import msgspec

from holdfast.cli.rendering import (
    as_json,
    opened_model,
    read_system,
    show,
    show_where,
    tell,
    working_agent,
)
from holdfast.cli.show import json_out
from holdfast.log.spending import Spent, spent_in
from holdfast.models import Model
from holdfast.settings import Settings, load_settings
from holdfast.tools.permissions import Mode
from holdfast.turn.loop import Stopped


@click.command(epilog='Example: holdfast run --offline -p "add a docstring to main.py"')
@click.option("-p", "--prompt", default="", help="The task; without one a resumed session goes on.")
@click.option("--model", help="Who answers, instead of the setting model.name.")
@click.option("--base-url", help="Where the provider answers.")
@click.option(
    "--offline", is_flag=True, help="Answer with the simulator's digest brain; needs no key."
)
@click.option("--resume", metavar="ID", default="", help="Go on with a session; `newest` will do.")
@click.option("--mode", type=click.Choice(get_args(Mode)), help="How freely tools may run.")
@click.option(
    "--system",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A file whose text replaces the whole system prompt of a new session.",
)
@click.option("--json", "as_one", is_flag=True, help="Print one JSON object at the end.")
@click.option("--stream-json", "as_stream", is_flag=True, help="Print one JSON object per event.")
def command(
    prompt: str,
    model: str | None,
    base_url: str | None,
    offline: bool,
    resume: str,
    mode: Mode | None,
    system: Path | None,
    as_one: bool,
    as_stream: bool,
) -> None:
    """Work on one task until it is done.

    Answers go to stdout, what the tools do to stderr. Nobody can be asked: what needs a question
    is denied unless a rule or --mode allows it. The exit code is 0 only if the task completed.
    """
    if not prompt and not resume:
        raise click.UsageError("give a task with -p, or a session to go on with with --resume")
    if as_one and as_stream:
        raise click.UsageError("--json and --stream-json are two ways to print; choose one")
    text = read_system(system, resume)
    settings = load_settings(Path.cwd())
    name = model or settings.model.name
    with opened_model(name, base_url or settings.model.base_url, offline) as opened:
        end, session, spent = asyncio.run(
            _work(opened, settings, prompt, resume, mode, text, as_one=as_one, as_stream=as_stream)
        )
    if as_one:
        json_out(
            {
                "session": session,
                "reason": end.reason,
                "detail": end.detail,
                "text": end.text,
                "spent": spent,
            }
        )
    elif not as_stream:
        click.echo(f"session {session}, ${spent.usd:.4f}", err=True)
    sys.exit(0 if end.reason == "completed" else 8)


async def _work(
    model: Model,
    settings: Settings,
    prompt: str,
    resume: str,
    mode: Mode | None,
    system: str,
    *,
    as_one: bool,
    as_stream: bool,
) -> tuple[Stopped, str, Spent]:
    end = Stopped(reason="aborted_streaming")
    async with working_agent(
        model, settings, directory=Path.cwd(), resume=resume, mode=mode, system=system
    ) as agent:
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, agent.abort.set)
        if resume and not (as_one or as_stream):
            show_where(agent)
        tell(agent)
        if as_stream:
            click.echo(msgspec.json.encode({"type": "session", "id": agent.session.id}))
        async for event in agent.work(prompt):
            if isinstance(event, Stopped):
                end = event
            if as_stream:
                line = as_json(event)
                if line is not None:
                    click.echo(msgspec.json.encode(line))
            elif not as_one:
                show(event)
        spent = spent_in(agent.session.view.history)
        if as_stream:
            click.echo(msgspec.json.encode({"type": "spent", "spent": spent}))
        return end, agent.session.id, spent
