"""An agent in a small window, over HTTP."""

from dataclasses import replace

import pytest

from casting import entries
from longhold.agent.build import build_agent
from longhold.core.log.entries import Replied, Said
from longhold.core.models import open_model
from longhold.core.settings import Settings, WindowSettings
from longhold.simulator import BrainAnswer, run_simulator
from longhold.simulator.brains import text, tool_use

TURNS = 20


class Reader:
    """Reads a file in every turn, and says that it did."""

    def answer(self, request):
        last = request.messages[-1]["content"][-1]
        if last["type"] == "text" and last["text"].startswith("Read "):
            return BrainAnswer(blocks=(tool_use("Read", {"file_path": last["text"][5:]}),))
        return BrainAnswer(blocks=(text("I have read it."),))


@pytest.mark.parametrize("limit", [8_000, 14_000])
async def test_an_agent_works_on_in_a_small_window(tmp_path, limit):
    for n in range(TURNS):
        (tmp_path / f"{n}.txt").write_text(f"some words of file {n}\n" * 60)
    settings = replace(Settings(), window=WindowSettings(limit_tokens=limit))
    with run_simulator(Reader()) as simulator:
        model = open_model("simulated/claude-sonnet-5-5", base_url=simulator.url, api_key="x")
        agent = await build_agent(model, directory=tmp_path, mode="bypass", settings=settings)
        told = agent.notices.take()
        for n in range(TURNS):
            async for _ in agent.run(f"Read {n}.txt"):
                pass
        replies = [one for one in entries(agent, Replied) if one.usage is not None]
        asked = [one for one in entries(agent, Said) if not one.hidden]
        await agent.close()
    assert any("no agents, no memory and only the core tools" in line for line in told)
    assert len(asked) == TURNS
    assert sum(one.stop_reason == "end_turn" for one in replies) == TURNS
    assert max(one.usage.prompt_tokens for one in replies) < limit
