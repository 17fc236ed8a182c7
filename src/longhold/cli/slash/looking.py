"""Commands that look at the session and change nothing."""

import io
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import click

from longhold.agent.hooks import load_hooks
from longhold.agent.terminal.slash import KEYS, SlashContext, help_lines
from longhold.cli import cli
from longhold.cli.context_command import lines as context_lines
from longhold.cli.cost_command import bill_lines
from longhold.cli.slash import SLASH
from longhold.cli.target import OURS, CommandTarget
from longhold.core.messages.text import clean_text, tokens
from longhold.core.settings import home
from longhold.core.settings.reading import set_value
from longhold.core.view.gauge import replay
from longhold.errors import ConfigError
from longhold.insight.context import Context, describe
from longhold.insight.cost import bill
from longhold.insight.transcripts.formats import FORMATS

LARGE_SHARE = 0.25
"""A category that fills this much of the window is worth a word."""
_ADVICE = {
    "tool results": "/compact summarises what was read and run; old results are cleared when it pays",
    "user messages": "long pastes fit better in a file that the model reads in part",
    "answers": "/compact summarises what was answered",
    "thinking": "/compact lets old thinking go",
    "tools": "servers with many tools can be taken out of the settings (`longhold doctor`)",
    "instructions": "AGENTS.md is sent with every call; what is rarely needed fits a file of its own",
    "images and documents": "/drop N lets messages with images leave the view",
}


async def help(context: SlashContext, rest: str) -> None:
    keys = [f"{name:<10}{what}" for name, what in KEYS]
    context.screen.say("\n".join((*help_lines(SLASH), "", *keys)))


async def context(context: SlashContext, rest: str) -> None:
    session = context.agent.session
    history = session.view.history
    view, gauge = replay(history)
    found = describe(view, gauge, session.fullness().window)
    target = CommandTarget(name=session.id, format=OURS, history=history)
    context.screen.say("\n".join((*context_lines(target, found), *suggestions(found))))


def suggestions(found: Context) -> Iterator[str]:
    whole = max(found.used_tokens, 1)
    large = [part for part in found.parts if part.tokens / whole >= LARGE_SHARE]
    advice = [(part, _ADVICE[part.name]) for part in large if part.name in _ADVICE]
    if found.level == "ok" and found.percent_left > 50:
        advice = []
    if advice:
        yield ""
    for part, words in advice:
        yield f"{part.name}, {tokens(part.tokens)}: {words}"


async def cost(context: SlashContext, rest: str) -> None:
    session = context.agent.session
    context.screen.say("\n".join(bill_lines(session.id, bill(session.view.history), {})))


async def cache(context: SlashContext, rest: str) -> None:
    await _command_line(context, "cache", context.agent.session.id)


async def explain(context: SlashContext, rest: str) -> None:
    await _command_line(context, "explain", context.agent.session.id)


async def history(context: SlashContext, rest: str) -> None:
    if not rest:
        raise ConfigError("/history needs words to search for, or the number of a message")
    words = ("--id", rest) if rest.removeprefix("#").isdecimal() else (rest,)
    await _command_line(context, "history", context.agent.session.id, *words)


async def notes(context: SlashContext, rest: str) -> None:
    options = ("--edit",) if rest == "edit" else ()
    await _command_line(context, "notes", context.agent.session.id, *options)


async def memory(context: SlashContext, rest: str) -> None:
    if rest in ("on", "off"):
        set_value(home() / "settings.toml", "memory.on", str(rest == "on").lower())
        context.screen.say(f"memory.on = {rest == 'on'}, from the next session on")
        return
    await _command_line(context, "memory", *(rest.split() or ["show"]))


async def hooks(context: SlashContext, rest: str) -> None:
    plan = load_hooks(Path.cwd())
    lines = [
        f"{hook.event:<18} {clean_text(hook.matcher) or 'any':<16} {clean_text(hook.command)}"
        for hook in plan.hooks
    ]
    lines += [
        f"not trusted yet: {clean_text(str(each.file))}; `longhold trust`"
        for each in plan.untrusted
    ]
    context.screen.say("\n".join(lines) or "No hook is configured.")


async def export(context: SlashContext, rest: str) -> None:
    file, _, format = rest.partition(" ")
    if not file:
        raise ConfigError(f"/export needs a new file, and may name a format: {', '.join(FORMATS)}")
    options = ("--to", format.strip()) if format else ()
    await _command_line(context, "export", context.agent.session.id, "--out", file, *options)


async def _command_line(context: SlashContext, *words: str) -> None:
    """Run a command of the command line and show what it prints; an editor gets the terminal."""
    if "edit" in words or "--edit" in words:
        await context.screen.hand_over(lambda: _run(words))
        return
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        _run(words)
    context.screen.say(printed.getvalue().rstrip("\n"))


def _run(words: tuple[str, ...]) -> None:
    try:
        cli.main(list(words), standalone_mode=False)
    except click.ClickException as error:
        raise ConfigError(error.format_message()) from error
    except (click.exceptions.Abort, click.exceptions.Exit):
        return
