"""Turns cancelled at random points in every adapter: each conversation can continue."""

import asyncio
import random

import pytest

from bookkeeping import MODEL, Clerk, Wire, entries, question
from lazy import needs
from longhold.core.log.entries import Ran
from longhold.core.log.store import FileStore
from longhold.core.messages import text_of
from longhold.simulator import run_simulator

POINTS = [12, pytest.param(200, marks=[pytest.mark.slow, pytest.mark.timeout(900)])]
"""A tool and two requests over HTTP in each, so few on every day."""


async def lookup(turn: int) -> str:
    """Looks an entry of the books up."""
    await asyncio.sleep(0.03)
    return f"entry {turn}"


def langchain_turns(simulator):
    needs("langchain", "langchain_anthropic")
    from langchain.agents import create_agent
    from langchain_anthropic import ChatAnthropic
    from langgraph.checkpoint.memory import InMemorySaver

    from longhold.adapters.langchain import LongholdMiddleware

    model = ChatAnthropic(model=MODEL, base_url=simulator.url, api_key="any", max_retries=0)
    held = LongholdMiddleware(window=20_000)
    agent = create_agent(model, [lookup], middleware=[held], checkpointer=InMemorySaver())

    async def turn(words):
        state = await agent.ainvoke(
            {"messages": [{"role": "user", "content": words}]},
            {"configurable": {"thread_id": "books"}},
        )
        return state["messages"][-1].text

    return turn, held, model._async_client


def pydantic_turns(simulator):
    needs("pydantic_ai")
    from anthropic import AsyncAnthropic
    from pydantic_ai import Agent, capture_run_messages
    from pydantic_ai.messages import repair_messages
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    from longhold.adapters.pydantic_ai import LongholdCapability

    client = AsyncAnthropic(base_url=simulator.url, api_key="any", max_retries=0)
    held = LongholdCapability(window=20_000)
    model = AnthropicModel(MODEL, provider=AnthropicProvider(anthropic_client=client))
    agent, history = Agent(model, tools=[lookup], capabilities=[held]), []

    async def turn(words):
        with capture_run_messages() as said:
            try:
                run = await agent.run(words, message_history=list(history), conversation_id="books")
            finally:
                history[:] = repair_messages([*said])  # which the kit asks for
        return run.output

    return turn, held, client


def agents_turns(simulator):
    needs("agents")
    from openai import AsyncOpenAI

    import agents
    from longhold.adapters.openai_agents import LongholdHooks

    agents.set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=f"{simulator.url}/v1", api_key="any", max_retries=0)
    model = agents.OpenAIChatCompletionsModel(MODEL, client)
    clerk = agents.Agent(name="clerk", tools=[agents.function_tool(lookup)], model=model)
    held, items = LongholdHooks("books", window=20_000), []

    async def turn(words):
        items.append({"role": "user", "content": words})
        run = await agents.Runner.run(clerk, list(items), hooks=held, run_config=held.run_config())
        items[:] = run.to_input_list()
        return run.final_output

    return turn, held, client


@pytest.mark.parametrize("points", POINTS)
@pytest.mark.parametrize("make", [langchain_turns, pydantic_turns, agents_turns])
async def test_every_conversation_goes_on_after_cancelled_turns(make, points):
    chance = random.Random(7)
    with run_simulator(Clerk()) as simulator:
        turn, held, client = make(simulator)
        assert await turn(question(0)) == "Turn 0 is in the books."
        for n in range(1, points + 1):
            task = asyncio.create_task(turn(question(n)))
            await asyncio.wait([task], timeout=chance.random() * 0.12)
            task.cancel()
            await asyncio.wait([task])
        assert (await turn(question(points + 1))).endswith("is in the books.")
        again = await turn(question(points + 2))
        assert again == f"Turn {points + 2} is in the books."
        held.close()
        await client.close()
        assert Wire(simulator).refused == {}
    FileStore().open("books").close()  # the log is released
    missing = [text_of(one.content) for one in entries("books", Ran) if one.is_error]
    assert all("may have run" in text for text in missing if "entry" not in text)
