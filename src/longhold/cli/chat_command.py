"""`longhold chat`: talk to the agent."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from longhold.agent.terminal.chat import Chat
from longhold.agent.terminal.prompt_commands import load_prompts
from longhold.agent.terminal.screen import Screen, SessionMove
from longhold.agent.terminal.spacing import has_colours, has_libraries, is_drawable
from longhold.cli.agent_options import AgentOptions, agent_options
from longhold.cli.output import say
from longhold.cli.slash_table import SLASH
from longhold.core.log.entries import Configured, Framed, Switched
from longhold.core.log.stores import default_store
from longhold.core.models.capabilities import known_models
from longhold.core.settings import home, load_settings
from longhold.core.settings.installation import install_words
from longhold.core.settings.project import project_root, slug
from longhold.core.settings.reading import ANTHROPIC, OPENAI, save_key, set_value
from longhold.errors import AuthenticationFailed

if TYPE_CHECKING:
    from longhold.agent.agent import Agent
    from longhold.agent.permissions import AskUser


KEY_CLAUDE, KEY_OPENAI, SERVER, OFFLINE = (
    "A key for Claude",
    "A key for OpenAI",
    "Your own server with OpenAI's API (llama.cpp, vLLM, Ollama)",
    "No model: try Longhold offline with a fixed plan; nothing is sent",
)


async def _choose_model(
    screen: Screen, chosen: AgentOptions, error: AuthenticationFailed
) -> AgentOptions:
    """Ask the user for a model. Re-raise the error if the user declines."""
    if load_settings().model.offline:
        screen.say("`longhold config set model.offline false` lets you choose again.", "dim")
        return replace(chosen, offline=True, model="", base_url="")
    screen.say("There is no key for the model yet. Your choice is remembered.", "notice")
    rows = [KEY_CLAUDE, KEY_OPENAI, SERVER, OFFLINE]
    picked = await screen.choose("Who answers?", rows)
    row = rows[picked] if picked is not None else ""
    if row in (KEY_CLAUDE, KEY_OPENAI):
        return await _with_key(screen, chosen, is_claude=row == KEY_CLAUDE, error=error)
    if row == SERVER:
        address = await screen.answer("Address, such as http://127.0.0.1:8080/v1: ")
        name = await screen.answer("Name of the model there: ")
        set_value(home() / "settings.toml", "model.base_url", address.strip())
        return _remember(chosen, name.strip())
    if row == OFFLINE:
        set_value(home() / "settings.toml", "model.offline", "true")
        return replace(chosen, offline=True, model="", base_url="")
    raise error


async def ask_key(screen: Screen, variable: str) -> bool:
    key = (await screen.secret("Key (it is not shown): ")).strip()
    if key:
        save_key(variable, key)
        screen.say(f"Saved in {home() / 'keys.json'}, readable by you alone.", "dim")
    return bool(key)


async def _with_key(
    screen: Screen, chosen: AgentOptions, *, is_claude: bool, error: AuthenticationFailed
) -> AgentOptions:
    if not await ask_key(screen, ANTHROPIC if is_claude else OPENAI):
        raise error
    if is_claude:
        return chosen
    return _remember(chosen, next(name for name in known_models() if name.startswith("gpt-")))


def _remember(chosen: AgentOptions, name: str) -> AgentOptions:
    set_value(home() / "settings.toml", "model.name", name)
    return replace(chosen, model="", base_url="")


HISTORY = "input-history"
_OPENING = (Configured, Framed, Switched)


@click.command(epilog="Example: longhold chat --offline")
@agent_options
@click.option("--plain", "is_plain", is_flag=True, help="Print line by line, for screen readers.")
def command(chosen: AgentOptions, is_plain: bool) -> None:
    """Talk to the agent.

    The agent asks before it uses a tool that no rule allows. Esc or Ctrl-C stops it. For JSON
    output, use `longhold run --json`.
    """
    asyncio.run(_chat(chosen, is_plain=is_plain))


async def _chat(chosen: AgentOptions, *, is_plain: bool) -> None:
    commands = load_prompts(Path.cwd()) | SLASH
    helps = {name: each.help for name, each in sorted(commands.items())}
    screen = _make_screen(helps, is_plain=is_plain, is_offline=chosen.offline)

    @asynccontextmanager
    async def open_session(move: SessionMove, ask: "AskUser") -> "AsyncIterator[Agent]":
        nonlocal chosen
        there = replace(chosen, resume=move.resume, mode=move.mode or chosen.mode)
        async with AsyncExitStack() as stack:
            try:
                agent = await stack.enter_async_context(_open_agent(there, screen, ask))
            except AuthenticationFailed as error:
                if not sys.stdin.isatty():
                    raise

                chosen = await _choose_model(screen, chosen, error)
                there = replace(
                    there, offline=chosen.offline, model=chosen.model, base_url=chosen.base_url
                )
                agent = await stack.enter_async_context(_open_agent(there, screen, ask))
            yield agent
        if not move.resume and all(
            isinstance(entry, _OPENING) for entry in agent.session.view.history
        ):
            default_store().delete(agent.session.id)  # because nothing was said

    await screen.run(Chat(screen, open_session, commands).run(SessionMove(resume=chosen.resume)))


def _open_agent(
    chosen: AgentOptions, screen: Screen, ask: "AskUser"
) -> "AbstractAsyncContextManager[Agent]":
    return chosen.running(ask=ask, source="chat", listener=lambda line: screen.say(line, "notice"))


def _make_screen(helps: dict[str, str], *, is_plain: bool, is_offline: bool) -> Screen:
    is_plain = is_plain or load_settings(Path.cwd()).terminal.plain
    if not is_plain and sys.stdin.isatty() and is_drawable(sys.stdout):
        if has_libraries():
            from longhold.agent.terminal.live_screen import LiveScreen

            place = home() / "projects" / slug(project_root(Path.cwd()))
            return LiveScreen(
                commands=helps,
                directory=Path.cwd(),
                history=place / HISTORY,
                has_colours=has_colours(),
                shows_suggestions=not is_offline,
            )
        how = install_words("terminal")
        say(f"Plain screen. For the live screen: {how}. --plain hides this hint.", err=True)
    from longhold.agent.terminal.plain_screen import PlainScreen
    from longhold.cli.run_command import show

    return PlainScreen(show)
