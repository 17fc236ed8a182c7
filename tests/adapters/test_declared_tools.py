"""Declarations that a program makes to an adapter: the kinds of its tools, and memory."""

import pytest

from bookkeeping import MODEL, SYSTEM, TURNS, WINDOW, Clerk, Wire, entries, lookup, question
from lazy import needs
from longhold.core.log.entries import Cleared, Framed
from longhold.core.settings import ClearSettings, CostSettings, Settings
from longhold.simulator import BrainAnswer, run_simulator
from longhold.simulator.brains import text, tool_use

needs("langchain", "langchain_anthropic", "pydantic_ai", "agents")


def langchain(simulator, **options):
    from langchain.agents import create_agent
    from langchain_anthropic import ChatAnthropic

    from longhold.adapters.langchain import LongholdMiddleware

    model = ChatAnthropic(model=MODEL, base_url=simulator.url, api_key="any", max_retries=0)
    held, said = LongholdMiddleware("books", window=WINDOW, **options), []
    agent = create_agent(model, [lookup], system_prompt=SYSTEM, middleware=[held])

    async def turn(words):
        said.append({"role": "user", "content": words})
        said[:] = (await agent.ainvoke({"messages": said}))["messages"]
        return said[-1].text

    return turn, held, model._async_client


def pydantic_ai(simulator, **options):
    from anthropic import AsyncAnthropic
    from pydantic_ai import Agent
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    from longhold.adapters.pydantic_ai import LongholdCapability

    client = AsyncAnthropic(base_url=simulator.url, api_key="any", max_retries=0)
    held, history = LongholdCapability("books", window=WINDOW, **options), []
    model = AnthropicModel(MODEL, provider=AnthropicProvider(anthropic_client=client))
    agent = Agent(model, instructions=SYSTEM, tools=[lookup], capabilities=[held])

    async def turn(words):
        run = await agent.run(words, message_history=list(history))
        history[:] = run.all_messages()
        return run.output

    return turn, held, client


def openai_agents(simulator, **options):
    from openai import AsyncOpenAI

    import agents
    from longhold.adapters.openai_agents import LongholdHooks

    agents.set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=f"{simulator.url}/v1", api_key="any", max_retries=0)
    model = agents.OpenAIChatCompletionsModel(MODEL, client)
    held, items = LongholdHooks("books", window=WINDOW, **options), []
    tools = [agents.function_tool(lookup), *held.tools()]
    clerk = agents.Agent(name="clerk", instructions=SYSTEM, tools=tools, model=model)

    async def turn(words):
        items.append({"role": "user", "content": words})
        run = await agents.Runner.run(clerk, list(items), hooks=held, run_config=held.run_config())
        items[:] = run.to_input_list()
        return run.final_output

    return turn, held, client


EAGER = Settings(clear=ClearSettings(warm_share=0.0), cost=CostSettings(need_weight=0.0))
"""Old results count as not needed again, so that whatever may be cleared is."""
ADAPTERS = pytest.mark.parametrize("make", [langchain, pydantic_ai, openai_agents])


@ADAPTERS
@pytest.mark.parametrize(("kinds", "is_cleared"), [({"lookup": "fetch"}, True), ({}, False)])
async def test_old_results_of_declared_tools_are_cleared(make, kinds, is_cleared):
    with run_simulator(Clerk()) as simulator:
        turn, held, client = make(simulator, kinds=kinds, settings=EAGER)
        for n in range(TURNS):
            assert await turn(question(n)) == f"Turn {n} is in the books."
        held.close()
        await client.close()
        assert Wire(simulator).refused == {}
    assert bool(entries("books", Cleared)) == is_cleared


class Noting:
    """Writes the user's wish down when it is told, and then says so."""

    def answer(self, request):
        last = str(request.messages[-1])
        if "tool_result" in last:
            return BrainAnswer(blocks=(text("It is noted." if "was created" in last else last),))
        page = {"file_text": "---\nname: Tea\ndescription: Tea at four\ntype: user\n---\nTea.\n"}
        made = {"command": "create", "path": "/memories/tea.md"} | page
        return BrainAnswer(blocks=(tool_use("memory", made),))


@ADAPTERS
async def test_memory_can_be_switched_on(make, tmp_path):
    with run_simulator(Noting()) as simulator:
        turn, held, client = make(simulator, memory=True, directory=tmp_path)
        assert await turn("Remember that I want tea at four.") == "It is noted."
        held.close()
        await client.close()
    framed = entries("books", Framed)[-1]
    assert any(section.name == "long-term memory" for section in framed.sections)
    assert "memory" in [tool["name"] for tool in framed.tools]
