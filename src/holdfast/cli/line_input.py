"""Reading lines from a person while the event loop goes on.

`input` blocks, so it runs in a thread of its own that dies with the program: Ctrl-C must not
wait for a line nobody will type. A read that was given up keeps its thread, and the line it
gets goes to whoever asks next, so that nothing typed is lost. The terminal is left as found.
"""

import asyncio
import atexit
import concurrent.futures
import sys
import threading

try:
    import termios
except ImportError:  # a terminal of another kind restores itself
    termios = None  # type: ignore[assignment]


class LineInput:
    """The lines of standard input, one asker at a time."""

    def __init__(self) -> None:
        self._coming: concurrent.futures.Future[str] | None = None
        self._turn = asyncio.Lock()

    async def read(self, prompt: str) -> str:
        """Show the prompt and wait for a line; the end of the input is an `EOFError`."""
        async with self._turn:
            coming = self._coming
            if coming is None:
                coming = self._coming = concurrent.futures.Future()
                threading.Thread(target=_read, args=(prompt, coming), daemon=True).start()
            else:
                print(prompt, end="", flush=True)  # noqa: T201 - the thread that reads printed another
            line = await asyncio.shield(asyncio.wrap_future(coming))
            self._coming = None
            return line


def _read(prompt: str, coming: "concurrent.futures.Future[str]") -> None:
    try:
        coming.set_result(input(prompt))
    except (EOFError, OSError, ValueError, RuntimeError) as failure:
        coming.set_exception(EOFError(str(failure)))


def keep_terminal() -> None:
    """Put the terminal back as it is now when the program ends, however it ends."""
    if termios is None or sys.stdin is None or not sys.stdin.isatty():
        return
    found = termios.tcgetattr(sys.stdin)
    atexit.register(termios.tcsetattr, sys.stdin, termios.TCSANOW, found)
