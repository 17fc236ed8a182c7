"""The interface of a chat's screen, and of its slash commands: `/name words`."""

import asyncio
import difflib
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from longhold.agent.agent import Agent
    from longhold.agent.permissions import Mode, Question
    from longhold.core.turn.loop import LoopEvent
    from longhold.core.turn.status import Status

T = TypeVar("T")
LEAVE_SECONDS = 2.0
AGAIN = "Ctrl-C again leaves."
Tone: TypeAlias = Literal["plain", "dim", "notice", "error", "user", "document"]


@dataclass(slots=True)
class LeaveKey:
    """Ends the chat at the second Ctrl-C within `LEAVE_SECONDS`."""

    _main: "asyncio.Task[Any] | None" = None
    was_used: bool = False
    _pressed_at: float = -LEAVE_SECONDS

    def is_armed(self) -> bool:
        return time.monotonic() - self._pressed_at < LEAVE_SECONDS

    def begin(self, chat: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        self._main = main = asyncio.create_task(chat)
        return main

    def press(self, *, is_enough: bool) -> None:
        if self._main is not None and (is_enough or self.is_armed()):
            self.was_used = True
            self._main.cancel()
        self._pressed_at = time.monotonic()

    async def wait(self, main: "asyncio.Task[T]") -> T:
        """Wait for the end of the chat. Raise `KeyboardInterrupt` if the user left it."""
        try:
            return await main
        except asyncio.CancelledError:
            if self.was_used:
                raise KeyboardInterrupt from None
            raise


class Screen(Protocol):
    @property
    def shows_suggestions(self) -> bool: ...

    async def run(self, chat: Coroutine[Any, Any, T]) -> T:
        """Run a chat on this screen and restore the terminal afterwards."""

    def say(self, text: str, tone: Tone = "plain") -> None: ...
    def show(self, event: "LoopEvent") -> None: ...
    def tool_output(self, line: str) -> None:
        """Show the last line of a running tool's output."""

    def show_question(self, question: "Question", *, whole: bool = False) -> bool:
        """Show what a call would do, in full if `whole`. Return whether a part was left out."""

    async def words(self) -> str:
        """Wait for the user's next message. Raise `EOFError` when they leave."""

    async def answer(self, question: str, keys: str = "") -> str:
        """Wait for an answer. On a live screen, each key in `keys` answers without Enter."""

    async def secret(self, question: str) -> str:
        """Wait for an answer that is neither shown nor stored."""

    async def choose(self, title: str, rows: Sequence[str]) -> int | None:
        """Let the user pick a row. Return None if they decline."""

    def half_typed(self) -> str: ...
    def draft(self, text: str) -> None:
        """Put text into the input for editing."""

    def suggest(self, text: str) -> None:
        """Suggest the user's next message. "" withdraws the suggestion."""

    def working(
        self,
        stop: Callable[[], None],
        *,
        what: str = "",
        at_once: Callable[[str], bool] = lambda words: False,
    ) -> AbstractContextManager[None]:
        """Show a busy indicator labelled `what` (default: answering). `stop` interrupts the work.
        Input sent meanwhile goes to `at_once`. If that returns False, the input waits for the end.
        """

    async def hand_over(self, work: Callable[[], None]) -> None:
        """Give the terminal to an editor or another program that prints directly."""

    def follow(self, status: "Callable[[], Status] | None") -> None:
        """Show the session's status continuously."""

    def show_status(self) -> None:
        """Print the status once, if it is not shown continuously."""


CLOSE = 0.5
NEXT_MODE = "/mode next"

USAGE_COLUMNS = 20

KEYS = (
    ("Enter", "send; to begin a new line, type \\ first or press Alt-Enter or Ctrl-J"),
    ("Esc", "interrupt; press twice to go back to an earlier message"),
    ("Tab", "complete /commands and @files, or accept the grey suggestion"),
    ("↑", "show earlier messages, or edit the queued message while the model works"),
    ("!COMMAND", "run a shell command; the model sees it with your next message"),
    ("#TEXT", "keep TEXT as a memory of this project"),
    ("Shift-Tab", "switch to the next mode: ask, accept_edits, plan"),
    ("Ctrl-O", "open the last tool call"),
    ("Ctrl-C", "interrupt the work or empty the input; press twice to leave"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMove:
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
    at_once: Callable[[str], bool] = lambda rest: False


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
