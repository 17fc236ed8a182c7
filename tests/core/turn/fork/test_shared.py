"""Forks against the simulator, over HTTP with the official SDK: cache reads and cost."""

import asyncio
import random
from dataclasses import replace

import anthropic
import pytest
from msgspec import structs

from longhold.core.log.entries import CacheBroke, Framed, Section
from longhold.core.models.anthropic import AnthropicModel
from longhold.core.models.retry import Retries
from longhold.core.tools.context import ToolContext
from longhold.core.turn.fork.asking import ForkRequest, make_placeholders
from longhold.core.turn.fork.prefix import STARTED
from longhold.core.turn.fork.run import Forks
from longhold.core.turn.round import Denied, Toolbox
from longhold.errors import ModelUnavailable, PrefixMoved
from longhold.session.session import Session
from longhold.simulator import BrainAnswer, SimulatorClock, SimulatorSettings, run_simulator
from longhold.simulator.brains import text, thinking, tool_use

WORDS = ("anchor", "beam", "cleat", "davit", "fender", "keel", "ladder", "mast", "oar", "sail")
TOOL = {"name": "Read", "description": "reads", "input_schema": {"type": "object"}}
PARALLEL = 10
FIRST_BYTE_SECONDS = 0.05
SHARE = 0.99
"""At least this much of what could be read must be read."""


def prose(seed, words):
    """Make some text that is always the same."""
    return " ".join(random.Random(seed).choices(WORDS, k=words))


class Brain:
    """Calls two tools when asked to look, else answers with some words."""

    def answer(self, request):
        """Answer by what was said last."""
        last = str(request.messages[-1])
        calls = [tool_use("Read", {"path": name}) for name in "ab"] if "LOOK" in last else []
        return BrainAnswer(blocks=(text(prose(last[-50:], 40)), *calls))


@pytest.fixture(scope="module")
def simulator():
    """One simulator for all tests; every talk has a key, and so a cache, of its own.

    Its answers take a moment to begin, as everyone's do: what is sent meanwhile reads nothing.
    """
    settings = SimulatorSettings(first_byte_delay_seconds=FIRST_BYTE_SECONDS)
    with run_simulator(Brain(), clock=SimulatorClock(is_frozen=True), settings=settings) as one:
        yield one


class Talk:
    """A session with a client of its own, and forks that try once."""

    def __init__(self, simulator, client, directory):
        self.simulator = simulator
        self.client = client
        system = [Section(name="rules", text=prose("rules", 2_000))]
        self.session = Session.open(
            model="claude-sonnet-5-5",
            system=system,
            tools=[TOOL],
            directory=directory,
            client=client,
            clock=simulator.simulation.clock.now,
        )
        self.engine = self.session._engine
        tool_context = ToolContext(root=directory, home=directory, scratch=directory)
        model = AnthropicModel("claude-sonnet-5-5", client=client)
        self.forks = Forks(
            parent=self.engine,
            model=lambda: model,
            toolbox=lambda: Toolbox(
                tools=make_placeholders(self.engine.frame), tool_context=tool_context
            ),
            retries=Retries(attempts=1),
        )

    async def turn(self, words=""):
        """Say something and have it answered; give the usage."""
        self.session.user(words or prose(len(self.session.view.history), 500))
        return await self.go_on()

    async def go_on(self):
        request = await self.session.prepare()
        response = await self.client.messages.create(**request.kwargs)
        await self.session.record(response)
        return self.session.view.items[-1].usage

    async def fork(self, words="Sum up.", **options):
        return await self.forks.ask(ForkRequest(say=words, source="notes", **options))

    async def forks_at_once(self, **options):
        """Start several forks in the same moment; give what each came to."""
        asked = [self.fork(f"Question {i}: what now?", **options) for i in range(PARALLEL)]
        return await asyncio.gather(*asked, return_exceptions=True)

    @property
    def breaks(self):
        return [e for e in self.session.view.history if isinstance(e, CacheBroke)]

    def wait(self, minutes):
        self.simulator.simulation.clock.advance(60 * minutes)


@pytest.fixture
async def talk(simulator, tmp_path, request):
    """A talk with a cache of its own."""
    async with anthropic.AsyncAnthropic(
        base_url=simulator.url, api_key=request.node.name, max_retries=0
    ) as client:
        one = Talk(simulator, client, tmp_path)
        yield one
        one.session.close()


