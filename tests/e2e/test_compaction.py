"""Compaction against the simulator, over HTTP with the official SDK: reads and later calls."""

import random

import anthropic
import pytest

from longhold.core.log.entries import CacheBroke, Compacted, Forked
from longhold.core.settings import (
    ClearSettings,
    CompactSettings,
    NotesSettings,
    Settings,
    WindowSettings,
)
from longhold.errors import PromptTooLong
from longhold.session.session import Session
from longhold.simulator import BrainAnswer, SimulatorClock, run_simulator
from longhold.simulator.brains import text

WORDS = ("anchor", "beam", "cleat", "davit", "fender", "keel", "ladder", "mast", "oar", "sail")
SECTIONS = "".join(
    f"## {n}. {title}\nThe mast is up.\n"
    for n, title in (
        (1, "Request and intent"),
        (2, "Technical concepts"),
        (4, "Errors and fixes"),
        (5, "Problem solving"),
        (7, "Pending tasks"),
        (8, "Current work"),
        (9, "Next step"),
    )
)
SHARE = 0.99
"""At least this much of what the parent's last call left must be read."""


def prose(seed, words):
    """Make some text that is always the same."""
    return " ".join(random.Random(seed).choices(WORDS, k=words))


class Brain:
    """Writes the summary when asked to, else some words."""

    def answer(self, request):
        """Answer by what was said last."""
        last = str(request.messages[-1])
        if request.purpose == "summary":
            return BrainAnswer(blocks=(text("The provider says: the mast is up."),))
        if "The work pauses here" in last:
            return BrainAnswer(blocks=(text(f"<summary>{SECTIONS}</summary>"),))
        return BrainAnswer(blocks=(text(prose(last[-50:], 200)),))


@pytest.fixture(scope="module")
def simulator():
    """One simulator for all tests; every talk has a key, and so a cache, of its own."""
    with run_simulator(Brain(), clock=SimulatorClock(is_frozen=True)) as one:
        yield one


class Talk:
    """A session of a program's own loop, with its client."""

    def __init__(self, simulator, client, directory, **compact):
        self.client = client
        self.session = Session.open(
            model="simulated/claude-sonnet-5-5",
            system=prose("rules", 2_000),
            directory=directory,
            client=client,
            settings=Settings(
                window=WindowSettings(limit_tokens=20_000),
                clear=ClearSettings(on=False),
                compact=CompactSettings(**compact),
                notes=NotesSettings(on=False),
            ),
            clock=simulator.simulation.clock.now,
        )

    def of(self, kind):
        return [e for e in self.session.view.history if isinstance(e, kind)]

    async def turn(self, words=""):
        """Say something and have it answered; give the usage."""
        self.session.user(words or prose(len(self.session.view.history), 700))
        request = await self.session.prepare()
        response = await self.client.beta.messages.create(
            **request.kwargs, **({"betas": list(request.betas)} if request.betas else {})
        )
        await self.session.record(response)
        return self.session.view.items[-1].usage

    async def until_compacted(self):
        """Talk until history became a summary; give the usage of the call before that."""
        usage = None
        for _ in range(30):
            before, usage = usage, await self.turn()
            if self.of(Compacted):
                return before, usage
        raise AssertionError("the window never filled")


@pytest.fixture
async def talk(simulator, tmp_path, request):
    """Make talks, each with a cache of its own."""
    made = []
    async with anthropic.AsyncAnthropic(
        base_url=simulator.url, api_key=request.node.name, max_retries=0
    ) as client:

        def make(**compact):
            made.append(Talk(simulator, client, tmp_path, **compact))
            return made[-1]

        yield make
        for one in made:
            one.session.close()


async def test_the_summarising_call_reads_what_its_parent_left(talk):
    one = talk()
    before, after = await one.until_compacted()
    (fork,) = one.of(Forked)
    left = before.cache_read_tokens + before.cache_write_tokens
    assert fork.usage.cache_read_tokens >= SHARE * left
    assert fork.usage.cache_write_tokens == 0
    assert one.of(Compacted)[0].by == "model"
    assert after.prompt_tokens < 0.75 * before.prompt_tokens  # most of it is the user's words
    assert [b for b in one.of(CacheBroke) if not b.expected] == []


async def test_the_conversation_goes_on_behind_a_summary_and_after_undo(talk):
    one = talk()
    await one.until_compacted()
    await one.turn()
    one.session.undo()
    one.session.redo()
    assert (await one.turn()).prompt_tokens < 15_000


async def test_an_overflow_that_a_client_reports_is_recovered_once(talk):
    one = talk(reactive_only=True)
    for _ in range(5):
        await one.turn()
    one.session.user("and now?")
    error = PromptTooLong("too long", needed_tokens=25_000, allowed_tokens=20_000)
    await one.session.recover(error)
    assert one.of(Compacted)[0].trigger == "reactive"
    with pytest.raises(PromptTooLong):
        await one.session.recover(error)
    assert (await one.turn()).prompt_tokens < 15_000
