"""OpenAI's Agents with Longhold as filter and hooks, over HTTP against the simulator."""

import pytest

from bookkeeping import (
    MODEL,
    SYSTEM,
    TURNS,
    WINDOW,
    Clerk,
    assert_managed,
    entries,
    lookup,
    question,
)
from lazy import LazyModule, needs
from longhold.core.log.entries import Framed, Said, Switched
from longhold.core.messages import text_of
from longhold.simulator import run_simulator
from longhold.simulator.brains import ScriptedBrain

needs("agents")
agents = LazyModule("agents")
openai = LazyModule("openai")
adapter = LazyModule("longhold.adapters.openai_agents")


@pytest.fixture(autouse=True)
def _untraced():
    """The kit would send traces to its maker."""
    agents.set_tracing_disabled(True)


@pytest.fixture
async def made():
    """Make agents over a simulator, and close what they hold."""
    held, clients = [], []

    def make(simulator, *, tools=(lookup,), id="books", name=MODEL, api=None, **options):
        clients.append(
            openai.AsyncOpenAI(base_url=f"{simulator.url}/v1", api_key="any", max_retries=0)
        )
        held.append(adapter.LongholdHooks(id, **{"window": WINDOW} | options))
        agent = agents.Agent(
            name="clerk",
            instructions=SYSTEM,
            tools=[*map(agents.function_tool, tools)],
            model=(api or agents.OpenAIChatCompletionsModel)(name, clients[-1]),
        )
        return agent, held[-1]

    yield make
    for one in held:
        one.close()
    for one in clients:
        await one.close()


async def run(agent, longhold, items, words):
    items = [*items, {"role": "user", "content": words}]
    found = await agents.Runner.run(agent, items, hooks=longhold, run_config=longhold.run_config())
    return found.to_input_list()


async def test_a_long_conversation_stays_in_the_window_and_in_the_cache(made):
    with run_simulator(Clerk()) as simulator:
        agent, longhold = made(simulator)
        items = []
        for turn in range(TURNS):
            items = await run(agent, longhold, items, question(turn))
        assert len(items) == TURNS * 4
        assert_managed(simulator, "books")


async def test_the_responses_api_is_managed_as_chat_completions_are(made):
    with run_simulator(Clerk()) as simulator:
        agent, longhold = made(simulator, api=agents.OpenAIResponsesModel)
        items = []
        for turn in range(TURNS):
            items = await run(agent, longhold, items, question(turn))
        assert_managed(simulator, "books")


async def test_a_new_process_goes_on_where_the_items_stand(made):
    with run_simulator(Clerk()) as simulator:
        items = []
        for turn in range(TURNS):
            agent, longhold = made(simulator)
            items = await run(agent, longhold, items, question(turn))
            longhold.close()
        assert_managed(simulator, "books")


async def test_a_streamed_run_is_managed_too(made):
    with run_simulator(Clerk()) as simulator:
        agent, longhold = made(simulator)
        items = []
        for turn in range(TURNS):
            items = [*items, {"role": "user", "content": question(turn)}]
            run = agents.Runner.run_streamed(
                agent, items, hooks=longhold, run_config=longhold.run_config()
            )
            async for _ in run.stream_events():
                pass
            items = run.to_input_list()
        assert_managed(simulator, "books")


async def test_the_model_opens_what_left_its_view(made):
    brain = ScriptedBrain('tool: History {"query": "4711"}\n---\ntext: It was 4711.')
    with run_simulator(brain) as simulator:
        agent, longhold = made(simulator, tools=(), history=True)
        agent.tools.extend(longhold.tools())
        await run(agent, longhold, [], "The number is 4711. What was it?")
    assert "1 records match" in str(brain.requests[-1].messages[-1])


async def test_a_handoff_is_a_declared_change(made):
    brain = ScriptedBrain("tool: transfer_to_second {}\n---\ntext: I am the second.")
    with run_simulator(brain) as simulator:
        first, longhold = made(simulator, tools=())
        second, _ = made(simulator, tools=(), id="unused", name="claude-opus-4-6")
        second.name, second.instructions = "second", "You come second."
        first.handoffs.append(second)
        items = await run(first, longhold, [], "Hello.")
    assert items[-1]["content"][0]["text"] == "I am the second."
    assert [entry.model for entry in entries("books", Switched)] == [MODEL, "claude-opus-4-6"]
    assert entries("books", Framed)[-1].sections[0].text == "You come second."
    assert [text_of(e.content) for e in entries("books", Said)] == ["Hello."]
