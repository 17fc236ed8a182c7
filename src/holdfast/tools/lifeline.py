"""Ends our commands when we cannot: a small process that outlives us by a moment.

It reads the numbers of live process groups from a pipe that only we hold open. When we
leave without a word, killed or crashed, the pipe ends, and it kills every group it still
has on its list. One per session, started with the first command; plain POSIX shell.
"""

import contextlib
import os
import subprocess
import weakref

_SCRIPT = """
live=' '
while read -r sign group; do
  case $sign in
    +) live="$live$group " ;;
    -) live="${live%% $group *} ${live#* $group }" ;;
  esac
done
for group in $live; do kill -s KILL -- "-$group" 2>/dev/null; done
"""


class Lifeline:
    """The process that ends our groups after us."""

    def __init__(self) -> None:
        self._pipe = -1
        self._held: set[int] = set()
        self._let_go: weakref.finalize[[int, subprocess.Popen[bytes]], Lifeline] | None = None

    def hold(self, group: int) -> None:
        """Put a group on the list."""
        if self._let_go is None:
            self._start()
        self._held.add(group)
        self._tell(f"+ {group}\n")

    def release(self, group: int) -> None:
        """Take a group that has ended off the list."""
        if group in self._held:
            self._held.discard(group)
            self._tell(f"- {group}\n")

    def close(self) -> None:
        """Let the watcher go; it kills what is still on its list."""
        if self._let_go is not None:
            self._let_go()
            self._let_go = None
            self._held.clear()

    def _start(self) -> None:
        theirs, self._pipe = os.pipe()
        # Its own session, so that a signal to our group does not take it along.
        watcher = subprocess.Popen(
            ("/bin/sh", "-c", _SCRIPT),
            stdin=theirs,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs)
        # Whoever forgets to close us leaves no watcher behind either.
        self._let_go = weakref.finalize(self, _let_go, self._pipe, watcher)

    def _tell(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self._pipe, line.encode())


def _let_go(pipe: int, watcher: "subprocess.Popen[bytes]") -> None:
    os.close(pipe)
    watcher.wait()
