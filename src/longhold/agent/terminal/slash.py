"""Slash commands: `/name words` in the conversation."""

import difflib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longhold.agent.agent import Agent
    from longhold.agent.permissions import Mode
    from longhold.agent.terminal.screen import Screen

CLOSE = 0.5
NEXT_MODE = "/mode next"

USAGE_COLUMNS = 20

KEYS = (
    ("Enter", "send; \\ before it, Alt-Enter or Ctrl-J begin a new line"),
    ("Esc", "interrupt; twice: go back to an earlier message"),
    ("Tab", "complete /commands and @files; accept the grey suggestion"),
    ("↑", "earlier messages; while the model works: edit the queued message"),
    ("!COMMAND", "run a shell command; the model sees it with your next message"),
    ("#TEXT", "keep TEXT as a memory of this project"),
    ("Shift-Tab", "next mode: ask, accept_edits, plan"),
    ("Ctrl-O", "open the last tool call"),
    ("Ctrl-C", "interrupt, empty the input; twice: leave"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMove:
    """The next session: one to resume, or a new session."""

    resume: str = ""
    mode: "Mode | None" = None
    draft: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlashContext:
    agent: "Agent"
    screen: "Screen"
    take_turn: Callable[[str], Awaitable[None]]
    """Sends a message to the model, as if the user had typed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlashCommand:
    name: str
    usage: str
    help: str
    run: Callable[[SlashContext, str], Awaitable[SessionMove | None]]
    """Runs the command, and returns the next session if there is one."""
    at_once: Callable[[str], bool] = lambda rest: False
    """Whether the command can run while the model works."""


def always(rest: str) -> bool:
    return True


def with_first(*words: str) -> Callable[[str], bool]:
    return lambda rest: rest.partition(" ")[0] in words


def unknown_command(name: str, commands: Mapping[str, SlashCommand]) -> str:
    near = difflib.get_close_matches(name.lower(), commands, n=1, cutoff=CLOSE)
    hint = f"did you mean {near[0]}?" if near else "/help lists them."
    return f"There is no {name}; {hint}"


def help_lines(commands: Mapping[str, SlashCommand]) -> list[str]:
    lines = []
    for command in commands.values():
        usage, is_long = command.usage, len(command.usage) > USAGE_COLUMNS
        lines += [usage] if is_long else []
        lines.append(f"{'' if is_long else usage:<{USAGE_COLUMNS + 2}}{command.help}")
    return lines
