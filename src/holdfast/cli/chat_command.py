"""`holdfast chat`: talk to the agent."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli.agent_options import AgentOptions, agent_options
from holdfast.cli.output import say
from holdfast.cli.slash import SLASH
from holdfast.errors import AuthenticationFailed
from holdfast.settings import home, load_settings
from holdfast.settings.project import project_root, slug
from holdfast.terminal.ability import has_colours, has_libraries, is_drawable
from holdfast.terminal.chat import Chat
from holdfast.terminal.screen import Screen
from holdfast.terminal.slash import SessionMove

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
    async def open_session(move: SessionMove, ask: "AskUser") -> "AsyncIterator[Agent]":
        nonlocal chosen
        there = replace(chosen, resume=move.resume, mode=move.mode or chosen.mode)
        there = replace(there, system=None if move.resume else chosen.system)
        async with AsyncExitStack() as stack:
            try:
                agent = await stack.enter_async_context(_running(there, screen, ask))
            except AuthenticationFailed as error:
                if not sys.stdin.isatty():
                    raise
                from holdfast.cli.first_start import choose_model

                chosen = await choose_model(screen, chosen, error)
                there = replace(
                    there, offline=chosen.offline, model=chosen.model, base_url=chosen.base_url
                )
                agent = await stack.enter_async_context(_running(there, screen, ask))
            yield agent

    await screen.run(Chat(screen, open_session, SLASH).run(SessionMove(resume=chosen.resume)))


def _running(
    chosen: AgentOptions, screen: Screen, ask: "AskUser"
) -> "AbstractAsyncContextManager[Agent]":
    return chosen.running(ask=ask, source="chat", listener=lambda line: screen.say(line, "notice"))


def make_screen(helps: dict[str, str], *, is_plain: bool, is_offline: bool) -> Screen:
    """Choose the screen that this terminal can show."""
    is_plain = is_plain or load_settings(Path.cwd()).terminal.plain
    if not is_plain and sys.stdin.isatty() and is_drawable(sys.stdout):
        if has_libraries():
            from holdfast.terminal.live_screen import LiveScreen

            place = home() / "projects" / slug(project_root(Path.cwd()))
            return LiveScreen(
                commands=helps,
                directory=Path.cwd(),
                history=place / HISTORY,
                has_colours=has_colours(),
                shows_suggestions=not is_offline,
            )
        say(MISSING, err=True)
    from holdfast.cli.rendering import show
    from holdfast.terminal.plain_screen import PlainScreen

    return PlainScreen(show)
