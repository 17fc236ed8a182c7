"""Long-term memory in a program's own session, over HTTP with the official SDK."""

import asyncio
import json

import anthropic
import openai
import pytest

from funds import fund
from longhold.core.log.entries import CacheBroke, Failed, Forked, Recalled, Remembered
from longhold.core.log.spending import FileLedger
from longhold.core.memory.backlog import Backlog, learning_directory
from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.memory import Memory
from longhold.core.memory.paths import memory_directory
from longhold.core.memory.store import MemoryStore
from longhold.core.messages import text_of
from longhold.core.messages.usage import Tally
from longhold.core.settings import MemorySettings, Settings, home
from longhold.errors import InvalidArgument
from longhold.session.session import Session
from longhold.session.sync import sync
from longhold.simulator import BrainAnswer, run_simulator
from longhold.simulator.brains import text, tool_use
from longhold.simulator.brains.digest import DigestBrain

MODEL = "claude-sonnet-5-5"
FACT = "Remember that releases go out on Tuesday nights."
QUESTION = "When do releases go out on Tuesday?"
FILE = "releases-go-out-on-tuesday.md"
READ = {
    "name": "Read",
    "description": "Read a file.",
    "input_schema": {"type": "object", "properties": {"file_path": {"type": "string"}}},
}


class Remembering(DigestBrain):
    """Keeps what the user asks to be remembered, and what it was asked itself."""

    def __init__(self):
        super().__init__()
        self.prompts = []

    def answer(self, request):
        self.prompts.append(str(request.messages[-1]))
        return super().answer(request)


@pytest.fixture
def brain():
    return Remembering()


@pytest.fixture
def simulator(brain):
    with run_simulator(brain) as one:
        yield one


@pytest.fixture
async def client(simulator):
    async with anthropic.AsyncAnthropic(base_url=simulator.url, api_key="any") as client:
        yield client


async def answered(session, client, request):
    response = await client.messages.create(**request.kwargs)
    await session.record(response)
    return response


async def learnt(client, directory, settings=None):
    """Tell a session of a directory something, and leave it."""
    fund(directory, 100.0)
    options = {"model": MODEL, "tools": [READ], "directory": directory, "settings": settings}
    async with Session.open(memory=True, client=client, **options) as session:
        session.user(FACT)
        await answered(session, client, await session.prepare())
    return session.view.history


def of(history, kind):
    return [entry for entry in history if isinstance(entry, kind)]


def recalled(request):
    """What a request shows of memories, behind its prompt."""
    return [str(m["content"]) for m in request.kwargs["messages"] if "Tuesday nights" in str(m)]


async def test_what_one_session_was_told_another_recalls(client, brain, tmp_path):
    history = await learnt(client, tmp_path)
    assert [entry.names for entry in of(history, Remembered)] == [(FILE,)]
    forks = [entry for entry in of(history, Forked) if entry.source == "memory"]
    assert forks and all(fork.usage.cache_read_tokens > 0 for fork in forks)
    assert not of(history, Failed) and not of(history, CacheBroke)
    [asked] = [prompt for prompt in brain.prompts if "You now keep the memory" in prompt]
    assert "You have the `memory` tool for `/memories`. Everything else is refused." in asked
    async with Session.open(model=MODEL, memory=True, client=client, directory=tmp_path) as session:
        session.user(QUESTION)
        request = await session.prepare()
        assert [entry.names for entry in of(session.view.history, Recalled)] == [(FILE,)]
        assert len(recalled(request)) == 1
        await answered(session, client, request)


async def test_what_the_share_does_not_pay_for_waits(client, tmp_path):
    place = learning_directory(home(), memory_directory(home(), tmp_path))
    FileLedger(place / "spent" / "memory").add(Tally(calls=40, usd=5.0))
    history = await learnt(client, tmp_path)
    assert not of(history, Forked) and not of(history, Remembered) and not of(history, Failed)
    assert [one.messages for one in Backlog(place / "waiting").list()] == [1]


async def test_a_followed_list_is_reminded_too(client, tmp_path):
    await learnt(client, tmp_path)
    messages = [{"role": "user", "content": QUESTION}]
    options = {"system": "Be brief.", "tools": [READ]}
    async with Session.open(model=MODEL, memory=True, client=client, directory=tmp_path) as session:
        request = await session.follow(messages, **options)
        first = request.kwargs
        response = await answered(session, client, request)
        messages.append({"role": "assistant", "content": response.content})
        if response.stop_reason == "tool_use":
            results = [
                {"type": "tool_result", "tool_use_id": block.id, "content": "none"}
                for block in response.content
                if block.type == "tool_use"
            ]
            messages.append({"role": "user", "content": results})
        else:
            messages.append({"role": "user", "content": "And then?"})
        second = (await session.follow(messages, **options)).kwargs
    assert [entry.names for entry in of(session.view.history, Recalled)] == [(FILE,)]
    assert len(recalled(request)) == 1
    assert (first["system"], first["tools"]) == (second["system"], second["tools"])
    assert any("/memories" in section["text"] for section in second["system"])
    assert [tool["name"] for tool in second["tools"]] == ["Read", "memory"]


