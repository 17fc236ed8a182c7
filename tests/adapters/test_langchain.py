"""LangChain's agents with Longhold as a middleware, over HTTP against the simulator."""

import asyncio
import importlib
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from bookkeeping import (
    MODEL,
    SYSTEM,
    TOO_LONG,
    TURNS,
    WINDOW,
    Clerk,
    assert_managed,
    break_next,
    entries,
    lookup,
    question,
)
from lazy import LazyModule, needs
from longhold.core.log.entries import Compacted, Failed, Said
from longhold.core.messages import text_of
from longhold.errors import LogLocked
from longhold.session.session import Session
from longhold.simulator import BrainAnswer, run_simulator
from longhold.simulator.brains import ScriptedBrain, text

needs("langchain", "langchain_anthropic")
TITLES = {1: "Request and intent", 2: "Technical concepts", 4: "Errors and fixes"}
TITLES |= {5: "Problem solving", 7: "Pending tasks", 8: "Current work", 9: "Next step"}
anthropic = LazyModule("langchain_anthropic")
agents = LazyModule("langchain.agents")
messages = LazyModule("langchain_core.messages")
memory = LazyModule("langgraph.checkpoint.memory")
adapter = LazyModule("longhold.adapters.langchain")


def in_thread(name):
    return {"configurable": {"thread_id": name}}


def asks(words):
    return {"messages": [{"role": "user", "content": words}]}


@pytest.fixture
async def made():
    """Make agents over a simulator, and close what they hold."""
    middlewares, models = [], []

    def make(simulator, *, saver=None, tools=(lookup,), model=None, **options):
        middlewares.append(adapter.LongholdMiddleware(**{"window": WINDOW} | options))
        models.append(model or claude(simulator))
        return agents.create_agent(
            models[-1],
            list(tools),
            system_prompt=SYSTEM,
            middleware=[middlewares[-1]],
            checkpointer=saver or memory.InMemorySaver(),
        )

    def leave():
        for one in middlewares:
            one.close()

    make.leave, make.middlewares = leave, middlewares
    yield make
    leave()
    for one in models:  # LangChain keeps the connections of a model open for good
        is_claude = isinstance(one, anthropic.ChatAnthropic)
        await (one._async_client if is_claude else one.root_async_client).close()


def claude(simulator, **options):
    return anthropic.ChatAnthropic(
        **{"model": MODEL, "base_url": simulator.url, "api_key": "any", "max_retries": 0}
        | {"max_tokens": 4_000} | options
    )  # fmt: skip


async def test_a_long_thread_stays_in_the_window_and_in_the_cache(made):
    with run_simulator(Clerk()) as simulator:
        agent = made(simulator)
        for turn in range(TURNS):
            state = await agent.ainvoke(asks(question(turn)), in_thread("books"))
        assert len(state["messages"]) == TURNS * 4
        assert state["messages"][-1].text == f"Turn {TURNS - 1} is in the books."
        assert_managed(simulator, "books")


@pytest.mark.parametrize("calls", ["ainvoke", "invoke"])
async def test_messages_behind_a_summary_leave_the_state_if_wanted(made, calls):
    saver = memory.InMemorySaver()
    with run_simulator(Clerk()) as simulator:
        lengths = []
        for turn in range(TURNS):
            agent = made(simulator, saver=saver, trims=True)
            given = asks(question(turn)), in_thread("books")
            state = await (
                agent.ainvoke(*given)
                if calls == "ainvoke"
                else asyncio.to_thread(agent.invoke, *given)
            )
            made.leave()  # a new process goes on with the trimmed state
            lengths.append(len(state["messages"]))
        assert_managed(simulator, "books")
    assert lengths[-1] < max(lengths) < 4 * TURNS
    with Session.resume("books") as session:
        assert len(session.transcript()) == 4 * TURNS


@pytest.mark.slow
@pytest.mark.parametrize("client", ["AsyncAnthropic", "Anthropic"])
def test_threads_of_a_server_share_a_middleware_with_a_client(made, client):
    class Summariser(Clerk):
        def answer(self, request):
            if "<summary>" in str(request.messages[-1]):
                parts = (f"## {n}. {title}\nAll is well.\n" for n, title in TITLES.items())
                return BrainAnswer(blocks=(text(f"<summary>{''.join(parts)}</summary>"),))
            return super().answer(request)

    with run_simulator(Summariser()) as simulator, ThreadPoolExecutor(3) as pool:
        sdk = importlib.import_module("anthropic")
        asked = getattr(sdk, client)(base_url=simulator.url, api_key="any", max_retries=0)
        agent = made(simulator, client=asked)

        def talk(user):
            took = []
            for turn in range(TURNS):
                began = time.monotonic()
                agent.invoke(asks(question(turn)), in_thread(f"user-{user}"))
                took.append(time.monotonic() - began)
            return took[1:]  # the first imports most of the SDK

        slowest = max(max(took) for took in pool.map(talk, range(3)))
        if client == "AsyncAnthropic":
            made.middlewares[-1]._sessions.run(asked.close())
    assert slowest < 5  # the model answers at once; it took up to ten
    for user in range(3):
        assert [one.by for one in entries(f"user-{user}", Compacted)].count("model") > 0
        assert not [one.error for one in entries(f"user-{user}", Failed)]


