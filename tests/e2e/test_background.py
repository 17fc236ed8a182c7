"""Background work over HTTP with the official SDK: independent of the conversation."""

import asyncio
import re
import subprocess
import threading
import time
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from casting import entries, project_memory, until
from funds import fund
from lazy import needs
from longhold.agent.build import build_agent
from longhold.core.log import Header
from longhold.core.log.entries import Dreamt, Failed, Forked, Noted, Remembered, Replied, Said
from longhold.core.log.stores import default_store
from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.dreaming import DreamLock
from longhold.core.memory.memory import Memory
from longhold.core.messages import Text, Usage
from longhold.core.models import open_model
from longhold.core.settings import Settings
from longhold.insight.explain import explain
from longhold.simulator import BrainAnswer, BrainRequest, run_simulator
from longhold.simulator.brains import text, tool_use

needs("anthropic")

JOBS = ("notes", "memory", "dream")
MODEL = "simulated/claude-sonnet-5-5"


class Held:
    """Answers the conversation at once, and its forks when they are let go."""

    def __init__(self):
        self.may_answer = threading.Event()
        self.held = []

    async def answer(self, request: BrainRequest) -> BrainAnswer:
        last = request.messages[-1]["content"][-1].get("text", "")
        if last == "first":
            return BrainAnswer(blocks=(text("Hello."),))
        self.held.append(last)
        await until(self.may_answer.is_set)
        if notes := re.search(r"The notes lie in (\S+)\. ", last):
            line = "## Current state\n"
            edit = {"old_string": line, "new_string": f"{line}All is well.\n"}
            return BrainAnswer(blocks=(tool_use("Edit", {"file_path": notes[1], **edit}),))
        return BrainAnswer(blocks=(text("Nothing to change."),))


@pytest.fixture
def project(tmp_path):
    """A repository with a memory, and five sessions since the last dream."""
    place = tmp_path / "project"
    place.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=place, check=True)
    fund(place, 500.0)
    with project_memory(place) as store:
        memory = Memory(file="a.md", name="a", description="board", body="It is in Linear.\n")
        change = MemoryChange(file="a.md", text=memory.text, expected="")
        store.commit([change], by="agent", why="begin")
    for number in range(5):
        default_store().add(Header(session=f"s{number}", directory=str(place)), [])
    return place


def begun(project):
    """A session that has spent enough to pay for notes: a share of one answer does not."""
    said = (Text(text="Hello."),)
    costs = (Usage(input_tokens=900_000), Usage(input_tokens=900_000), Usage(input_tokens=100))
    entries = []
    for n, usage in enumerate(costs):
        entries.append(Said(n=2 * n + 1, at=time.time(), content=said))
        entries.append(
            Replied(
                n=2 * n + 2,
                at=time.time(),
                response_id=f"r{n}",
                model=MODEL,
                content=said,
                usage=usage,
                stop_reason="end_turn",
            )
        )
    return default_store().add(Header(session="begun", directory=str(project)), entries)


@asynccontextmanager
async def at_work(project, brain):
    """An agent that has answered once, with every job under way."""
    given = Settings()
    settings = replace(
        given,
        memory=replace(given.memory, extract="always", consent="write"),
        notes=replace(given.notes, first_tokens=1, model=True, model_when="always"),
        dream=replace(given.dream, where="always"),
    )
    with run_simulator(brain) as simulator:
        model = open_model(MODEL, base_url=simulator.url, api_key="x")
        agent = await build_agent(
            model, directory=project, mode="bypass", settings=settings, resume=begun(project)
        )
        try:
            async for _ in agent.run("first"):
                pass
            await until(lambda: len(brain.held) >= len(JOBS))
            yield agent
        finally:
            brain.may_answer.set()
            await agent.close()


def busy(agent):
    return sorted(job.name for job in agent.background.busy)


async def test_stopping_a_turn_stops_no_job(project):
    brain = Held()
    async with at_work(project, brain) as agent:

        async def turn():
            return [event async for event in agent.run("second")][-1]

        doing = asyncio.create_task(turn())
        await until(lambda: "second" in brain.held)
        agent.abort.set()
        assert (await doing).reason == "aborted_streaming"
        assert busy(agent) == sorted(JOBS)
        brain.may_answer.set()
        assert await agent.background.drain(10.0) == []
        assert [entry.by for entry in entries(agent, Noted)] == ["model"]
        assert len(entries(agent, Remembered)) == 1
        assert [entry.by for entry in entries(agent, Dreamt)] == ["model"]
        assert entries(agent, Failed) == []


async def test_a_killed_job_leaves_a_trace_and_does_not_count_as_done(project):
    async with at_work(project, Held()) as agent:
        [number] = [job.number for job in agent.jobs.running() if job.name == "dream"]
        stopped = await agent.jobs.stop(str(number))
        assert (stopped.kind, stopped.progress.phase) == ("dream", "starting")
        assert busy(agent) == ["memory", "notes"]
        traces = [(entry.what, entry.error) for entry in entries(agent, Failed)]
        assert traces[0] == ("dream", "it was stopped by the user")
        assert {what for what, _ in traces} == {"dream"}
        assert entries(agent, Dreamt) == []
        with project_memory(project) as store:
            lock = DreamLock(store.root).look()
        assert (lock.pid, lock.last) == (0, 0.0)
        acts = [act for turn in explain(agent.session.view.history) for act in turn.acts]
        assert "dream: it was stopped by the user" in [act.text for act in acts]


async def test_what_a_job_does_is_counted(project):
    class Writing(Held):
        async def answer(self, request):
            last = request.messages[-1]["content"][-1]
            if "memory" in str(request.messages[-2:]) and last["type"] == "tool_result":
                self.held.append("after the edit")
                await until(self.may_answer.is_set)
                return BrainAnswer(blocks=(text("Done."),))
            if "Gather, narrowly." in last.get("text", ""):
                self.held.append("dream")
                change = {"command": "str_replace", "path": "/memories/a.md"}
                words = {"old_str": "Linear", "new_str": "Jira"}
                return BrainAnswer(blocks=(tool_use("memory", change | words),))
            return await super().answer(request)

    brain = Writing()
    async with at_work(project, brain) as agent:
        await until(lambda: "after the edit" in brain.held)
        [dream] = [job for job in agent.jobs.running() if job.name == "dream"]
        done = dream.progress
        assert (done.phase, done.answers, done.calls) == ("updating", 1, 1)
        assert list(done.files) == ["/memories/a.md"]
        paid = [one for one in entries(agent, Forked) if one.source == "dream"]
        assert done.spent.output_tokens == paid[0].usage.output_tokens > 0
        assert dream.line(now=done.since + 7).startswith(
            f"{dream.number}  dream, for 7 s: updating, 1 answers, 1 tool calls, "
            "changed /memories/a.md, $0.0"
        )


async def test_leaving_stops_jobs_with_a_trace(project):
    async with at_work(project, Held()) as agent:
        closing = asyncio.create_task(agent.close())
        while not closing.done():  # as often as somebody presses Ctrl-C
            agent.abort.set()
            await asyncio.sleep(0.01)
        await closing
    told = {entry.what for entry in entries(agent, Failed) if entry.error.endswith("the user left")}
    assert told == set(JOBS)
