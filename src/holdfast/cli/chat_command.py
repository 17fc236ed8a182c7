"""`holdfast chat`: talk to the agent."""

import asyncio
import importlib.util
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli.agent_options import AgentOptions, agent_options
from holdfast.cli.output import say
from holdfast.cli.slash import SLASH
from holdfast.settings import home, load_settings
from holdfast.settings.project import project_root, slug
from holdfast.terminal.chat import Chat
from holdfast.terminal.screen import Screen
from holdfast.terminal.slash import Move

if TYPE_CHECKING:
    from holdfast.agent.agent import Agent
    from holdfast.tools.permissions import AskUser

MISSING = (
    "Talking line by line: pip install 'holdfast[terminal]' for a live screen, --plain for silence."
)
HISTORY = "input-history"


@click.command(epilog="Example: holdfast chat --offline")
@agent_options
@click.option("--plain", "is_plain", is_flag=True, help="Line by line: for screen readers, pipes.")
def command(chosen: AgentOptions, is_plain: bool) -> None:
    """Talk to the agent.

    It asks before using a tool that no rule allows; Esc or Ctrl-C stops it. For JSON there is
    `holdfast run --json`.
    """
    asyncio.run(_chat(chosen, is_plain=is_plain))


async def _chat(chosen: AgentOptions, *, is_plain: bool) -> None:
    helps = {name: each.help for name, each in SLASH.items()}
    screen = make_screen(helps, is_plain=is_plain, is_offline=chosen.offline)

    @asynccontextmanager
    async def opening(move: Move, ask: "AskUser") -> "AsyncIterator[Agent]":
        there = replace(chosen, resume=move.resume, mode=move.mode or chosen.mode)
        there = replace(there, system=None if move.resume else chosen.system)
        listener: Callable[[str], None] = lambda line: screen.say(line, "notice")  # noqa: E731
        async with there.running(ask=ask, source="chat", listener=listener) as agent:
            yield agent

    await screen.run(Chat(screen, opening, SLASH).run(Move(resume=chosen.resume)))


def make_screen(helps: dict[str, str], *, is_plain: bool, is_offline: bool) -> Screen:
    """Choose the screen that this terminal can show."""
    has_terminal = sys.stdin.isatty() and sys.stdout.isatty() and is_able(os.environ)
    if not is_plain and has_terminal and not load_settings(Path.cwd()).terminal.plain:
        if importlib.util.find_spec("prompt_toolkit") and importlib.util.find_spec("rich"):
            from holdfast.terminal.live_screen import LiveScreen

            place = home() / "projects" / slug(project_root(Path.cwd()))
            return LiveScreen(
                commands=helps,
                directory=Path.cwd(),
                history=place / HISTORY,
                has_colours=not os.environ.get("NO_COLOR"),
                shows_suggestions=not is_offline,
            )
        say(MISSING, err=True)
    from holdfast.cli.rendering import show
    from holdfast.terminal.plain_screen import PlainScreen

    return PlainScreen(show)


def is_able(environment: "os._Environ[str]") -> bool:
    """Return whether a terminal can move its cursor and shows more than ASCII."""
    is_dumb = environment.get("TERM", "dumb") in ("dumb", "unknown", "")
    return not is_dumb and (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