def test_an_agent_without_an_event_loop_is_managed_too(made):
    with run_simulator(Clerk()) as simulator:
        agent = made(simulator)
        for turn in range(TURNS):
            agent.invoke(asks(question(turn)), in_thread("books"))
        assert_managed(simulator, "books")


async def test_a_new_process_goes_on_where_the_thread_stands(made):
    saver = memory.InMemorySaver()
    with run_simulator(Clerk()) as simulator:
        for turn in range(TURNS):
            agent = made(simulator, saver=saver)
            await agent.ainvoke(asks(question(turn)), in_thread("books"))
            made.leave()
        assert_managed(simulator, "books")


async def test_each_thread_is_a_session_of_exactly_its_name(made):
    with run_simulator(ScriptedBrain("text: Yes.", repeats=True)) as simulator:
        agent = made(simulator)
        await agent.ainvoke(asks("I am the twelfth."), in_thread("user-12"))
        await agent.ainvoke(asks("I am the first."), in_thread("user-1"))
    assert [text_of(e.content) for e in entries("user-1", Said)] == ["I am the first."]
    assert [text_of(e.content) for e in entries("user-12", Said)] == ["I am the twelfth."]


async def test_only_so_many_sessions_stay_open(made):
    with run_simulator(ScriptedBrain("text: Yes.", repeats=True)) as simulator:
        agent = made(simulator, open_sessions=1, hold="process")
        await agent.ainvoke(asks("One."), in_thread("a"))
        with pytest.raises(LogLocked):
            Session.resume("a")
        await agent.ainvoke(asks("Two."), in_thread("b"))
        Session.resume("a").close()
        await agent.ainvoke(asks("Three."), in_thread("a"))
    assert [text_of(e.content) for e in entries("a", Said)] == ["One.", "Three."]


async def test_a_prompt_that_is_too_long_is_made_shorter_and_sent_again(made):
    with run_simulator(Clerk()) as simulator:
        agent = made(simulator, window=0)
        for turn in range(4):
            await agent.ainvoke(asks(question(turn)), in_thread("books"))
        break_next(simulator, TOO_LONG)
        await agent.ainvoke(asks(question(4)), in_thread("books"))
    assert len(entries("books", Compacted)) == 1


async def test_what_cannot_be_helped_is_raised_as_the_program_knows_it(made):
    from anthropic import AuthenticationError

    with run_simulator(Clerk()) as simulator:
        agent = made(simulator)
        break_next(simulator, "401")
        with pytest.raises(AuthenticationError):
            await agent.ainvoke(asks("Hello."), in_thread("books"))


async def test_the_model_opens_what_left_its_view(made):
    brain = ScriptedBrain('tool: History {"query": "4711"}\n---\ntext: It was 4711.')
    with run_simulator(brain) as simulator:
        agent = made(simulator, tools=(), history=True)
        await agent.ainvoke(asks("The number is 4711. What was it?"), in_thread("books"))
    result = brain.requests[-1].messages[-1]["content"][-1]
    assert "1 records match '4711'" in result["content"]


async def test_thinking_goes_back_as_it_came(made):
    brain = ScriptedBrain('think: Hm.\ntool: lookup {"turn": 1}\n---\ntext: Done.')
    with run_simulator(brain) as simulator:
        model = claude(simulator, thinking={"type": "enabled", "budget_tokens": 2_000})
        await made(simulator, model=model).ainvoke(asks(question(1)), in_thread("books"))
    thought, *_ = brain.requests[-1].messages[1]["content"]
    assert thought["type"] == "thinking"
    assert thought["signature"]


async def test_messages_that_langchain_alone_knows_survive(made):
    picture = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}
    words = {"type": "text", "text": "What is this?"}
    thread = [
        messages.HumanMessage("Hello."),
        messages.AIMessage(""),
        messages.HumanMessage([words, picture]),
    ]
    brain = ScriptedBrain("text: A picture.")
    with run_simulator(brain) as simulator:
        await made(simulator).ainvoke({"messages": thread}, in_thread("books"))
    assert brain.requests[-1].messages[-1]["content"][-1]["type"] == "image"


async def test_other_providers_get_langchains_own_messages(made):
    openai = pytest.importorskip("langchain_openai", reason="langchain-openai is not installed")
    with run_simulator(Clerk()) as simulator:
        model = openai.ChatOpenAI(
            model=MODEL, base_url=f"{simulator.url}/v1", api_key="any", max_retries=0
        )
        agent = made(simulator, model=model)
        for turn in range(TURNS):
            await agent.ainvoke(asks(question(turn)), in_thread("books"))
        assert_managed(simulator, "books")
