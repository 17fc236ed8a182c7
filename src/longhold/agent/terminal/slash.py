"""Commands that are typed into the conversation: `/name words`."""

import difflib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longhold.agent.agent import Agent
    from longhold.agent.permissions import Mode
    from longhold.agent.terminal.screen import Screen

CLOSE = 0.5
"""How alike a name must be to be suggested for one that does not exist."""

USAGE_COLUMNS = 20

KEYS = (
    ("Enter", "send; \\ before it, Alt-Enter or Ctrl-J begin a new line"),
    ("Esc", "interrupt; twice: go back to an earlier message"),
    ("Tab", "complete /commands and @files; take the grey suggestion"),
    ("↑", "earlier messages; while it works: edit what is queued"),
    ("Ctrl-O", "open the last tool call"),
    ("Ctrl-C", "interrupt, empty the input, leave"),
)
"""What keys do on a live screen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMove:
    """Which session comes next: one to resume, or a new one."""

    resume: str = ""
    mode: "Mode | None" = None
    draft: str = ""
    """What to put into the input there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlashContext:
    agent: "Agent"
    screen: "Screen"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlashCommand:
    name: str
    usage: str
    help: str
    run: Callable[[SlashContext, str], Awaitable[SessionMove | None]]
    """Does it; returns where to go on, if that is another session."""
    at_once: Callable[[str], bool] = lambda rest: False
    """Whether it need not wait while the model works: it looks, or is about what runs just now."""


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
