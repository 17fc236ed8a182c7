"""Sessions behind adapters: concurrent calls, tasks and processes, and cancellation."""

import asyncio
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from bookkeeping import MODEL, Clerk, entries, lookup, question
from lazy import LazyModule, needs
from longhold.adapters.sessions import Sessions
from longhold.core.log.entries import Replied, Rewound, Said
from longhold.core.log.store import FileStore
from longhold.core.messages import text_of
from longhold.errors import InvalidArgument, LogLocked, SessionBusy
from longhold.simulator import run_simulator
from longhold.simulator.brains import ScriptedBrain

langchain = LazyModule("longhold.adapters.langchain")
openai_agents = LazyModule("longhold.adapters.openai_agents")


class LateThreads(ThreadPoolExecutor):
    """Begins the nth piece of work last, so that opening and closing a log run in either order."""

    def __init__(self, late):
        super().__init__()
        self.late, self.submitted = late, 0

    def submit(self, work, /, *args, **kwargs):
        self.submitted += 1
        if self.submitted == self.late:
            return super().submit(lambda: (time.sleep(0.3), work(*args, **kwargs))[1])
        return super().submit(work, *args, **kwargs)


@pytest.fixture
def made():
    held = []

    def make(id=None, **options):
        held.append(Sessions("anthropic", id, options, options.pop("open_sessions", 100)))
        return held[-1]

    yield make
    for one in held:
        one.close()


def answer(text="yes", id="r1"):
    return {
        "id": id,
        "role": "assistant",
        "model": MODEL,
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 100, "output_tokens": 5},
    }


def call(id):
    blocks = [{"type": "tool_use", "id": id, "name": "lookup", "input": {}}]
    return answer(id=f"r-{id}") | {"content": blocks, "stop_reason": "tool_use"}


async def turn(sessions, id, words="Hello.", pause=0.0):
    async with sessions.use(id, MODEL) as session:
        await session.follow([{"role": "user", "content": words}])
        await asyncio.sleep(pause)
        await session.record(answer())


@pytest.mark.parametrize("hold", ["call", "turn", "process"])
async def test_more_conversations_than_may_stay_open_are_never_closed_in_use(made, hold):
    sessions = made(open_sessions=3, hold=hold)
    await asyncio.gather(*(turn(sessions, f"c{n}", pause=0.02) for n in range(40)))
    assert all(len(entries(f"c{n}", Replied)) == 1 for n in range(40))
    opened = sum(one.session is not None for one in sessions._places.values())
    assert opened == (3 if hold == "process" else 0)


async def test_two_calls_of_one_conversation_take_turns(made):
    sessions = made()
    await asyncio.gather(*(turn(sessions, "c", f"I am {n}.", pause=0.02) for n in range(5)))
    assert len(entries("c", Replied)) == 5


async def test_a_conversation_in_use_is_waited_for_within_a_limit(made):
    mine, theirs = made(wait_seconds=5), made(wait_seconds=0.1)
    async with mine.use("c", MODEL) as session:
        await session.follow([{"role": "user", "content": "Hello."}])
        with pytest.raises(LogLocked):
            await turn(theirs, "c")
        again = asyncio.create_task(turn(made(wait_seconds=5), "c"))
        await asyncio.sleep(0.1)
        assert not again.done()
        await session.record(answer())
    await again


async def test_a_call_that_waits_too_long_in_its_own_process_says_so(made):
    sessions = made(wait_seconds=0.1)
    async with sessions.use("c", MODEL):
        with pytest.raises(SessionBusy, match="c has been in use"):
            await turn(sessions, "c")
    await turn(sessions, "c")


async def test_a_run_that_leaves_twice_frees_no_other_run(made):
    sessions = made(wait_seconds=5)
    await sessions.enter("c", "run-1", MODEL)
    left = [
        asyncio.create_task(sessions.leave("c", "run-1", is_over=True)),
        asyncio.create_task(sessions.release("c", "run-1")),
    ]
    entered = asyncio.create_task(sessions.enter("c", "run-2", MODEL))
    await asyncio.gather(*left)
    session = await entered
    assert sessions.current("c", "run-2") is session
    await sessions.leave("c", "run-2", is_over=True)
    assert not is_locked("c")


@pytest.mark.parametrize("late", [0, 1, 2, 3])
async def test_a_run_that_ends_while_it_enters_leaves_no_log_open(made, late):
    asyncio.get_running_loop().set_default_executor(LateThreads(late))
    sessions = made(wait_seconds=5)
    entering = asyncio.create_task(sessions.enter("c", "run-1", MODEL))
    await asyncio.sleep(0)
    await sessions.release("c", "run-1")
    await asyncio.wait([entering])
    assert isinstance(entering.exception(), SessionBusy) and not is_locked("c")


