"""`holdfast chat`: talk to the agent, line by line."""

import asyncio
import functools
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import get_args

import click

from holdfast.agent.agent import LEFT, Agent
from holdfast.cli.agent_options import AgentOptions, agent_options
from holdfast.cli.context_command import lines
from holdfast.cli.cost_command import bill_lines
from holdfast.cli.line_input import LineInput, keep_terminal
from holdfast.cli.output import plain, say, say_below, tokens
from holdfast.cli.rendering import show, show_notice, show_notices, show_where
from holdfast.cli.target import OURS, CommandTarget
from holdfast.errors import ConfigError, HoldfastError
from holdfast.models import open_model
from holdfast.reports.context import describe
from holdfast.reports.cost import bill
from holdfast.request.cache.advice import window_at_cost
from holdfast.tools.permissions import Answer, Mode, Question
from holdfast.turn.abort import stop
from holdfast.view.gauge import replay

SHOWN_LINES = 60
"""Of a value in a question; a whole file to be written need not scroll past."""

HALF_TYPED_SECONDS = 0.5
"""How often a line that is being typed is looked at, to wake the model once nobody types."""

HELP = """/compact [WHAT]  summarise the history, with a focus on WHAT
/undo [N]        undo the newest compaction, or entry N as `holdfast explain` lists them
/redo [N]        re-apply an undone change
/context         show what fills the window
/cost            show what was spent on what, the engine's own calls included
/drop N [N...]   let messages leave the view; /undo brings them back
/rewind [N]      go back to before your message N, or the newest, in a branch
/clear           begin anew, in a new session
/agents          list running agents, and those whose report has not been read
/stop AGENT      stop an agent; only you can start it again
/jobs            list what works in the background: notes, memory, dreams, agents
/jobs kill N     stop one of them, by its number or name
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
    following = await _talk(chosen, typed)
    while following is not None:
        if not following.resume:  # a new session has the prompt that was asked for
            following = replace(following, system=chosen.system)
        following = await _talk(following, typed)


async def _talk(chosen: AgentOptions, typed: LineInput) -> AgentOptions | None:
    """Talk in one session; return the options of the next, None to leave."""
    async with chosen.running(ask=functools.partial(_ask, typed), source="chat") as agent:
        agent.notices.listen(lambda line: typed.above(lambda: show_notice(line)))
        say(f"session {agent.session.id}, {agent.model.name}. /help lists commands.")
        if chosen.resume:
            show_where(agent)
        show_notices(agent)
        try:
            return await _heard(agent, chosen, typed)
        except asyncio.CancelledError:  # Ctrl-C at the prompt
            agent.background.cancel(LEFT)
            raise


async def _heard(agent: Agent, chosen: AgentOptions, typed: LineInput) -> AgentOptions | None:
    """Answer what is typed, and what arrives, until the session is left."""
    most = wakes_left = agent.engine.settings.agents.wakes
    while True:
        try:
            said = await _next_words(agent, typed, may_wake=wakes_left > 0)
        except EOFError:
            said = "/exit"
        word = said.partition(" ")[0] if said else ""
        wakes_left = wakes_left - 1 if said is None else most
        try:
            if word in ("/exit", "/quit"):
                await _leave(agent, "prompt_input_exit")
                return None
            if word in ("/rewind", "/clear"):
                there = _moved(agent, chosen, str(said))
                await _leave(agent, word.removeprefix("/"))
                return there
            if word.startswith("/"):
                await _run_slash_command(agent, typed, str(said))
            elif said != "":
                await _turn(agent, said or "")
        except HoldfastError as error:
            say(str(error), fg="red", err=True)


async def _next_words(agent: Agent, typed: LineInput, *, may_wake: bool) -> str | None:
    """Wait for a line; None if mail or a report came first, which the model is to answer.

    While somebody types, or when the model was woken too often, the news is only shown.
    """
    reading = asyncio.create_task(typed.read("\n> "))
    news = asyncio.create_task(agent.until_news())
    try:
        await asyncio.wait({reading, news}, return_when=asyncio.FIRST_COMPLETED)
        if not reading.done():
            typed.above(lambda: _show_news(news.result()))
        while not reading.done() and (typed.half_typed() or not may_wake):
            await asyncio.wait({reading}, timeout=HALF_TYPED_SECONDS)
        return reading.result().strip() if reading.done() else None
    finally:
        await stop(reading)
        await stop(news)


def _show_news(lines: list[str]) -> None:
    for line in lines:
        show_notice(line)


def _moved(agent: Agent, chosen: AgentOptions, said: str) -> AgentOptions:
    """Return how to go on in another session: one that begins anew, or a branch of this one."""
    word, _, number = said.partition(" ")
    known = replace(chosen, mode=agent.gate.mode, resume="", system=None)
    if word == "/rewind":
        known = replace(known, resume=agent.session.rewind(_number(number)))
        say("Files in the project stay as they are.")
    say(f"`holdfast chat --resume {agent.session.id}` goes on where you were.")
    return known


def _number(text: str) -> int:
    text = text.strip().removeprefix("#")
    if text and not text.isdecimal():
        raise ConfigError(f"{text!r} is no number; `holdfast explain` shows them")
    return int(text or 0)


async def _leave(agent: Agent, reason: str) -> None:
    """Close the agent; say what is waited for, and let Ctrl-C cut that short."""
    busy = ", ".join(job.name for job in agent.background.busy)
    with _stoppable(agent):
        if busy:
            seconds = agent.engine.settings.memory.drain_seconds
            say(f"Waiting up to {seconds:g} s for: {busy}. Ctrl-C leaves at once.", err=True)
        await agent.close(reason)


async def _turn(agent: Agent, said: str) -> None:
    with _stoppable(agent):
        async for event in agent.run(said):
            show(event)
    _show_room(agent)


@contextmanager
def _stoppable(agent: Agent) -> Iterator[None]:
    """Make Ctrl-C stop the agent's work instead of the program."""
    loop, before = asyncio.get_running_loop(), signal.getsignal(signal.SIGINT)
    loop.add_signal_handler(signal.SIGINT, agent.abort.set)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)  # asyncio's own, by which the program cleans up


