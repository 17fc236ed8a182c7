"""`holdfast chat`: talk to the agent, line by line."""

import asyncio
import functools
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import get_args

import click

from holdfast.agent.agent import Agent
from holdfast.cli.agent_options import AgentOptions, agent_options
from holdfast.cli.context_command import lines
from holdfast.cli.line_input import LineInput, keep_terminal
from holdfast.cli.output import plain, say, say_below, tokens
from holdfast.cli.rendering import show, show_notices, show_where
from holdfast.cli.target import OURS, CommandTarget
from holdfast.errors import HoldfastError
from holdfast.models import open_model
from holdfast.reports.context import describe
from holdfast.tools.permissions import Answer, Mode, Question
from holdfast.view.gauge import replay
from holdfast.view.window import window_for

SHOWN_LINES = 60
"""Of a value in a question; a whole file to be written need not scroll past."""

HELP = """/compact [WHAT]  summarise the history, with a focus on WHAT
/undo [N]        undo the newest compaction, or entry N as `holdfast explain` lists them
/redo [N]        re-apply an undone change
/context         show what fills the window
/agents          list running agents, and those whose report has not been read
/stop AGENT      stop an agent; only you can start it again
/jobs            list background jobs (memory, dream) and their last steps
/jobs stop NAME  stop a background job and discard its work
/model NAME      switch to another model
/mode MODE       how freely tools may run: ask, accept_edits, plan, bypass
/exit            leave; `holdfast chat --resume newest` resumes"""


@click.command(epilog="Example: holdfast chat --offline")
@agent_options
def command(chosen: AgentOptions) -> None:
    """Talk to the agent.

    It asks before using a tool that no rule allows; Ctrl-C stops it. For JSON there is
    `holdfast run --json`.
    """
    keep_terminal()
    asyncio.run(_chat(chosen))


async def _chat(chosen: AgentOptions) -> None:
    typed = LineInput()
    async with chosen.running(ask=functools.partial(_ask, typed), source="chat") as agent:
        say(f"session {agent.session.id}, {agent.model.name}. /help lists commands.")
        if chosen.resume:
            show_where(agent)
        show_notices(agent)
        while True:
            try:
                said = (await typed.read("\n> ")).strip()
            except EOFError:
                return
            if said in ("/exit", "/quit"):
                return
            if said.startswith("/"):
                try:
                    await _run_slash_command(agent, typed, said)
                except HoldfastError as error:
                    say(str(error), fg="red", err=True)
            elif said:
                await _turn(agent, said)


async def _turn(agent: Agent, said: str) -> None:
    with _stoppable(agent):
        async for event in agent.run(said):
            show(event)
    _show_room(agent)


@contextmanager
def _stoppable(agent: Agent) -> Iterator[None]:
    """Make Ctrl-C stop the agent's work instead of the program."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, agent.abort.set)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def _show_room(agent: Agent) -> None:
    full = agent.session.fullness()
    left = full.window.percent_left(full.used_tokens)
    say(f"[{tokens(full.used_tokens)} tokens, {left} % left]", dim=True, err=True)


async def _run_slash_command(agent: Agent, typed: LineInput, said: str) -> None:
    word, _, rest = said.partition(" ")
    rest = rest.strip()
    match word:
        case "/context":
            say("\n".join(_context(agent)))
        case "/compact":
            await _compact(agent, rest)
        case "/undo" | "/redo" if not rest or rest.removeprefix("#").isdecimal():
            number = int(rest.removeprefix("#") or 0)
            session = agent.session
            say(session.undo(number) if word == "/undo" else session.redo(number))
            _show_room(agent)
        case "/agents":
            running = agent.supervisor.lines() if agent.supervisor else []
            say("\n".join(map(plain, running)) or "No agent is running.")
        case "/stop" if rest and agent.supervisor:
            is_stopped = await agent.supervisor.stop(rest, by_user=True)
            say(f"{rest} {'was stopped' if is_stopped else 'is not running'}.")
        case "/jobs":
            verb, _, name = rest.partition(" ")
            if verb == "stop" and name in agent.background.jobs:
                await agent.background.job(name).stop()
            say("\n".join(map(plain, agent.background.lines())) or "No job is running.")
        case "/model" if rest:
            await _switch(agent, typed, rest)
        case "/mode" if rest in get_args(Mode):
            agent.gate.switch_mode(rest)  # type: ignore[arg-type]
            say(f"mode: {rest}")
        case _:
            say(HELP)


def _context(agent: Agent) -> Iterator[str]:
    history = agent.session.view.history
    view, gauge = replay(history)
    context = describe(view, gauge, window_for(view.model, agent.engine.settings.window))
    return lines(CommandTarget(name=agent.session.id, format=OURS, history=history), context)


async def _compact(agent: Agent, focus: str) -> None:
    with _stoppable(agent):
        entry = await agent.compact(focus)
    if entry is None:
        say("Stopped; nothing was changed.")
        return
    say(f"`/undo {entry.n}` restores the history.")
    _show_room(agent)


async def _switch(agent: Agent, typed: LineInput, name: str) -> None:
    """Change the model; ask first if what is in use does not fit its window."""
    full = agent.session.fullness()
    window = window_for(name, agent.engine.settings.window)
    if window.level(full.used_tokens) in ("auto", "blocking"):
        question = (
            f"{name} has a window of {tokens(window.limit_tokens)} tokens, and "
            f"{tokens(full.used_tokens)} are in use. Switch?"
        )
        if (await typed.read(f"{question} [y/N] ")).strip().lower() not in ("y", "yes"):
            return
    await agent.use_model(open_model(name), "the user asked for it")
    say(f"{name} answers from now on.")


async def _ask(typed: LineInput, question: Question) -> Answer:
    """Ask the user about one tool call, with its whole input made safe to print."""
    say(f"\n{plain(question.tool)}: {plain(question.reason)}", fg="yellow", err=True)
    for key, value in question.given.items():
        lines = str(value).splitlines() or [""]
        say_below(f"  {plain(key)}: ", lines[0])
        for line in lines[1:SHOWN_LINES]:
            say_below("      ", line)
        if len(lines) > SHOWN_LINES:
            say(f"      … and {len(lines) - SHOWN_LINES} more lines", err=True)
    always = f", a = always ({plain(str(question.suggestion))})" if question.suggestion else ""
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
