"""Hundreds of sessions without changes: no false alarm."""

import asyncio
import random

import pytest

from longhold.core.log.entries import Replied
from longhold.core.log.spending import Budget
from longhold.core.models.anthropic import AnthropicModel
from longhold.core.settings import Settings
from longhold.core.tools.context import ToolContext
from longhold.core.tools.protocol import Outcome, Tool
from longhold.core.turn.answering import Models
from longhold.core.turn.loop import Loop, Stopped
from longhold.core.turn.round import Toolbox
from longhold.simulator import SimulatorClock, run_simulator

from ..conftest import ChanceBrain, prose

SESSIONS = 200
"""Enough to see an alarm that one session in fifty would give."""
MODELS = ["claude-sonnet-5-5", "claude-opus-4-6", "claude-haiku-5-5", "claude-haiku-4-5"]
OPTIONS = {
    "claude-haiku-4-5": {"thinking": {"type": "enabled", "budget_tokens": 1_024}},
    "claude-opus-4-6": {"thinking": {"type": "adaptive"}},
}


@pytest.fixture(scope="module")
def simulator():
    """A simulator whose model calls tools half of the time and thinks now and then."""
    with run_simulator(
        ChanceBrain(tools=0.5, thinks=0.5), clock=SimulatorClock(is_frozen=True)
    ) as one:
        yield one


async def live(chat, rng):
    """Let a session of a few turns go its way, answering the tools and taking its time."""
    for _ in range(rng.randint(1, 4)):
        chat.session.user(prose(rng.random(), rng.randint(1, 600)))
        for _ in range(6):
            chat.wait(minutes=rng.uniform(0, 0.5))
            response = await chat.go_on()
            uses = [block for block in response.content if block.type == "tool_use"]
            for use in uses:
                chat.session.tool_result(use.id, prose(use.id, rng.randint(1, 300)))
            if not uses:
                break


async def test_random_sessions_give_no_false_alarm(chat):
    calls = read = prompts = 0
    for seed in range(SESSIONS):
        rng = random.Random(seed)
        model = rng.choice(MODELS)
        one = chat(model=model, options=OPTIONS.get(model))
        await live(one, rng)
        assert one.alarms == [], seed
        usages = [entry.usage for entry in one.view.history if isinstance(entry, Replied)]
        calls += len(usages)
        read += sum(usage.cache_read_tokens for usage in usages)
        prompts += sum(usage.prompt_tokens for usage in usages)
    assert calls > 3 * SESSIONS
    assert read > prompts / 2, "the cache was in use"


async def _read(given, tool_context):
    await asyncio.sleep(0)
    return Outcome(content=prose(str(given), 200))


async def test_the_agents_own_loop_gives_no_false_alarm(chat, tmp_path):
    one = chat()
    read = Tool(
        name="Read",
        description="read",
        input_schema={"type": "object"},
        kind="read",
        path_inputs=(),
        command_input="",
        is_read_only=lambda _: True,
        limit_chars=None,
        run=_read,
    )
    model = AnthropicModel("claude-sonnet-5-5", client=one.client)
    loop = Loop(
        engine=one.session._engine,
        models=Models(model),
        stages=one.session._layers.stages,
        after_turn=one.session._layers.after_turn,
        toolbox=Toolbox(
            tools={"Read": read},
            tool_context=ToolContext(root=tmp_path, home=tmp_path, scratch=tmp_path),
        ),
        settings=Settings().loop,
        budget=Budget(Settings().budget),
    )
    for turn in range(6):
        one.session.user(prose(turn, 300))
        events = [event async for event in loop.run()]
        assert isinstance(events[-1], Stopped)
    assert one.alarms == []
    one.simulator.simulation.cache.clear()
    one.session.user("once more")
    assert [event async for event in loop.run()]
    assert [broke.cause for broke in one.alarms] == ["provider"]
