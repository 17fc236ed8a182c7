"""Reads lines from standard input without blocking the event loop.

`input` blocks, so it runs in a daemon thread: Ctrl-C must not wait for a line that is never typed.
A cancelled read keeps its thread, and the next `read` gets its line, so that no input is lost.
What is printed meanwhile goes above the line being typed, as far as the terminal tells what it is.
"""

import asyncio
import atexit
import concurrent.futures
import sys
import threading
from collections.abc import Callable

from holdfast.terminal.text import harmless

try:
    import readline
except ImportError:  # lines are then read as the terminal gives them
    readline = None  # type: ignore[assignment]
try:
    import termios
except ImportError:  # Windows restores its terminal itself
    termios = None  # type: ignore[assignment]


class LineInput:
    """The lines of standard input, one reader at a time."""

    def __init__(self) -> None:
        self._coming: concurrent.futures.Future[str] | None = None
        self._turn = asyncio.Lock()
        self._prompt = ""

    def half_typed(self) -> str:
        """Return what stands in the line being typed, as far as that is known."""
        if self._coming is None or readline is None or not sys.stdin.isatty():
            return ""
        return readline.get_line_buffer()

    def above(self, show: Callable[[], None]) -> None:
        """Print something without disturbing the line being typed."""
        if self._coming is None or not sys.stdout.isatty():
            show()
            return
        print("\r\x1b[K", end="", flush=True)  # noqa: T201 - erases the prompt
        show()
        print(f"{self._prompt}{self.half_typed()}", end="", flush=True)  # noqa: T201

    async def read(self, prompt: str) -> str:
        """Show the prompt and wait for a line; raise `EOFError` at the end of the input."""
        prompt = harmless(prompt)
        async with self._turn:
            self._prompt = prompt.lstrip("\n")
            coming = self._coming
            if coming is None:
                coming = self._coming = concurrent.futures.Future()
                threading.Thread(target=_read, args=(prompt, coming), daemon=True).start()
            else:
                print(prompt, end="", flush=True)  # noqa: T201 - the waiting thread printed another
            line = await asyncio.shield(asyncio.wrap_future(coming))
            self._coming = None
            return line


def _read(prompt: str, coming: "concurrent.futures.Future[str]") -> None:
    try:
        coming.set_result(input(prompt))
    except (EOFError, OSError, ValueError, RuntimeError) as failure:
        coming.set_exception(EOFError(str(failure)))


def keep_terminal() -> None:
    """Restore the terminal's present state when the program ends, however it ends."""
    if termios is None or sys.stdin is None or not sys.stdin.isatty():
        return
    found = termios.tcgetattr(sys.stdin)
    atexit.register(termios.tcsetattr, sys.stdin, termios.TCSANOW, found)
