"""A program in a pseudo-terminal, and its screen."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time

ROWS, COLUMNS = 30, 100


class Terminal:
    """A program in a pseudo-terminal; `screen` is what it shows, scrolled lines included."""

    def __init__(self, words, cwd, *, rows=ROWS, columns=COLUMNS, env=None):
        import pyte

        self._master, slave = pty.openpty()
        self.view = pyte.HistoryScreen(columns, rows, history=5_000, ratio=0.5)
        self._stream = pyte.ByteStream(self.view)
        self._size(rows, columns)
        self.child = subprocess.Popen(
            [sys.executable, "-m", "longhold", *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=cwd,
            env={**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8", **(env or {})},
            start_new_session=True,
            preexec_fn=_own_terminal,
        )
        os.close(slave)
        self.shown = ""

    def _size(self, rows, columns):
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, rows, columns):
        self.view.resize(rows, columns)
        self._size(rows, columns)

    def type(self, text):
        """Type, or paste: everything is written, however slowly it is read."""
        data = text.encode()
        while data:
            _, ready, _ = select.select([], [self._master], [], 20)
            assert ready, "nobody reads what is typed"
            data = data[os.write(self._master, data[:4_096]) :]
            self._read(0)

    def paste(self, text):
        self.type(f"\x1b[200~{text}\x1b[201~")

    def _read(self, seconds):
        ready, _, _ = select.select([self._master], [], [], max(0, seconds))
        if not ready:
            return False
        try:
            data = os.read(self._master, 65_536)
        except OSError:  # the program has ended
            return False
        self.shown += data.decode(errors="replace")
        self._stream.feed(data)
        return bool(data)

    def wait_for(self, text, seconds=40):
        """Read until `text` came; what was shown up to it is forgotten."""
        end = time.monotonic() + seconds
        while text not in self.shown:
            came = self._read(end - time.monotonic())
            assert came, f"no {text!r} in {self.shown!r}"
        self.shown = self.shown.partition(text)[2]

    def see(self, *texts, gone=(), seconds=40):
        """Read until all these stand on the screen, and none of those that shall be gone."""
        end = time.monotonic() + seconds
        while True:
            text = self.text()
            if all(part in text for part in texts) and not any(part in text for part in gone):
                return text
            missing = [part for part in texts if part not in text]
            came = self._read(end - time.monotonic())
            assert came or self.child.poll() is None, f"it has ended:\n{text}"
            assert came, f"no {missing} (or still there: {gone}) in\n{text}"

    def lines(self):
        """Return what stands on the screen, row by row."""
        return [line.rstrip() for line in self.view.display]

    def text(self):
        """Return what can be read by scrolling back, and the screen itself."""
        above = [
            "".join(row[x].data for x in range(self.view.columns)).rstrip()
            for row in self.view.history.top
        ]
        return "\n".join((*above, *self.lines())).rstrip()

    def end(self, seconds=20):
        """Wait for the program's end; return its exit code."""
        limit = time.monotonic() + seconds
        while self.child.poll() is None:
            assert time.monotonic() < limit, f"it goes on:\n{self.text()}"
            self._read(0.05)
        return self.child.wait(max(0.1, limit - time.monotonic()))

    def hang_up(self):
        """Close the terminal under the program."""
        os.close(self._master)
        self._master = -1

    def close(self):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        if self._master >= 0:
            os.close(self._master)


def _own_terminal():
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