async def test_the_log_is_released_as_hold_says(made):
    for hold, during, after in (
        ("call", False, False),
        ("turn", True, False),
        ("process", True, True),
    ):
        sessions = made(hold=hold)
        async with sessions.use(hold, MODEL) as session:
            await session.follow([{"role": "user", "content": "Hello."}])
            await session.record(call("t1"))
        assert is_locked(hold) == during
        async with sessions.use(hold, MODEL) as session:
            session.tool_result("t1", "a row")
            await session.prepare()
            await session.record(answer())
        assert is_locked(hold) == after


def is_locked(id):
    try:
        FileStore().open(id).close()
    except LogLocked:
        return True
    return False


async def test_no_name_is_an_error_with_a_hint(made):
    with pytest.raises(InvalidArgument, match="thread_id"):
        await turn(made(), None)
    with pytest.raises(InvalidArgument, match="hold"):
        made(hold="always")


WORKER = """
import asyncio, sys
from longhold.adapters.sessions import Sessions

async def main(me, turns):
    sessions = Sessions("anthropic", None, {"wait_seconds": 60})
    for n in range(turns):
        async with sessions.use("shared", "claude-sonnet-4-6") as session:
            session.user(f"turn {n} of {me}")
            await session.prepare()
            await session.record({
                "id": f"{me}-{n}", "role": "assistant", "model": "claude-sonnet-4-6",
                "content": [{"type": "text", "text": "yes"}], "stop_reason": "end_turn",
                "usage": {"input_tokens": 100, "output_tokens": 5},
            })

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


def test_four_processes_share_a_conversation_and_lose_nothing():
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, name, "12"], stderr=subprocess.PIPE)
        for name in "abcd"
    ]
    failed = [worker.communicate()[1].decode() for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 4, failed
    said = Counter(text_of(one.content) for one in entries("shared", Said))
    assert said == Counter(f"turn {n} of {me}" for me in "abcd" for n in range(12))
    assert len(entries("shared", Replied)) == 48


def test_threads_of_a_synchronous_program_share_one_loop(made):
    from concurrent.futures import ThreadPoolExecutor

    sessions = made(hold="process")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: sessions.run(turn(sessions, f"c{n % 4}", f"{n}")), range(32)))
    assert sum(len(entries(f"c{n}", Replied)) for n in range(4)) == 32


async def test_an_agent_that_is_a_tool_has_a_session_of_its_own():
    needs("langchain", "langchain_anthropic")
    from langchain.agents import create_agent
    from langchain_anthropic import ChatAnthropic
    from langgraph.checkpoint.memory import InMemorySaver

    with run_simulator(Clerk()) as simulator:
        model = ChatAnthropic(model=MODEL, base_url=simulator.url, api_key="any", max_retries=0)
        outer, inner = langchain.LongholdMiddleware(), langchain.LongholdMiddleware()
        helper = create_agent(model, [lookup], middleware=[inner])

        async def ask_helper(turn: int) -> str:
            """Asks a helper to look an entry up."""
            asked = {"messages": [{"role": "user", "content": question(turn)}]}
            said = (await helper.ainvoke(asked))["messages"][-1].text
            return f"entry {turn}: {said}"

        ask_helper.__name__ = "lookup"
        agent = create_agent(model, [ask_helper], middleware=[outer], checkpointer=InMemorySaver())
        for n in range(3):
            await agent.ainvoke(
                {"messages": [{"role": "user", "content": question(n)}]},
                {"configurable": {"thread_id": "boss"}},
            )
        await model._async_client.close()
        outer.close(), inner.close()
    names = [found.id for found in FileStore().sessions()]
    assert len(names) == 4 and sum(name.startswith("boss.tools-") for name in names) == 3
    assert len(entries("boss", Said)) == 3
    assert not any(entries(name, Rewound) for name in names)


async def test_one_object_for_each_request_of_a_server():
    needs("agents")
    from openai import AsyncOpenAI

    import agents

    agents.set_tracing_disabled(True)
    brain = ScriptedBrain("text: Yes.", repeats=True)
    with run_simulator(brain) as simulator:
        client = AsyncOpenAI(base_url=f"{simulator.url}/v1", api_key="any", max_retries=0)
        model = agents.OpenAIChatCompletionsModel(MODEL, client)
        clerk, kept = agents.Agent(name="clerk", model=model), []

        async def handle(words):
            kept.append(openai_agents.LongholdHooks("user-7", window=20_000))
            run = await agents.Runner.run(
                clerk, words, hooks=kept[-1], run_config=kept[-1].run_config()
            )
            return run.final_output

        assert await handle("One.") == await handle("Two.") == "Yes."
        both = await asyncio.gather(handle("Three."), handle("Four."))
        assert both == ["Yes.", "Yes."]
        await client.close()
    assert len(entries("user-7", Replied)) == 4