async def test_memory_is_part_of_how_a_session_was_set_up(client, tmp_path):
    history = await learnt(client, tmp_path)
    assert history
    async with Session.resume(directory=tmp_path, client=client) as session:
        assert [tool["name"] for tool in session.tools()] == ["History", "memory"]
        session.user(QUESTION)
        names = [tool["name"] for tool in (await session.prepare()).kwargs["tools"]]
        assert names == ["Read", "memory"]
    with Session.resume(session.id, memory=False) as session:
        assert [tool["name"] for tool in session.tools()] == ["History"]
        request = await session.prepare()
        assert [tool["name"] for tool in request.kwargs["tools"]] == ["Read"]
        assert "/memories" not in str(request.kwargs.get("system", ""))
    with Session.resume(session.id, memory=True) as session:
        request = await session.prepare()
        assert [tool["name"] for tool in request.kwargs["tools"]] == ["Read", "memory"]
        assert "/memories" in str(request.kwargs["system"])


async def test_a_model_adds_its_choice_to_the_search_at_the_default_budget(tmp_path):
    class Chooser:
        def answer(self, request):
            if "Memories:\n- [" in str(request.messages[-1]["content"][-1].get("text", "")):
                return BrainAnswer(blocks=(text('["coffee.md"]'),))
            return BrainAnswer(blocks=(text("Fine."),))

    descriptions = {"deploys": "deploys go out on Tuesday nights", "coffee": "two sugars"}
    with MemoryStore(memory_directory(home(), tmp_path)) as store:
        memories = [Memory(file=f"{f}.md", name=f, description=d) for f, d in descriptions.items()]
        changes = [MemoryChange(file=one.file, text=one.text, expected="") for one in memories]
        store.commit(changes, by="person", why="said so")
    settings = Settings(memory=MemorySettings(recall_model="claude-haiku-4-5"))
    with run_simulator(Chooser()) as simulator:
        async with (
            anthropic.AsyncAnthropic(base_url=simulator.url, api_key="any") as client,
            Session.open(
                model=MODEL, memory=True, client=client, directory=tmp_path, settings=settings
            ) as session,
        ):
            for question in (QUESTION, "And then?"):
                session.user(question)
                await answered(session, client, await session.prepare())
                await asyncio.sleep(0.5)  # the user reads the answer
            history = session.view.history
    assert [entry.names for entry in of(history, Recalled)] == [("deploys.md",), ("coffee.md",)]
    assert [fork.model for fork in of(history, Forked)] == ["claude-haiku-4-5"]
    assert not of(history, Failed) and not of(history, CacheBroke)


async def test_the_index_is_todays_after_a_compaction_and_in_a_resumed_session(client, tmp_path):
    place = memory_directory(home(), tmp_path)

    def put(file, description):
        with MemoryStore(place) as store:
            memory = Memory(file=file, name=file, description=description)
            change = MemoryChange(file=file, text=memory.text, expected=store.version(file))
            store.commit([change], by="person", why="said so")

    put("a.md", "the first fact")
    async with Session.open(model=MODEL, memory=True, client=client, directory=tmp_path) as session:
        for n in range(4):
            session.user(f"question {n} " + "word " * 3_000)
            request = await session.prepare()
            await answered(session, client, request)
            put("a.md", "the second fact")
        assert "the first fact" in str(request.kwargs["system"])
        await session.compact()
        session.user("go on")
        request = await session.prepare()
        assert "the second fact" in str(request.kwargs["system"])
        assert "the first fact" not in str(request.kwargs["system"])
        await answered(session, client, request)
    put("a.md", "the third fact")
    with Session.resume(session.id) as session:
        session.user("again")
        request = await session.prepare()
        assert "the third fact" in str(request.kwargs["system"])
        entries = len(session.view.history)
    with Session.resume(session.id) as session:
        assert len(session.view.history) == entries


async def test_the_model_writes_memories_itself(tmp_path):
    class Writer:
        def answer(self, request):
            if request.messages[-1]["content"][-1]["type"] == "tool_result":
                return BrainAnswer(blocks=(text("Noted."),))
            head = (
                "---\nname: board\ndescription: where tickets are\ntype: reference\n---\nLinear.\n"
            )
            given = {"command": "create", "path": "/memories/board.md", "file_text": head}
            return BrainAnswer(blocks=(tool_use("memory", given),))

    with run_simulator(Writer()) as simulator:
        client = openai.AsyncOpenAI(base_url=f"{simulator.url}/v1", api_key="any")
        async with (
            client,
            Session.open(
                model=MODEL, memory=True, client=client, window=200_000, directory=tmp_path
            ) as session,
        ):
            session.user("Our tickets are in Linear.")
            request = await session.prepare()
            response = await client.chat.completions.create(**request.kwargs)
            await session.record(response)
            [call] = response.choices[0].message.tool_calls
            result = await session.run_tool(call)
            assert result == "/memories/board.md was created."
            session.tool_result(call.id, result)
            other = {"id": "c", "function": {"name": "Read", "arguments": json.dumps({})}}
            with pytest.raises(InvalidArgument, match="only runs History and memory"):
                await session.run_tool(other)
    with Session.open(model=MODEL, memory=True, directory=tmp_path) as session:
        assert "where tickets are" in str(session._engine.frame.sections)


def test_without_a_client_memories_are_recalled_by_words(simulator, tmp_path):
    async def told():
        async with anthropic.AsyncAnthropic(base_url=simulator.url, api_key="any") as client:
            await learnt(client, tmp_path)

    sync(told())
    with Session.open(model=MODEL, memory=True, directory=tmp_path) as session:
        session.user(QUESTION)
        request = sync(session.prepare())
        assert len(recalled(request)) == 1
        said = [text_of(message.content) for message in session.view.messages()]
        assert any("Tuesday nights" in one for one in said)
        assert not of(session.view.history, Forked)
