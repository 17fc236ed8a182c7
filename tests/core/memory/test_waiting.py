"""A memory store that another process writes: calls wait, and other work continues."""

import asyncio
import json
import sqlite3
import time
from contextlib import contextmanager
from dataclasses import replace

import pytest

from longhold.agent.build import build_agent
from longhold.core.log.entries import Failed, Ran
from longhold.core.memory import memory as memory_module
from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.memory import (
    Memory,
    MemoryBusy,
    retry_while_busy,
)
from longhold.core.memory.paths import memory_directory
from longhold.core.memory.store import DATABASE, MemoryStore
from longhold.core.messages import text_of
from longhold.core.models.scripted import ScriptedModel
from longhold.core.settings import Settings, home

NOTICED_SECONDS = 1.0
"""A loop that stood for this long would be noticed by a user; a store was waited for 10."""
CREATE = {"command": "create", "path": "/memories/a.md", "file_text": "Deploys are on Tuesday.\n"}


@contextmanager
def writer(place):
    """Another connection in the middle of a commit."""
    other = sqlite3.connect(place / DATABASE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield other
    finally:
        other.close()


@pytest.fixture
def place(tmp_path):
    """The memories of a project, of which there is one."""
    place = memory_directory(home(), tmp_path / "project", "")
    (tmp_path / "project").mkdir()
    with MemoryStore(place) as store:
        known = Memory(file="known.md", name="Known", description="the board", body="In Linear.\n")
        change = MemoryChange(file=known.file, text=known.text, expected="")
        store.commit([change], by="person", why="a test")
    return place


async def longest_stand(until):
    """Return for how long the loop stood still at most, until something is done."""
    longest, last = 0.0, time.monotonic()
    while not until.done():
        await asyncio.sleep(0)
        longest, last = max(longest, time.monotonic() - last), time.monotonic()
    return longest


async def run(tmp_path, script, prompt, **memory):
    """Let an agent work; return its history."""
    settings = Settings()
    settings = replace(settings, memory=replace(settings.memory, **memory))
    model = ScriptedModel(script, name="claude-opus-4-6")
    agent = await build_agent(
        model, directory=tmp_path / "project", mode="bypass", settings=settings
    )
    try:
        async for _ in agent.run(prompt):
            pass
        return list(agent.session.view.history)
    finally:
        await agent.close()


async def test_the_loop_goes_on_while_another_process_commits(tmp_path, place):
    script = f"tool: memory {json.dumps(CREATE)}\n---\ntext: Kept.\n"
    with writer(place) as other:
        working = asyncio.create_task(run(tmp_path, script, "Remember it."))
        asyncio.get_running_loop().call_later(0.4, other.rollback)
        stood = await longest_stand(working)
    results = [entry for entry in await working if isinstance(entry, Ran)]
    assert stood < NOTICED_SECONDS
    assert [text_of(each.content) for each in results] == ["/memories/a.md was created."]
    with MemoryStore(place) as store:
        assert set(store.versions()) == {"known.md", "a.md"}


async def test_a_store_that_stays_busy_is_an_error_the_model_reads(tmp_path, place, monkeypatch):
    monkeypatch.setattr(memory_module, "BUSY_SECONDS", 0.2)
    script = f"tool: memory {json.dumps(CREATE)}\n---\ntext: It could not be kept.\n"
    with writer(place):
        working = asyncio.create_task(run(tmp_path, script, "The board?"))
        stood = await longest_stand(working)
    history = await working
    (result,) = [entry for entry in history if isinstance(entry, Ran)]
    assert stood < NOTICED_SECONDS
    assert result.is_error and "another process" in text_of(result.content)
    assert not [entry for entry in history if isinstance(entry, Failed)]


async def test_what_the_agent_wrote_into_the_directory_waits_for_the_store(tmp_path, place):
    given = {"file_path": str(place / "b.md"), "content": "Never on Friday.\n"}
    look = {"command": "view", "path": "/memories"}
    script = (
        f"tool: Write {json.dumps(given)}\n---\n"
        f"tool: memory {json.dumps(look)}\n---\ntext: Written.\n"
    )
    with writer(place) as other:
        working = asyncio.create_task(run(tmp_path, script, "Write it."))
        asyncio.get_running_loop().call_later(0.4, other.rollback)
        await working
    with MemoryStore(place) as store:
        (commit, *_) = store.history.log(file="b.md")
        assert commit.by == "agent"


async def test_waiting_ends(store, monkeypatch):
    monkeypatch.setattr(memory_module, "BUSY_SECONDS", 0.0)

    def busy():
        raise MemoryBusy("in use")

    with pytest.raises(MemoryBusy):
        await retry_while_busy(busy)
