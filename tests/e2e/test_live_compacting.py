"""Compacting in the chat: with a focus, of a part, with pins, and cancelling."""

import threading

import pytest

from casting import until
from compacting import SECTIONS
from lazy import needs
from longhold.core.log.entries import Compacted, Said
from longhold.core.log.stores import default_store
from longhold.core.messages import text_of
from longhold.core.view import fold
from longhold.simulator import BrainAnswer, BrainRequest, run_simulator
from longhold.simulator.brains import text
from terminal import Terminal

needs("anthropic", "prompt_toolkit", "pyte")

pytestmark = pytest.mark.slow

MODEL = "simulated/claude-sonnet-5-5"
SAID = ("mend the login", "count the masts", "paint the hull")


class Secretary:
    """Says what it heard, and writes a summary where one is asked for, unless it is held."""

    def __init__(self):
        self.may_write = threading.Event()
        self.may_write.set()
        self.asked = []

    async def answer(self, request: BrainRequest) -> BrainAnswer:
        words = request.messages[-1]["content"][-1].get("text", "")
        if "<summary>" not in words:
            return BrainAnswer(blocks=(text(f"Heard {words[-30:]!r}. " + "It is done. " * 1_200),))
        self.asked.append(words)
        await until(self.may_write.is_set)
        return BrainAnswer(blocks=(text(SECTIONS),))


@pytest.fixture
def brain():
    return Secretary()


@pytest.fixture
def chat(tmp_path, brain):
    """A chat in which three things were said."""
    quiet = {"LONGHOLD_TERMINAL_SUGGEST": "false", "LONGHOLD_MEMORY_ON": "false"}
    with run_simulator(brain) as server:
        words = ["chat", "--base-url", server.url, "--model", MODEL]
        terminal = Terminal(words, tmp_path, rows=50, env=quiet)
        try:
            terminal.see("% left")
            for said in SAID:
                terminal.type(f"{said}\r")
                terminal.see(f"Heard '{said}'")
            yield terminal
        finally:
            brain.may_write.set()
            terminal.close()


def loaded():
    store = default_store()
    return store.load(store.sessions()[0].id)


def numbers():
    """Return the number of each thing that was said."""
    said = [e for e in loaded().entries if isinstance(e, Said) and not e.hidden]
    return {text_of(entry.content): entry.n for entry in said}


def compactions():
    return [entry for entry in loaded().entries if isinstance(entry, Compacted)]


def test_a_compaction_has_a_focus_and_keeps_what_is_pinned(chat, brain):
    masts = numbers()["count the masts"]
    chat.type(f"/pin {masts}\r")
    chat.see(f"#{masts}  count the masts")
    chat.type("/compact the masts\r")
    shown = chat.see("` restores the history.")
    assert "> mend the login" in shown
    assert "the masts" in brain.asked[-1]
    [done] = compactions()
    assert "The login is to be fixed." in text_of(done.summary)
    assert "count the masts" in [text_of(item.content) for item in fold(loaded().entries).items]


def test_only_a_part_is_compacted_and_undo_brings_it_back(chat):
    masts = numbers()["count the masts"]
    chat.type(f"/compact up to {masts}\r")
    chat.see("` restores the history.", gone=("compacting…",))
    chat.type("/undo\r")
    chat.see("was undone: ")
    chat.type(f"/compact the paint from #{masts}\r")
    chat.see("> /compact the paint from", "compacted 4 messages", gone=("compacting…",))
    before, after = compactions()
    assert before.first < masts <= before.last < numbers()["paint the hull"]
    assert masts == after.first


def test_a_compaction_shows_that_it_goes_on_and_can_be_stopped(chat, brain):
    brain.may_write.clear()
    chat.type("/compact\r")
    chat.see("compacting… ", "Esc interrupts")
    chat.type("\x1b")
    chat.see("Stopped; nothing was changed.", gone=("Esc interrupts",))
    brain.may_write.set()
    chat.type("and now\r")
    chat.see("Heard 'and now'")
    assert compactions() == []
