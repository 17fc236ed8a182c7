"""Reads lines from standard input without blocking the event loop.

`input` blocks, so it runs in a daemon thread: Ctrl-C must not wait for a line that is never typed.
A cancelled read keeps its thread, and the next `read` gets its line, so that no input is lost.
"""

import asyncio
import atexit
import concurrent.futures
import sys
import threading

from holdfast.cli.output import harmless

try:
    import termios
except ImportError:  # Windows restores its terminal itself
    termios = None  # type: ignore[assignment]


class LineInput:
    """The lines of standard input, one reader at a time."""

    def __init__(self) -> None:
        self._coming: concurrent.futures.Future[str] | None = None
        self._turn = asyncio.Lock()

    async def read(self, prompt: str) -> str:
        """Show the prompt and wait for a line; raise `EOFError` at the end of the input."""
        prompt = harmless(prompt)
        async with self._turn:
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
