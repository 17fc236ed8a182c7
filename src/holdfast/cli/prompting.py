"""Reading lines from a person while the event loop goes on.

`input` blocks, so it runs in a thread of its own that dies with the program: Ctrl-C must not
wait for a line nobody will type. The terminal is left as it was found.
"""

import asyncio
import atexit
import sys
import threading

try:
    import termios
except ImportError:  # a terminal of another kind restores itself
    termios = None  # type: ignore[assignment]


async def read_line(prompt: str) -> str:
    """Read one line; the end of the input is an `EOFError`."""
    loop = asyncio.get_running_loop()
    coming: asyncio.Future[str] = loop.create_future()

    def settle(line: str | None, error: BaseException | None) -> None:
        if not coming.done():
            if error is not None:
                coming.set_exception(error)
            else:
                coming.set_result(line or "")

    def read() -> None:
        try:
            line, error = input(prompt), None
        except (EOFError, OSError, ValueError) as failure:
            line, error = None, EOFError(str(failure))
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, line, error)

    threading.Thread(target=read, daemon=True).start()
    return await coming


def keep_terminal() -> None:
    """Put the terminal back as it is now when the program ends, however it ends."""
    if termios is None or not sys.stdin.isatty():
        return
    found = termios.tcgetattr(sys.stdin)
    atexit.register(termios.tcsetattr, sys.stdin, termios.TCSANOW, found)