def left_by(usage):
    return usage.cache_read_tokens + usage.cache_write_tokens


async def test_a_fork_reads_its_parents_prefix_and_writes_nothing(talk):
    for _ in range(4):
        usage = await talk.turn()
    fork = (await talk.fork()).usage
    assert fork.cache_read_tokens >= SHARE * left_by(usage)
    assert fork.cache_write_tokens == 0


async def test_the_parent_goes_on_as_if_nothing_had_been(talk):
    await talk.turn()
    before = await talk.turn()
    await talk.fork()
    after = await talk.turn()
    assert after.cache_read_tokens >= SHARE * left_by(before)
    assert talk.breaks == []


async def test_a_fork_while_tools_are_open_reads_as_much(talk):
    await talk.turn()
    usage = await talk.turn("LOOK")
    fork = (await talk.fork()).usage
    assert fork.cache_read_tokens >= SHARE * left_by(usage)
    for use in talk.session.view.open_round().missing():
        talk.session.tool_result(use.id, "nothing there")
    assert (await talk.go_on()).cache_read_tokens >= SHARE * left_by(usage)
    assert talk.breaks == []


async def test_forks_keep_the_prefix_alive(talk):
    usage = await talk.turn()
    for _ in range(3):
        talk.wait(minutes=4)
        await talk.fork()
    talk.wait(minutes=4)
    assert (await talk.turn()).cache_read_tokens >= SHARE * left_by(usage)
    assert talk.breaks == []


async def test_parallel_forks_of_a_cold_prefix_pay_for_one(talk):
    await talk.turn()
    talk.wait(minutes=6)
    replies = await talk.forks_at_once()
    written = [reply.usage.cache_write_tokens for reply in replies]
    assert sum(amount > 0 for amount in written) == 1
    assert all(
        r.usage.cache_read_tokens >= SHARE * max(written)
        for r in replies
        if not r.usage.cache_write_tokens
    )


async def test_parallel_forks_of_a_conversation_never_sent_pay_for_one(talk):
    talk.session.user(prose("never sent", 3_000))
    replies = await talk.forks_at_once()
    assert sum(reply.usage.cache_write_tokens > 0 for reply in replies) == 1


async def test_when_the_first_fails_the_next_one_tries(talk):
    await talk.turn()
    talk.wait(minutes=6)
    talk.simulator.simulation.faults.plan({"queue": ["529"]})
    replies = await talk.forks_at_once()
    failed = [reply for reply in replies if isinstance(reply, ModelUnavailable)]
    done = [reply.usage for reply in replies if not isinstance(reply, BaseException)]
    assert (len(failed), len(done)) == (1, PARALLEL - 1)
    assert sum(usage.cache_write_tokens > 0 for usage in done) == 1


async def test_a_fork_that_writes_reads_its_own_words_in_the_next_turn(talk):
    await talk.turn()
    first, second = (await talk.fork("LOOK", turns=2, writes_cache=True)).calls
    assert second.cache_read_tokens >= SHARE * left_by(first)
    assert second.cache_write_tokens > 0


async def test_a_fork_without_a_conversation_writes_its_own_words_in_its_first_call(talk):
    """A dream's prompt is long and every later call reads it."""
    await talk.turn()
    prefix = replace(talk.engine.prefix(), messages=(), cached_to=None, before=None)
    words = f"LOOK {'word ' * 2_000}"
    calls = (await talk.fork(words, turns=2, writes_cache=True, prefix=prefix)).calls
    assert calls[0].cache_write_tokens > 1_500 < calls[1].cache_read_tokens


async def test_what_a_fork_adds_is_kept_for_five_minutes_where_its_parent_keeps_an_hour(talk):
    await talk.turn()
    prefix = talk.engine.prefix()
    prefix = replace(prefix, frame=structs.replace(prefix.frame, lifetime="1h"), before=None)
    first, second, third = (
        await talk.fork("LOOK", turns=3, writes_cache=True, prefix=prefix, permit=look_again)
    ).calls
    assert first.written_1h_tokens == first.cache_write_tokens > 0
    for call, before in ((second, first), (third, second)):
        assert (call.written_1h_tokens, call.cache_write_tokens > 0) == (0, True)
        assert call.cache_read_tokens >= SHARE * left_by(before)
    assert talk.breaks == []


