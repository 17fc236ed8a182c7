"""The chat in a real pseudo-terminal: typed lines, questions, Ctrl-C."""

import time

import pytest

from terminal import Terminal

pytestmark = pytest.mark.slow


@pytest.fixture
def chat(tmp_path):
    """A chat, offline, in a directory with a bug."""
    (tmp_path / "add.py").write_text("def add(a, b):\n    return a - b\n")
    terminal = Terminal(["chat", "--offline", "--plain"], tmp_path)
    terminal.wait_for("> ")
    yield terminal
    terminal.close()


def test_questions_are_asked_and_answers_heeded(chat, tmp_path):
    chat.type('replace "a - b" with "a + b" in add.py\r')
    chat.wait_for("Allow?")
    chat.type("y\r")
    chat.wait_for("Allow?")
    chat.type("not now\r")
    chat.wait_for("Stopped (denied)")
    assert "a + b" in (tmp_path / "add.py").read_text()
    chat.type("/exit\r")
    assert chat.child.wait(20) == 0


def test_a_run_at_a_terminal_is_drawn_as_a_chat_is(tmp_path):
    pytest.importorskip("rich")
    (tmp_path / "add.py").write_text("def add(a, b):\n    return a - b\n")
    task = 'replace "a - b" with "a + b" in add.py'
    terminal = Terminal(["run", "--offline", "--mode", "accept_edits", "-p", task], tmp_path)
    try:
        shown = terminal.see("● Edit add.py", "    - a - b\n    + a + b", "session ")
        assert "Ctrl-O" not in shown
    finally:
        terminal.close()


def test_the_second_ctrl_c_at_the_prompt_leaves(chat):
    chat.type("\x03")
    chat.wait_for("Ctrl-C again leaves.")
    time.sleep(2.1)
    chat.type("\x03")
    chat.wait_for("Ctrl-C again leaves.")
    chat.type("\x03")
    chat.wait_for("Stopped.")
    assert chat.child.wait(10) == 130
