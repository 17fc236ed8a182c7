"""A line-by-line chat for pipes, dumb terminals and screen readers. It needs no extra package."""

import asyncio
import atexit
import concurrent.futures
import getpass
import shutil
import signal
import sys
import threading
import unicodedata
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from longhold.agent.terminal.screen import AGAIN, LeaveKey, Tone
from longhold.core.messages.text import clean_document, clean_text

if TYPE_CHECKING:
    from longhold.agent.permissions import Question
    from longhold.core.turn.loop import LoopEvent
    from longhold.core.turn.status import Status

try:
    import readline
except ImportError:  # without line editing
    readline = None  # type: ignore[assignment]
try:
    import termios
except ImportError:  # Windows restores its terminal itself
    termios = None  # type: ignore[assignment]


def _read(prompt: str, coming: "concurrent.futures.Future[str]") -> None:
    try:
        coming.set_result(input(prompt))
    except (EOFError, OSError, ValueError, RuntimeError) as failure:
        coming.set_exception(EOFError(str(failure)))


def _keep_terminal() -> None:
    if termios is None or sys.stdin is None or not sys.stdin.isatty():
        return
    found = termios.tcgetattr(sys.stdin)
    atexit.register(termios.tcsetattr, sys.stdin, termios.TCSANOW, found)


T = TypeVar("T")
SHOWN_LINES = 60
INDENT, WIDE = 6, 2
"""The indentation below a question, and the columns of a wide character."""
COLOURS: dict[Tone, dict[str, Any]] = {
    "plain": {},
    "dim": {"dim": True},
    "notice": {"fg": "yellow"},
    "error": {"fg": "red"},
    "user": {"bold": True},
    "document": {},
}


class PlainScreen:
    shows_suggestions = False

    def __init__(self, show: "Callable[[LoopEvent], None]") -> None:
        self._coming: concurrent.futures.Future[str] | None = None
        self._turn = asyncio.Lock()
        self._show = show
        self._status: Callable[[], Status] | None = None
        self._leaving = LeaveKey()
        self._stops: list[Callable[[], None]] = []

    async def run(self, chat: Coroutine[Any, Any, T]) -> T:
        _keep_terminal()
        main = self._leaving.begin(chat)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        try:
            return await self._leaving.wait(main)
        finally:
            loop.remove_signal_handler(signal.SIGINT)

    def _interrupt(self) -> None:
        if self._stops:
            self._stops[-1]()
            return
        self._leaving.press(is_enough=self._status is None)
        if not self._leaving.was_used:
            self.say(AGAIN, "dim")

    def say(self, text: str, tone: Tone = "plain") -> None:
        err = tone not in ("plain", "document")
        click.secho(clean_document(text), err=err, **COLOURS[tone])

    def show(self, event: "LoopEvent") -> None:
        self._show(event)

    def tool_output(self, line: str) -> None:
        """Show nothing, because printed lines cannot be removed and the result has them all."""

    def show_question(self, question: "Question", *, whole: bool = False) -> bool:
        is_cut = False
        click.secho(
            f"\n{clean_text(question.tool)}: {clean_text(question.reason)}", fg="yellow", err=True
        )
        for key, value in question.given.items():
            lines = str(value).splitlines() or [""]
            _say_below(f"  {clean_text(key)}: ", lines[0])
            for line in lines[1:] if whole else lines[1:SHOWN_LINES]:
                _say_below("      ", line)
            if len(lines) > SHOWN_LINES and not whole:
                is_cut = True
                click.echo(f"      … and {len(lines) - SHOWN_LINES} more lines", err=True)
        return is_cut

    async def words(self) -> str:
        return await self.answer("\n> ")

    async def answer(self, question: str, keys: str = "") -> str:
        """Show the question and wait for a line. Raise `EOFError` at the end of input."""
        question = clean_document(question)
        async with self._turn:
            coming = self._coming
            if coming is None:
                coming = self._coming = concurrent.futures.Future()
                threading.Thread(target=_read, args=(question, coming), daemon=True).start()
            else:
                print(question, end="", flush=True)  # noqa: T201 - the waiting thread printed another
            line = await asyncio.shield(asyncio.wrap_future(coming))
            self._coming = None
            return line

    async def secret(self, question: str) -> str:
        return await asyncio.to_thread(getpass.getpass, question)

    async def choose(self, title: str, rows: Sequence[str]) -> int | None:
        for number, row in enumerate(rows, 1):
            self.say(f"{number:>4}  {row}")
        text = (await self.answer(f"{title} (a number, or nothing): ")).strip()
        return int(text) - 1 if text.isdecimal() and 0 < int(text) <= len(rows) else None

    def half_typed(self) -> str:
        if self._coming is None or readline is None or not sys.stdin.isatty():
            return ""
        return readline.get_line_buffer()

    def draft(self, text: str) -> None:
        self.say(f"You had said: {text}", "dim")

    def suggest(self, text: str) -> None:
        """Do nothing, because a suggestion would look like the user's input."""

    @contextmanager
    def working(
        self,
        stop: Callable[[], None],
        *,
        what: str = "",
        at_once: Callable[[str], bool] = lambda words: False,
    ) -> Iterator[None]:
        """Make Ctrl-C stop the work instead of the program. Input is read afterwards."""
        self._stops.append(stop)
        try:
            yield
        finally:
            self._stops.remove(stop)

    async def hand_over(self, work: Callable[[], None]) -> None:
        work()

    def follow(self, status: "Callable[[], Status] | None") -> None:
        self._status = status

    def show_status(self) -> None:
        if self._status is not None:
            self.say(self._status().short(), "dim")


def _say_below(label: str, text: str) -> None:
    """Print an untrusted line on stderr, wrapped so that no part starts at the left edge.

    Otherwise a long line could wrap and imitate Longhold's own output.
    """
    room = max(shutil.get_terminal_size().columns - WIDE * INDENT, WIDE)
    line, width = label, len(label)
    for char in clean_text(text):
        width += WIDE if unicodedata.east_asian_width(char) in "WF" else 1
        if width > room:
            click.echo(line, err=True)
            line, width = " " * INDENT + char, INDENT + WIDE
        else:
            line += char
    click.echo(line, err=True)
    sys.stderr.flush()
