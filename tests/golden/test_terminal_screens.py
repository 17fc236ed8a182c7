"""Screens of the chat as text, as a user sees them. `make golden` redraws them."""

import re
import threading
from pathlib import Path

import pytest

from casting import until
from lazy import needs
from longhold.simulator import BrainAnswer, BrainRequest, run_simulator
from longhold.simulator.brains import ScriptedBrain, text
from regions import check_golden
from terminal import Terminal

needs("anthropic", "prompt_toolkit", "pyte")
pytestmark = pytest.mark.slow

COLOUR = re.compile(r"\x1b\[(?:\d+;)*[39]\d(?:;\d+)*m")
HERE = Path(__file__).parent
ANSWERS = """text: I look at the file first.
tool: Read {"file_path": "add.py"}
---
tool: Edit {"file_path": "add.py", "old_string": "a - b", "new_string": "a + b"}
---
text: ## Done
  `add` **adds** now:

  - `add.py`: one character
  - no test was run
"""


QUIET = {
    "LONGHOLD_TERMINAL_SUGGEST": "false",
    "LONGHOLD_MEMORY_ON": "false",
    "NO_COLOR": "1",
}


class Silent:
    """Answers when it may."""

    def __init__(self):
        self.may_answer = threading.Event()

    async def answer(self, request: BrainRequest) -> BrainAnswer:
        await until(self.may_answer.is_set)
        return BrainAnswer(blocks=(text("Here I am."),))


def rest(text):
    """Replace what differs from run to run."""
    text = re.sub(r"… \d+ s,", "… 2 s,", text)
    text = re.sub(r"▕.*?▏", "▕▌           ▏", text)
    text = re.sub(r"\d{8}-\d{6}-[0-9a-f]{8}", "SESSION", text)
    text = re.sub(r"cache \d+:\d\d", "cache 59:59", text)
    # the prompt names the machine, and the line follows the prices
    text = re.sub(r"[\d.]+K of [\d.]+K, \d+ %", "8.5K of 155.0K, 95 %", text)
    allow = "Allow? y = yes, a = always (Edit(add.py)), n = no, r = no, with a reason:\n>"
    # the path's length decides how it is folded
    return re.sub(r"Allow\? y = yes.*?reason:(?:\n>)?", allow, text, flags=re.S)


@pytest.mark.parametrize(("name", "columns"), [("wide", 90), ("narrow", 40)])
def test_a_screen_shows_what_is_going_on(tmp_path, name, columns):
    (tmp_path / "add.py").write_text("def add(a, b):\n    return a - b\n")
    with run_simulator(ScriptedBrain(ANSWERS)) as server:
        words = ["chat", "--base-url", server.url, "--model", "simulated/claude-sonnet-5-5"]
        chat = Terminal(words, tmp_path, rows=40, columns=columns, env=QUIET)
        try:
            chat.see("% left")
            chat.type("mend add.py\r")
            chat.see("Allow?", "cache 5")
            asked = rest(chat.text())
            chat.type("y\r")
            chat.see("no test was run", "───\n>\n", "cache 5", gone=("Esc interrupts",))
            done = rest(chat.text())
        finally:
            chat.close()
    check_golden(HERE / f"screen_{name}.txt", f"{asked}\n\n{'=' * columns}\n\n{done}\n")
    assert not COLOUR.search(chat.shown)


def test_a_busy_screen_shows_what_waits_and_a_list_what_can_be_chosen(tmp_path):
    brain = Silent()
    with run_simulator(brain) as server:
        words = ["chat", "--base-url", server.url, "--model", "simulated/claude-sonnet-5-5"]
        chat = Terminal(words, tmp_path, rows=24, columns=80, env=QUIET)
        try:
            chat.see("% left")
            chat.type("mend add.py\r")
            chat.see("Esc interrupts")
            chat.type("/jobs\r")
            chat.see("No job is running.")
            chat.type("and run the tests\r/mode\rthank y")
            chat.see("waits for the answer: /mode", "> thank y")
            busy = rest(chat.text())
            brain.may_answer.set()
            chat.see("Mode  (", "accept_edits", "cache 5", gone=("queued", "Esc interrupts"))
            listed = rest("\n".join(chat.lines()).rstrip())
        finally:
            brain.may_answer.set()
            chat.close()
    check_golden(HERE / "screen_busy.txt", f"{busy}\n\n{'=' * 80}\n\n{listed}\n")
