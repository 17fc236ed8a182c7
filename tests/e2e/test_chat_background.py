"""The chat in a real pseudo-terminal with background work: reports, jobs, leaving, resuming."""

import threading
import time

import pytest

from casting import until
from funds import fund
from lazy import needs
from longhold.core.log.entries import Failed, Said
from longhold.core.log.stores import default_store
from longhold.core.messages import text_of
from longhold.simulator import BrainAnswer, BrainRequest, run_simulator
from longhold.simulator.brains import text, tool_use
from terminal import Terminal

needs("anthropic")

pytestmark = pytest.mark.slow

MODEL = "simulated/claude-sonnet-5-5"
WORKER = {
    "description": "count the masts",
    "prompt": "Count the masts.",
    "name": "ada",
    "run_in_background": True,
}


class Harbour:
    """Starts a worker when told to, and says what it read; the worker waits to be let go."""

    def __init__(self):
        self.may_end = threading.Event()

    async def answer(self, request: BrainRequest) -> BrainAnswer:
        last = request.messages[-1]["content"][-1]
        words = last.get("text", "")
        if words == "Count the masts.":
            await until(self.may_end.is_set)
            return BrainAnswer(blocks=(text("There are three masts."),))
        if words == "send someone":
            return BrainAnswer(blocks=(tool_use("Agent", WORKER),))
        if "<agent id" in words:
            return BrainAnswer(blocks=(text("So: three masts."),))
        if len(words.splitlines()) > 1:  # a job's prompt, not something typed
            await until(self.may_end.is_set)
        return BrainAnswer(blocks=(text(f"Heard {words!r}."),))


@pytest.fixture
def brain():
    return Harbour()


@pytest.fixture
def chat(tmp_path, brain):
    """A chat whose model is the brain, over HTTP, in a project that spent enough for memory jobs."""
    fund(tmp_path, 500.0)
    with run_simulator(brain) as simulator:
        terminal = Terminal(
            ["chat", "--plain", "--base-url", simulator.url, "--model", MODEL],
            tmp_path,
        )
        terminal.wait_for("> ")
        yield terminal
        brain.may_end.set()
        terminal.close()


def history(session=0):
    store = default_store()
    return store.load(store.sessions()[session].id).entries


def said(session=0):
    entries = history(session)
    return [text_of(e.content) for e in entries if isinstance(e, Said) and not e.hidden]


def test_a_report_that_arrives_while_nobody_types_wakes_the_model(chat, brain):
    chat.type("send someone\r")
    chat.wait_for("% left")
    chat.wait_for("> ")
    chat.type("/jobs\r")
    chat.wait_for("agent ada, for ")
    chat.wait_for("> ")
    brain.may_end.set()
    chat.wait_for("ada [general] completed")
    chat.wait_for("So: three masts.")
    chat.wait_for("> ")
    chat.type("/exit\r")
    assert chat.child.wait(20) == 0
    assert said() == ["send someone"]


def test_who_is_typing_is_told_and_not_interrupted(chat, brain):
    chat.type("send someone\r")
    chat.wait_for("% left")
    chat.wait_for("> ")
    chat.type("hello wor")
    chat.wait_for("hello wor")
    brain.may_end.set()
    chat.wait_for("ada [general] completed")
    chat.type("ld\r")
    chat.wait_for("% left")
    chat.type("/exit\r")
    assert chat.child.wait(20) == 0
    assert said() == ["send someone", "hello world"]


def test_leaving_says_what_is_waited_for_and_ctrl_c_leaves_at_once(chat):
    chat.type("remember the harbour\r")
    chat.wait_for("% left")
    chat.type("/jobs\r")
    chat.wait_for("memory, for ")
    chat.type("/exit\r")
    chat.wait_for("Waiting up to 60 s for: memory. Ctrl-C exits immediately.")
    began = time.monotonic()
    chat.type("\x03")
    assert chat.child.wait(20) == 0
    assert time.monotonic() - began < 10
    failed = [entry for entry in history() if isinstance(entry, Failed)]
    assert [(one.what, one.error) for one in failed] == [
        ("memory", "it was stopped: the user left")
    ]


def test_ctrl_c_at_the_prompt_waits_for_no_job(chat):
    chat.type("remember the harbour\r")
    chat.wait_for("% left")
    chat.wait_for("> ")
    chat.type("\x03")
    chat.wait_for("again")  # the second one leaves
    chat.type("\x03")
    assert chat.child.wait(30) == 130
    [failed] = [entry for entry in history() if isinstance(entry, Failed)]
    assert failed.error == "it was stopped: the user left"


def test_a_killed_job_is_gone_and_the_chat_goes_on(chat):
    chat.type("remember the harbour\r")
    chat.wait_for("% left")
    chat.type("/jobs kill 1\r")
    chat.wait_for("memory was stopped.")
    chat.wait_for("No job is running.")
    chat.type("/exit\r")
    assert chat.child.wait(20) == 0


def test_going_back_and_beginning_anew_keep_the_session_they_leave(chat, brain):
    brain.may_end.set()
    for words in ("one", "two"):
        chat.type(f"{words}\r")
        chat.wait_for("% left")
    chat.type("/rewind\r")
    chat.wait_for("Go back to before which message?")
    chat.type("1\r")
    chat.wait_for("compact up to")
    chat.type("1\r")
    chat.wait_for("resumes this session.")
    chat.wait_for("> ")
    chat.type("three\r")
    chat.wait_for("% left")
    chat.type("/clear\r")
    chat.wait_for("resumes this session.")
    chat.wait_for("> ")
    chat.type("four\r")
    chat.wait_for("% left")
    chat.type("/drop 99999\r")
    chat.wait_for("#99999 is not in the view")
    chat.type("/exit\r")
    assert chat.child.wait(20) == 0
    assert sorted(said(n) for n in range(3)) == [["four"], ["one", "three"], ["one", "two"]]
