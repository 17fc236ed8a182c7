"""Clearing long inputs and old thinking with results, over HTTP with the official SDK."""

from contextlib import ExitStack
from dataclasses import replace

import pytest

from longhold.core.log.entries import Cleared
from longhold.core.log.stores import default_store
from longhold.core.messages import ToolUse
from longhold.core.messages.rules import violations
from longhold.core.models.anthropic import AnthropicModel
from longhold.core.models.protocol import collect
from longhold.core.settings import CacheSettings, ClearSettings, Settings
from longhold.session.session import Session
from longhold.simulator import BrainAnswer, SimulatorClock, run_simulator
from longhold.simulator.brains import text, thinking, tool_use

TOOLS = [{"name": name, "input_schema": {"type": "object"}} for name in ("Write", "History")]
SYSTEM = "Be careful with what you write. " * 200
PLAIN = Settings(cache=CacheSettings(lifetime="5m", diagnose=False))
CODE = "some words of code\n" * 150


class Writer:
    """Thinks, writes a long file, and says that it did; the API checks what comes back."""

    def answer(self, request):
        thought = thinking(f"How about {len(request.messages)}? " + "Hm, let me see. " * 60)
        blocks = request.messages[-1]["content"]
        if any(block["type"] == "tool_result" for block in blocks):
            return BrainAnswer(blocks=(thought, text("Written.")))
        path = f"/shop/{len(request.messages)}.py"
        use = tool_use("Write", {"file_path": path, "content": path + CODE})
        return BrainAnswer(blocks=(thought, use))


class Work:
    """A session that writes a file with each turn, and a model that answers through the SDK."""

    def __init__(self, simulator, store, model, settings):
        self.clock = simulator.simulation.clock
        self.model = AnthropicModel(model, base_url=simulator.url, api_key="none")
        self.session = Session.open(
            model=model,
            system=SYSTEM,
            tools=TOOLS,
            store=store,
            settings=settings,
            clock=self.clock.now,
        )

    @property
    def cleared(self):
        return [e for e in self.session.view.history if isinstance(e, Cleared)]

    async def call(self):
        stages = self.session._layers.stages
        request = await self.session._engine.prepare(stages, max_output_tokens=5_000)
        reply = await collect(self.model.stream(request))
        self.session._engine.record_reply(reply)
        for block in reply.content:
            if isinstance(block, ToolUse):
                self.session.tool_result(block.id, "written")
        assert violations(self.session.view.messages()) == []
        return request.kwargs["messages"]

    async def turns(self, count):
        for _ in range(count):
            self.session.user("Write the next file.")
            await self.call()
            sent = await self.call()
        return sent


@pytest.fixture
async def work(tmp_path):
    """Start work against a simulator of its own; all of it ends with the test."""
    with ExitStack() as simulators:
        made = []

        def start(model="claude-opus-5", settings=PLAIN):
            clock = SimulatorClock(is_frozen=True)
            simulator = simulators.enter_context(run_simulator(brain=Writer(), clock=clock))
            made.append(Work(simulator, default_store(), model, settings))
            return made[-1]

        yield start
        for one in made:
            one.session.close()
            await one.model.close()


def thoughts(messages):
    """Say for each answer whether its thinking was sent."""
    return [
        any(block["type"] == "thinking" for block in message["content"])
        for message in messages
        if message["role"] == "assistant"
    ]


def written(messages):
    """List the contents that were sent of all files."""
    blocks = [block for message in messages for block in message["content"]]
    return [block["input"]["content"] for block in blocks if block["type"] == "tool_use"]


async def test_a_dead_cache_lets_old_thinking_go(work):
    one = work(settings=replace(PLAIN, clear=ClearSettings(inputs=False)))
    await one.turns(10)
    assert one.cleared == []
    one.clock.advance(400)
    one.session.user("And now?")
    sent = await one.call()
    assert thoughts(sent) == [False] * 18 + [True] * 2
    (entry,) = one.cleared
    assert len(entry.thinking) == 18
    assert "the thinking of 18 earlier answers" in entry.why
    assert "for free, as the cache expired" in entry.why
    one.session.undo(entry.n)
    sent = await one.call()
    assert all(thoughts(sent)[:20])


async def test_thinking_stays_while_the_cache_lives(work):
    one = work()
    assert all(thoughts(await one.turns(10)))


async def test_bound_thinking_stays(work):
    one = work("claude-sonnet-5-5")
    await one.turns(10)
    one.clock.advance(400)
    one.session.user("And now?")
    await one.call()
    assert all(not entry.thinking for entry in one.cleared)


async def test_a_dead_cache_lets_long_inputs_of_old_writes_go(work):
    one = work(settings=replace(PLAIN, clear=ClearSettings(thinking=False)))
    before = written(await one.turns(10))
    one.clock.advance(400)
    one.session.user("And now?")
    after = written(await one.call())
    (entry,) = one.cleared
    assert len(entry.inputs) == 5
    assert after[5:] == before[5:]
    first = one.session.view.items[1]
    assert after[0] == (
        f"[{len(before[0]):,} characters, cleared to make room. "
        f"Read the file, or History #{first.id} has it.]"
    )
    assert entry.inputs[0].input["file_path"] == first.tool_uses()[0].input["file_path"]
    assert "the inputs of 5 old calls" in entry.why
    one.session.undo(entry.n)
    assert written(await one.call())[:10] == before


async def test_inputs_go_before_bound_thinking_and_the_thinking_with_them(work):
    one = work("claude-sonnet-5-5")
    await one.turns(10)
    one.clock.advance(400)
    one.session.user("And now?")
    sent = await one.call()
    (entry,) = one.cleared
    assert entry.drops_thinking
    assert thoughts(sent)[1:] == [False] * 19
