"""A program in a pseudo-terminal, as a user has it before them."""

import os
import pty
import select
import subprocess
import sys
import time


class Terminal:
    """A program in a pseudo-terminal."""

    def __init__(self, words, cwd):
        self._master, slave = pty.openpty()
        self.child = subprocess.Popen(
            [sys.executable, "-m", "holdfast", *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=cwd,
            start_new_session=True,
            preexec_fn=_own_terminal,
        )
        os.close(slave)
        self.shown = ""

    def type(self, text):
        os.write(self._master, text.encode())

    def wait_for(self, text, seconds=40):
        end = time.monotonic() + seconds
        while text not in self.shown:
            ready, _, _ = select.select([self._master], [], [], max(0, end - time.monotonic()))
            assert ready, f"no {text!r} in {self.shown!r}"
            self.shown += os.read(self._master, 4_096).decode(errors="replace")
        self.shown = self.shown.partition(text)[2]

    def close(self):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        os.close(self._master)


def _own_terminal():
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