async def look_again(use, tool):
    return Denied(reason="LOOK elsewhere.")


async def test_forks_at_an_answer_share_every_byte_up_to_their_directive(talk):
    await talk.turn()
    await talk.turn("LOOK")
    prefix = talk.engine.prefix().end_at_answer()
    assert prefix.messages[-1]["content"][0]["content"] == STARTED
    replies = await talk.forks_at_once(prefix=prefix, writes_cache=True)
    first, *others = sorted(replies, key=lambda reply: -reply.usage.cache_write_tokens)
    assert first.usage.cache_write_tokens > 0
    assert all(other.usage.cache_write_tokens == 0 for other in others)
    assert all(other.usage.cache_read_tokens >= SHARE * left_by(first.usage) for other in others)


async def test_a_cold_fork_is_a_break_with_a_cause_under_its_source(talk):
    await talk.turn()
    talk.wait(minutes=6)
    await talk.fork()
    (broke,) = talk.breaks
    assert (broke.source, broke.cause) == ("notes", "lifetime_5m")
    await talk.turn()
    assert len(talk.breaks) == 1


async def test_a_changed_frame_is_announced_to_forks_too(talk):
    await talk.turn()
    frame = talk.engine.frame
    talk.engine.record(
        Framed(sections=(Section(name="rules", text=prose("other", 2_000)),), tools=frame.tools)
    )
    await talk.fork()
    (broke,) = talk.breaks
    assert (broke.source, broke.expected) == ("notes", "framed")


async def test_a_session_asks_through_its_callers_client(simulator, tmp_path):
    async with anthropic.AsyncAnthropic(
        base_url=simulator.url, api_key="asks", max_retries=0
    ) as client:
        with Session.open(model="claude-sonnet-5-5", directory=tmp_path, client=client) as one:
            one.user("hello")
            assert (await one._ask(ForkRequest(say="Sum up.", source="notes", is_wanted=True))).text
    with Session.open(model="claude-sonnet-5-5", directory=tmp_path) as other:
        assert other._ask is None


async def test_a_prefix_taken_earlier_is_compared_with_what_it_shared(talk):
    usage = await talk.turn()
    then = talk.engine.prefix()
    for _ in range(4):
        await talk.turn(prose("long", 3_000))
    fork = (await talk.fork(prefix=then)).usage
    assert fork.cache_read_tokens >= SHARE * left_by(usage)
    assert talk.breaks == []


async def test_a_fork_that_does_not_begin_as_its_parent_did_is_a_bug(talk):
    await talk.turn()
    prefix = talk.engine.prefix()
    moved = ({"role": "user", "content": [{"type": "text", "text": "x"}]}, *prefix.messages[1:])
    with pytest.raises(PrefixMoved):
        await talk.fork(prefix=replace(prefix, messages=moved))


class Ponderer:
    """Thinks, says something and calls a tool, over and over."""

    def answer(self, request):
        """Answer by what was said last."""
        last = str(request.messages[-1])[-50:]
        call = tool_use("Read", {"path": "a"})
        return BrainAnswer(blocks=(thinking(prose(last, 200)), text(prose(last, 400)), call))


async def test_where_words_end_a_turn_its_thinking_is_left_out_and_that_is_expected(tmp_path):
    with run_simulator(Ponderer()) as simulator:
        async with anthropic.AsyncAnthropic(
            base_url=simulator.url, api_key="ponders", max_retries=0
        ) as client:
            with Session.open(
                model="claude-haiku-4-5",
                system=prose("rules", 4_000),
                tools=[TOOL],
                options={"thinking": {"type": "enabled", "budget_tokens": 2_000}},
                directory=tmp_path,
                client=client,
            ) as session:
                session.user("LOOK")
                for _ in range(5):
                    request = await session.prepare()
                    await session.record(await client.messages.create(**request.kwargs))
                    (use,) = session.view.open_round().missing()
                    session.tool_result(use.id, prose(use.id, 500))
                await session._ask(ForkRequest(say="Sum up.", source="notes", is_wanted=True))
                (broke,) = [e for e in session.view.history if isinstance(e, CacheBroke)]
                assert (broke.source, broke.cause, broke.expected) == ("notes", "thinking", "said")
