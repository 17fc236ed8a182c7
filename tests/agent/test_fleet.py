"""Jobs on sessions: each is done once, by any process, in either store."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import get_args

import pytest

from casting import until
from command_line import longhold
from lazy import needs
from longhold import Session
from longhold.agent.build import build_agent
from longhold.agent.fleet import job_for, run_job
from longhold.core.log.entries import Dreamt, Noted, Remembered, Replied, Titled
from longhold.core.log.queued_job import JobKind, SessionJob
from longhold.core.log.stores import default_store
from longhold.core.memory.paths import memory_directory
from longhold.core.memory.store import MemoryStore
from longhold.core.models import open_model
from longhold.core.settings import home, load_settings
from longhold.errors import ConfigError, LogLocked, LongholdError, StoreError
from longhold.simulator import BrainAnswer, run_simulator
from longhold.simulator.brains import text, tool_use

needs("anthropic")

MODEL = "simulated/claude-sonnet-5-5"
SECONDS = 150
"""A process that starts on a busy machine may take this long; none is waited for without need."""


class Answers:
    """Answers at once, or when it is let go; counts what it is asked."""

    def __init__(self):
        self.asked = []
        self.arrived = threading.Event()
        self.may_answer = threading.Event()
        self.may_answer.set()

    async def answer(self, request):
        self.asked.append(request.messages[-1]["content"][-1].get("text", ""))
        self.arrived.set()
        await until(self.may_answer.is_set)
        return BrainAnswer(blocks=(text("It is ripe."),))


@pytest.fixture
def brain():
    return Answers()


@pytest.fixture
def simulator(brain):
    with run_simulator(brain) as simulator:
        yield simulator


@pytest.fixture
def models(simulator):
    return lambda name: open_model(name, base_url=simulator.url, api_key="x")


def waiting_session(directory, id="s", words="Is it ripe?"):
    """A session whose user waits for an answer."""
    with Session.open(model=MODEL, id=id, directory=directory) as session:
        session.user(words)
    return id


def answers(id="s"):
    found = [one for one in default_store().load(id).entries if isinstance(one, Replied)]
    return [one.response_id for one in found if one.stop_reason == "end_turn"]


async def test_a_turn_is_resumed_once(tmp_path, models, brain):
    job = job_for(default_store(), "resume", waiting_session(tmp_path))
    assert await run_job(job, default_store(), models) == "It is ripe."
    assert await run_job(job, default_store(), models) == "done already"
    assert len(brain.asked) == len(answers()) == 1


async def test_a_log_cannot_name_the_answers_that_a_worker_plays(tmp_path, models):
    prepared = tmp_path / "answers.txt"
    prepared.write_text(f'tool: Bash {{"command": "touch {tmp_path}/PWNED"}}\n---\ntext: done')
    with Session.open(model=f"scripted:{prepared}", id="s", directory=tmp_path) as session:
        session.user("Is it ripe?")
    job = job_for(default_store(), "resume", "s")
    with pytest.raises(ConfigError, match="only --model can name it"):
        await run_job(job, default_store(), models, "bypass")
    assert not (tmp_path / "PWNED").exists()


async def test_a_session_that_is_written_is_left_alone(tmp_path, models, brain):
    job = job_for(default_store(), "resume", waiting_session(tmp_path))
    with default_store().open("s"), pytest.raises(LogLocked):
        await run_job(job, default_store(), models)
    assert brain.asked == []
    assert await run_job(job, default_store(), models) == "It is ripe."


@pytest.mark.parametrize(
    ("kind", "left"), [("extract", Remembered), ("notes", Noted), ("dream", Dreamt)]
)
async def test_memories_notes_and_dreams_are_made_once(
    tmp_path, models, brain, monkeypatch, kind, left
):
    monkeypatch.setenv("LONGHOLD_NOTES_FIRST_TOKENS", "1")
    store = default_store()
    await run_job(job_for(store, "resume", waiting_session(tmp_path)), store, models)
    job = job_for(store, kind, "s")
    assert await run_job(job, store, models) != "nothing to do"
    assert sum(isinstance(one, left) for one in store.load("s", after=job.position).entries) == 1
    asked = len(brain.asked)
    assert await run_job(job, store, models) == "done already"
    assert len(brain.asked) == asked


REFUSED = {"command": "view", "path": "/nowhere/else.md"}
KEPT = {
    "command": "create",
    "path": "/memories/tabs.md",
    "file_text": "---\nname: Tabs\ndescription: the user prefers tabs\ntype: feedback\n---\nTabs.\n",
}


class Keeps(Answers):
    """Writes a memory when it is asked to keep the memory, then ends."""

    call = KEPT

    async def answer(self, request):
        said = request.messages[-1]["content"][-1]
        is_asked = said.get("text", "").startswith("You now")
        self.asked.append(said)
        return BrainAnswer(blocks=(tool_use("memory", self.call) if is_asked else text("Good."),))


class Fails(Keeps):
    """Only makes calls that are refused."""

    call = REFUSED


@pytest.mark.parametrize("brain", [Keeps()], ids=["keeps"])
@pytest.mark.parametrize("kind", ["extract", "dream"])
async def test_a_workers_memory_is_in_the_store(tmp_path, models, brain, kind):
    """At the defaults: what a person queues is not refused by the share, and its forks have tools."""
    store = default_store()
    await run_job(job_for(store, "resume", waiting_session(tmp_path)), store, models)
    await run_job(job_for(store, kind, "s"), store, models)
    with MemoryStore(memory_directory(home(), tmp_path)) as memories:
        assert list(memories.versions()) == ["tabs.md"]


@pytest.mark.parametrize("brain", [Fails()], ids=["fails"])
@pytest.mark.parametrize("kind", ["extract", "dream"])
async def test_a_job_whose_every_call_failed_has_failed(tmp_path, models, brain, kind):
    store = default_store()
    await run_job(job_for(store, "resume", waiting_session(tmp_path)), store, models)
    job = job_for(store, kind, "s")
    with pytest.raises(LongholdError, match="tool calls failed"):
        await run_job(job, store, models)
    assert not job.is_done(store.load("s").entries)  # the cursor did not move


async def test_a_job_whose_directory_is_elsewhere_says_so(tmp_path, models):
    place = tmp_path / "checkout"
    place.mkdir()
    job = job_for(default_store(), "resume", waiting_session(place))
    place.rmdir()
    with pytest.raises(StoreError, match="not on this machine"):
        await run_job(job, default_store(), models)


def test_an_unknown_job_names_those_there_are():
    with pytest.raises(ConfigError, match="resume, extract, dream, notes"):
        SessionJob(kind="sleep", session="s")


def test_a_worker_needs_a_database():
    done = longhold("worker", "--until-done")
    assert done.returncode == 2
    assert "LONGHOLD_STORE" in done.stderr


def test_a_worker_whose_database_is_away_says_so(monkeypatch):
    pytest.importorskip("procrastinate", reason="procrastinate is not installed: no worker")
    monkeypatch.setenv("LONGHOLD_STORE_PATIENCE_SECONDS", "0.1")
    done = longhold("worker", "--until-done", env={"LONGHOLD_STORE": "postgresql://127.0.0.1:1/x"})
    assert done.returncode == 4
    assert "the store cannot be reached" in done.stderr


@pytest.fixture
def database(postgres_url, monkeypatch):
    """Let every session and worker use a tenant of the database."""
    pytest.importorskip("procrastinate", reason="procrastinate is not installed: no worker")
    monkeypatch.setenv("LONGHOLD_STORE", postgres_url)
    monkeypatch.setenv("LONGHOLD_STORE_TENANT", f"tenant {os.getpid()} ☂ {os.urandom(4).hex()}")
    monkeypatch.setenv("LONGHOLD_STORE_LEASE_SECONDS", "1")
    monkeypatch.setenv("LONGHOLD_STORE_WORKER_BEAT_SECONDS", "0.3")
    monkeypatch.setenv("LONGHOLD_STORE_WORKER_STALLED_SECONDS", "1.5")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "x")
    yield
    default_store().close()


@pytest.fixture
def worker(simulator):
    """Start workers as processes of their own, which end with the test."""
    started = []

    def start(*arguments):
        words = [sys.executable, "-m", "longhold", "worker", "--base-url", simulator.url]
        started.append(
            subprocess.Popen(
                [*words, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        )
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.communicate()


def test_a_worker_runs_what_is_queued_each_once(database, tmp_path, worker, brain):
    for id in ("a", "b"):
        waiting_session(tmp_path, id)
        added = [longhold("worker", "--add", "resume", id).stdout for _ in range(2)]
        assert [line.split(": ")[1].strip() for line in added] == ["queued", "is already queued"]
    said, problems = worker("--until-done").communicate(timeout=SECONDS)
    assert sorted(said.splitlines()) == [f"resume of {id}: It is ripe." for id in ("a", "b")], (
        problems
    )
    assert len(brain.asked) == 2
    assert [len(answers(id)) for id in ("a", "b")] == [1, 1]


def test_a_job_that_fails_is_one_line(database, tmp_path, worker):
    waiting_session(tmp_path)
    longhold("worker", "--add", "resume", "s")
    _, problems = worker("--until-done", "--base-url", "").communicate(timeout=SECONDS)
    assert problems.startswith("resume of s: 'simulated/"), problems
    assert problems.count("\n") == 1


def test_the_job_of_a_killed_worker_is_done_by_another(database, tmp_path, worker, brain):
    waiting_session(tmp_path)
    longhold("worker", "--add", "resume", "s")
    brain.may_answer.clear()
    first = worker()
    assert brain.arrived.wait(SECONDS)
    second = worker()
    first.send_signal(signal.SIGKILL)
    first.communicate()
    brain.may_answer.set()
    assert second.stdout.readline() == "resume of s: It is ripe.\n"
    second.send_signal(signal.SIGTERM)
    second.communicate(timeout=SECONDS)
    assert len(answers()) == 1


def test_a_job_waits_for_the_sessions_writer(database, tmp_path, worker, brain):
    waiting_session(tmp_path)
    held = default_store().open("s")
    longhold("worker", "--add", "resume", "s")
    running_worker = worker()
    assert "is being written by" in running_worker.stderr.readline()
    held.close()
    assert running_worker.stdout.readline() == "resume of s: It is ripe.\n"
    running_worker.send_signal(signal.SIGTERM)
    running_worker.communicate(timeout=SECONDS)
    assert len(answers()) == 1


def test_a_job_whose_worker_lost_its_lease_is_tried_again(database, tmp_path, worker, brain):
    waiting_session(tmp_path)
    longhold("worker", "--add", "resume", "s")
    brain.may_answer.clear()
    paused = worker()
    assert brain.arrived.wait(SECONDS)
    paused.send_signal(signal.SIGSTOP)
    taken = None
    while taken is None:
        with suppress(LogLocked):
            taken = default_store().open("s")
    taken.append(Titled(title="taken over"))
    taken.close()
    paused.send_signal(signal.SIGCONT)
    brain.may_answer.set()
    assert "became the writer" in paused.stderr.readline()
    assert paused.stdout.readline() == "resume of s: It is ripe.\n"
    paused.send_signal(signal.SIGTERM)
    paused.communicate(timeout=SECONDS)
    assert len(answers()) == 1


async def test_the_queues_tables_are_made_once_whoever_comes_first(database, postgres_url):
    import psycopg

    from longhold.core.log.stores.postgres.log import PostgresJobs

    kinds = get_args(JobKind)
    for _ in range(4):
        name = f"fresh_{os.urandom(4).hex()}"
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        fresh = psycopg.conninfo.make_conninfo(postgres_url, dbname=name)
        jobs = PostgresJobs(fresh, load_settings().store, "s")
        put = await asyncio.gather(*(jobs.put(kind, 1) for kind in kinds))
        assert put == [True] * len(kinds)


@pytest.mark.parametrize("where", ["here", "workers"])
async def test_what_follows_a_turn_is_done_by_workers_where_they_are_to(
    database, tmp_path, worker, models, brain, monkeypatch, where
):
    monkeypatch.setenv("LONGHOLD_STORE_JOBS", where)
    monkeypatch.setenv("LONGHOLD_BUDGET_OWN_SHARE", "0")
    monkeypatch.setenv("LONGHOLD_MEMORY_SHARE", "0")
    monkeypatch.setenv("LONGHOLD_NOTES_FIRST_TOKENS", "1")
    monkeypatch.setenv("LONGHOLD_MEMORY_EXTRACT", "always")
    agent = await build_agent(models(MODEL), directory=tmp_path)
    async for _ in agent.run("Is it ripe?"):
        pass
    await agent.close()
    id, store = agent.session.id, default_store()
    assert len(brain.asked) == (1 if where == "workers" else 2)
    left = [type(one) for one in store.load(id).entries]
    assert (Remembered in left) is (where == "here")
    done, problems = await asyncio.to_thread(
        lambda: worker("--until-done").communicate(timeout=SECONDS)
    )
    assert ("extract of" in done) is (where == "workers"), problems
    assert sum(isinstance(one, Remembered) for one in store.load(id).entries) == 1
