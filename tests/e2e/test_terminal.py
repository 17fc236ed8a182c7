"""The chat in a real pseudo-terminal: typed lines, questions, Ctrl-C."""

import os
import pty
import select
import subprocess
import sys
import time

import pytest


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


@pytest.fixture
def chat(tmp_path):
    """A chat, offline, in a directory with a bug."""
    (tmp_path / "add.py").write_text("def add(a, b):\n    return a - b\n")
    terminal = Terminal(["chat", "--offline"], tmp_path)
    terminal.wait_for("> ")
    yield terminal
    terminal.close()


def test_questions_are_asked_and_answers_heeded(chat, tmp_path):
    """A yes lets the edit pass, a reason denies the command and ends the turn."""
    chat.type('replace "a - b" with "a + b" in add.py\r')
    chat.wait_for("Allow?")
    chat.type("y\r")
    chat.wait_for("Allow?")
    chat.type("not now\r")
    chat.wait_for("Stopped (denied)")
    assert "a + b" in (tmp_path / "add.py").read_text()
    chat.type("/exit\r")
    assert chat.child.wait(20) == 0


def test_ctrl_c_at_the_prompt_leaves_at_once(chat):
    """Nobody has to press return for it."""
    chat.type("\x03")
    chat.wait_for("Stopped.")
    assert chat.child.wait(10) == 130
