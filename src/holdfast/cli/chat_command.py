"""`holdfast chat`: talk to the agent, line by line."""

import asyncio
import functools
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import get_args

import click

from holdfast.agent.agent import Agent
from holdfast.cli.context_command import lines
from holdfast.cli.line_input import LineInput, keep_terminal
from holdfast.cli.rendering import opened_model, read_system, show, show_where, tell, working_agent
from holdfast.cli.show import plain, tokens
from holdfast.cli.target import CommandTarget
from holdfast.errors import HoldfastError
from holdfast.models import Model, open_model
from holdfast.reports.context import describe
from holdfast.settings import Settings, load_settings
from holdfast.tools.permissions import Answer, Mode, Question
from holdfast.view.gauge import replay
from holdfast.view.window import window_for

SHOWN_LINES = 60
"""Of a value in a question; a whole file that is to be written need not scroll past."""

HELP = """/compact [WHAT]  let history become a summary that dwells on WHAT
/undo [N]        take that back, or entry N of what `holdfast explain` lists
/redo [N]        bring back what was taken back
/context         what fills the window
/agents          those who run, and those whose report is not read yet
/stop AGENT      stop one of them; nobody but you starts it again
/jobs            what is done beside the conversation: memory, dream, and its last steps
/jobs stop NAME  stop one of them; it then did not happen
/model NAME      let another model answer
/mode MODE       how freely tools may run: ask, accept_edits, plan, bypass
/exit            leave; `holdfast chat --resume newest` comes back"""


@click.command(epilog="Example: holdfast chat --offline")
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
def command(
    model: str | None,
    base_url: str | None,
    offline: bool,
    resume: str,
    mode: Mode | None,
    system: Path | None,
) -> None:
    """Talk to the agent. It asks before it does what nobody allowed; Ctrl-C stops it.

    For machines there is `holdfast run --json`.
    """
    text = read_system(system, resume)
    keep_terminal()
    settings = load_settings(Path.cwd())
    name = model or settings.model.name
    with opened_model(name, base_url or settings.model.base_url, offline) as opened:
        asyncio.run(_chat(opened, settings, resume, mode, text))


async def _chat(
    model: Model, settings: Settings, resume: str, mode: Mode | None, system: str
) -> None:
    typed = LineInput()
    ask = functools.partial(_ask, typed)
    async with working_agent(
        model,
        settings,
        directory=Path.cwd(),
        resume=resume,
        mode=mode,
        ask=ask,
        system=system,
        source="chat",
    ) as agent:
        click.echo(f"session {agent.session.id}, {model.name}. /help lists commands.")
        if resume:
            show_where(agent)
        tell(agent)
        while True:
            try:
                said = (await typed.read("\n> ")).strip()
            except EOFError:
                return
            if said in ("/exit", "/quit"):
                return
            if said.startswith("/"):
                try:
                    await _obey(agent, typed, said)
                except HoldfastError as error:
                    click.secho(str(error), fg="red", err=True)
            elif said:
                await _turn(agent, said)


async def _turn(agent: Agent, said: str) -> None:
    """Let the agent work; Ctrl-C stops it and leaves the session as it is."""
    with _stoppable(agent):
        async for event in agent.run(said):
            show(event)
    _show_room(agent)


@contextmanager
def _stoppable(agent: Agent) -> Iterator[None]:
    """Let Ctrl-C stop what the agent does, and nothing else."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, agent.abort.set)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def _show_room(agent: Agent) -> None:
    full = agent.session.fullness()
    left = full.window.percent_left(full.used_tokens)
    click.secho(f"[{tokens(full.used_tokens)} tokens, {left} % left]", dim=True, err=True)


async def _obey(agent: Agent, typed: LineInput, said: str) -> None:
    word, _, rest = said.partition(" ")
    rest = rest.strip()
    match word:
        case "/context":
            click.echo("\n".join(_context(agent)))
        case "/compact":
            await _compact(agent, rest)
        case "/undo" | "/redo" if not rest or rest.removeprefix("#").isdecimal():
            number = int(rest.removeprefix("#") or 0)
            session = agent.session
            click.echo(session.undo(number) if word == "/undo" else session.redo(number))
            _show_room(agent)
        case "/agents":
            told = agent.supervisor.lines() if agent.supervisor else []
            click.echo("\n".join(map(plain, told)) or "No agent is running.")
        case "/stop" if rest and agent.supervisor:
            is_stopped = await agent.supervisor.stop(rest, by_user=True)
            click.echo(f"{rest} {'was stopped' if is_stopped else 'is not running'}.")
        case "/jobs":
            verb, _, name = rest.partition(" ")
            if verb == "stop" and name in agent.background.jobs:
                await agent.background.job(name).stop()
            click.echo("\n".join(map(plain, agent.background.lines())) or "Nothing is under way.")
        case "/model" if rest:
            await _switch(agent, typed, rest)
        case "/mode" if rest in get_args(Mode):
            agent.gate.switch_mode(rest)  # type: ignore[arg-type]
            click.echo(f"mode: {rest}")
        case _:
            click.echo(HELP)


def _context(agent: Agent) -> list[str]:
    history = agent.session.view.history
    view, gauge = replay(history)
    context = describe(view, gauge, window_for(view.model, agent.engine.settings.window))
    return lines(CommandTarget(name=agent.session.id, format="holdfast", history=history), context)


async def _compact(agent: Agent, focus: str) -> None:
    """Let history become a summary; Ctrl-C leaves everything as it was."""
    with _stoppable(agent):
        entry = await agent.compact(focus)
    if entry is None:
        click.echo("Stopped; nothing was changed.")
        return
    click.echo(f"`/undo {entry.n}` brings everything back.")
    _show_room(agent)


async def _switch(agent: Agent, typed: LineInput, name: str) -> None:
    """Change the model; one with a smaller window than is used is warned about first."""
    full = agent.session.fullness()
    window = window_for(name, agent.engine.settings.window)
    if window.level(full.used_tokens) in ("auto", "blocking"):
        question = f"{name} takes {tokens(window.limit_tokens)} tokens and {tokens(full.used_tokens)} are used. Switch?"
        if (await typed.read(f"{question} [y/N] ")).strip().lower() not in ("y", "yes"):
            return
    opened = open_model(name)
    await agent.use_model(opened, "the user's wish")
    click.echo(f"{name} answers from here on.")


async def _ask(typed: LineInput, question: Question) -> Answer:
    """Ask the user about one tool call; all of it is shown, and nothing in it steers the terminal."""
    click.secho(f"\n{question.tool}: {plain(question.reason)}", fg="yellow", err=True)
    for key, value in question.given.items():
        lines = str(value).splitlines() or [""]
        click.echo(f"  {key}: {plain(lines[0])}", err=True)
        for line in lines[1:SHOWN_LINES]:
            click.echo(f"      {plain(line)}", err=True)
        if len(lines) > SHOWN_LINES:
            click.echo(f"      … and {len(lines) - SHOWN_LINES} more lines", err=True)
    always = f", a = always ({question.suggestion})" if question.suggestion else ""
    text = await typed.read(f"Allow? y = yes{always}, n or a reason = no: ")
    match text.strip().lower():
        case "y" | "yes":
            return Answer(choice="once")
        case "a" | "always" if question.suggestion:
            return Answer(choice="always")
        case "n" | "no" | "":
            return Answer(choice="no")
        case _:
            return Answer(choice="no", reason=f"the user said: {text.strip()}")