def _show_room(agent: Agent) -> None:
    full = agent.session.fullness()
    left = full.window.percent_left(full.used_tokens)
    spent = agent.engine.own.follow(agent.engine.view.history)
    money = f", ${spent.total.usd:.2f}" if spent.total.usd else ""
    own = f", own calls {spent.share:.0%}" if spent.own.usd else ""
    say(f"[{tokens(full.used_tokens)} tokens, {left} % left{money}{own}]", dim=True, err=True)


async def _run_slash_command(agent: Agent, typed: LineInput, said: str) -> None:
    word, _, rest = said.partition(" ")
    rest = rest.strip()
    match word:
        case "/context":
            say("\n".join(_context(agent)))
        case "/cost":
            say("\n".join(bill_lines(agent.session.id, bill(agent.session.view.history), {})))
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
            await _jobs(agent, rest)
        case "/drop" if rest:
            agent.session.drop(*map(_number, rest.split()))
            say("They leave the view as soon as that is possible; /undo brings them back.")
        case "/model" if rest:
            await _switch(agent, typed, rest)
        case "/mode" if rest in get_args(Mode):
            agent.gate.switch_mode(rest)  # type: ignore[arg-type]
            say(f"mode: {rest}")
        case _:
            say(HELP)


async def _jobs(agent: Agent, rest: str) -> None:
    verb, _, which = rest.partition(" ")
    if verb in ("kill", "stop") and which.strip():
        job = await agent.jobs.stop(which.strip())
        say(f"{job.name} was stopped.")
    for job in agent.jobs.running():
        say("\n   ".join(map(plain, (job.line(), *job.doing))))
    if not agent.jobs.running():
        say("No job is running.")


def _context(agent: Agent) -> Iterator[str]:
    history = agent.session.view.history
    view, gauge = replay(history)
    context = describe(view, gauge, agent.session.fullness().window)
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
    settings = agent.engine.settings
    window = window_at_cost(name, settings.window, settings.cost)
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
