"""`holdfast run`: give the agent one task and let it work, without a screen."""

import asyncio
import signal
import sys

import click

from holdfast.cli import options
from holdfast.cli.agent_options import AgentOptions, agent_options
from holdfast.cli.output import json_line, json_out, say
from holdfast.cli.rendering import event_json, show, show_notices, show_where
from holdfast.log.spending import Spent, spent_in
from holdfast.turn.loop import Stopped


@click.command(epilog='Example: holdfast run --offline -p "add a docstring to main.py"')
@click.option("-p", "--prompt", default="", help="The task; a resumed session needs none.")
@agent_options
@options.as_json
@click.option("--stream-json", "as_stream", is_flag=True, help="Print one JSON object per event.")
def command(chosen: AgentOptions, prompt: str, as_json: bool, as_stream: bool) -> None:
    """Give the agent one task and let it work.

    Answers go to stdout, what the tools do to stderr. Questions cannot be asked: a tool call that
    needs permission is denied unless a rule or --mode allows it. The exit code is 0 only if the
    task was completed.
    """
    if not prompt and not chosen.resume:
        raise click.UsageError("give a task with -p, or a session to resume with --resume")
    if as_json and as_stream:
        raise click.UsageError("--json and --stream-json exclude each other; choose one")
    end, session, spent = asyncio.run(_work(chosen, prompt, quiet=as_json, as_stream=as_stream))
    if as_json:
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
        say(f"session {session}, ${spent.usd:.4f}", err=True)
    sys.exit(0 if end.reason == "completed" else 8)


async def _work(
    chosen: AgentOptions, prompt: str, *, quiet: bool, as_stream: bool
) -> tuple[Stopped, str, Spent]:
    end = Stopped(reason="aborted_streaming")
    async with chosen.running() as agent:
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, agent.abort.set)
        if chosen.resume and not (quiet or as_stream):
            show_where(agent)
        show_notices(agent)
        if as_stream:
            json_line({"type": "session", "id": agent.session.id})
        async for event in agent.work(prompt):
            if isinstance(event, Stopped):
                end = event
            if as_stream:
                line = event_json(event)
                if line is not None:
                    json_line(line)
            elif not quiet:
                show(event)
        spent = spent_in(agent.session.view.history)
        if as_stream:
            json_line({"type": "spent", "spent": spent})
        return end, agent.session.id, spent
