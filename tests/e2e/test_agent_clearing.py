"""Cache edits and agents, over HTTP: only the main agent edits, and forks keep the edits."""

from dataclasses import replace

import pytest

from casting import entries
from lazy import needs
from longhold.agent.build import build_agent
from longhold.agent.subagents.worker import prefix_of
from longhold.core.log.entries import Cleared, Replied, Spawned
from longhold.core.models import open_model
from longhold.core.settings import CacheSettings, ClearSettings, CostSettings, load_settings
from longhold.simulator import BrainAnswer, run_simulator
from longhold.simulator.brains import text, tool_use

needs("anthropic")

READS = 14
"""Enough results for the first edit."""
FORK = {"description": "d", "agent": "fork", "prompt": "Look on.", "run_in_background": True}


class Reader:
    """Whoever is to read reads one file after the other; then a fork is started."""

    def answer(self, request):
        said = [
            block.get("text", "")
            for message in request.messages
            for block in message["content"]
            if message["role"] == "user"
        ]
        reads = sum("file_path" in str(message["content"]) for message in request.messages)
        if any("You are now a fork" in words for words in said):
            return BrainAnswer(blocks=(text("I looked."),))
        if "Read all." in said and reads < READS:
            return BrainAnswer(blocks=(tool_use("Read", {"file_path": f"{reads}.txt"}),))
        if "Send someone." in said and len(request.messages) == 1:
            return BrainAnswer(
                blocks=(tool_use("Agent", {"description": "d", "prompt": "Read all."}),)
            )
        if said[-1] == "Fork.":
            return BrainAnswer(blocks=(tool_use("Agent", FORK),))
        return BrainAnswer(blocks=(text("Done."),))


@pytest.fixture
async def agent(tmp_path):
    """An agent on a model that takes cache edits, and that clears whenever it can."""
    for number in range(READS):
        (tmp_path / f"{number}.txt").write_text(f"some words of code, {number}\n" * 150)
    settings = replace(
        load_settings(tmp_path),
        cache=CacheSettings(lifetime="5m", diagnose=False),
        clear=ClearSettings(warm_share=0.0),
        cost=CostSettings(need_weight=0.0),
    )
    with run_simulator(Reader()) as simulator:
        model = open_model("simulated/claude-opus-5", base_url=simulator.url, api_key="x")
        opened = await build_agent(model, directory=tmp_path, mode="bypass", settings=settings)
        yield opened
        await opened.close()


async def work(agent, *prompts):
    for prompt in prompts:
        async for _ in agent.work(prompt):
            pass


async def test_an_agent_that_works_for_another_leaves_the_providers_cache_alone(agent):
    await work(agent, "Send someone.")
    [spawned] = entries(agent, Spawned)
    log = agent.supervisor.log_of(spawned.agent).load().entries
    assert sum(isinstance(entry, Replied) for entry in log) > READS
    assert [entry for entry in log if isinstance(entry, Cleared) and entry.how == "edited"] == []


async def test_a_forks_prefix_is_rebuilt_with_the_edits_its_parent_sends(agent):
    await work(agent, "Read all.")
    assert [entry.how for entry in entries(agent, Cleared)][:1] == ["edited"]
    async for _ in agent.run("Fork."):
        pass
    [spawned] = entries(agent, Spawned)
    rebuilt = prefix_of(agent.engine, spawned.agent).messages
    assert "cache_edits" in str(rebuilt)
    sent = agent.engine.prefix().messages
    assert rebuilt[:-1] == sent[: len(rebuilt) - 1]
