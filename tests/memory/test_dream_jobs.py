"""A session that dreams: its gates, with a model and without, its report, and a kill."""

import asyncio
import json
import os
import subprocess
import time
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from holdfast.agent.build import build_agent
from holdfast.log.entries import Dreamt, Failed, Forked
from holdfast.memory.commits import MemoryChange
from holdfast.memory.errors import MemoryRefused
from holdfast.memory.lock import DreamLock
from holdfast.memory.memory import Memory
from holdfast.memory.paths import memory_directory
from holdfast.memory.store import MemoryStore
from holdfast.models.scripted import ScriptedModel
from holdfast.settings import Settings, home

MODEL = "claude-opus-4-6"
SAME = "The board of the team is in Linear, under the project called Harbour.\n"
ANSWER = "text: Hello.\n---\n"


@pytest.fixture
def project(tmp_path):
    """A repository with two memories that say the same, and five sessions since the last dream."""
    place = tmp_path / "project"
    place.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=place, check=True)
    root = memory_directory(home(), place)
    with MemoryStore(root) as store:
        changes = [
            MemoryChange(
                file=f,
                text=Memory(file=f, name=f, description="board", body=SAME).text,
                expected="",
            )
            for f in ("a.md", "b.md")
        ]
        store.commit(changes, by="agent", why="begin")
    for number in range(5):
        (root.parent / f"{number}.jsonl").write_text("")
    return place


def stored(project):
    with MemoryStore(memory_directory(home(), project)) as store:
        return list(store.versions())


def settings(consent="write", **dream):
    given = Settings()
    memory = replace(given.memory, extract_every=99, consent=consent)
    return replace(
        given, memory=replace(memory, extract="always"), dream=replace(given.dream, **dream)
    )


@asynccontextmanager
async def agent(project, script, *, kind=ScriptedModel, **dream):
    model = kind(script, name=MODEL)
    opened = await build_agent(model, directory=project, mode="bypass", settings=settings(**dream))
    try:
        yield opened
    finally:
        await opened.close()


async def say(opened, prompt="hello"):
    async for _ in opened.run(prompt):
        pass


def entries(opened, kind):
    return [entry for entry in opened.session.view.history if isinstance(entry, kind)]


async def test_without_a_model_the_safe_part_is_done(project):
    """Beside the conversation, once; reported to the log and in a line."""
    async with agent(project, "text: Hello.", by="engine") as one:
        await say(one)
        await one.background.drain(10.0)
        assert one.notices.take()[-1].startswith("dreamt: 1 merged (undo: holdfast memory undo 2")
    [dreamt] = entries(one, Dreamt)
    assert (dreamt.by, dreamt.merged, dreamt.commit, dreamt.usage) == ("engine", 1, "2", None)
    assert len(stored(project)) == 1
    async with agent(project, "text: Hello.", by="engine") as two:
        await say(two)
    assert entries(two, Dreamt) == []  # not again within a day


async def test_a_model_dreams_on_a_fork(project):
    """As one commit, with what it cost."""
    change = {
        "command": "str_replace",
        "path": "/memories/a.md",
        "old_str": "Harbour",
        "new_str": "Port",
    }
    script = f"{ANSWER}tool: memory {json.dumps(change)}\n---\ntext: Renamed the project."
    async with agent(project, script) as one:
        await say(one)
        await one.background.drain(10.0)
        assert next(iter(one.background.job("dream").steps)).startswith("memory str_replace")
    [dreamt] = entries(one, Dreamt)
    assert (dreamt.by, dreamt.usage is not None) == ("model", True)
    assert {entry.source for entry in entries(one, Forked)} == {"dream"}
    with MemoryStore(memory_directory(home(), project)) as store:
        assert "Port" in store.read("a.md")
        assert [commit.by for commit in store.history.log()] == ["dream", "agent"]


async def test_where_consent_is_asked_for_no_model_dreams(project):
    """It would write what the user has not seen; the safe part is done."""
    async with agent(project, f"{ANSWER}text: I dreamt.", consent="ask") as one:
        await say(one)
        await one.background.drain(10.0)
        with pytest.raises(MemoryRefused, match="--dry-run"):
            await one.dream(is_trial=False)
    assert (entries(one, Dreamt)[0].by, entries(one, Forked)) == ("engine", [])
    assert len(stored(project)) == 1


async def test_a_model_that_fails_leaves_the_safe_part(project):
    """The failure is told, and the next rung is taken."""
    async with agent(project, f"{ANSWER}error: 400 no") as one:
        await say(one)
        await one.background.drain(10.0)
    assert entries(one, Failed)[0].error.endswith("it is done without a model")
    assert entries(one, Dreamt)[0].by == "engine"
    assert len(stored(project)) == 1


async def test_the_fork_may_read_the_sessions_and_no_other_files(project, tmp_path):
    """Logs of this project lie where a session may not look otherwise."""
    logs = memory_directory(home(), project).parent
    (logs / "0.jsonl").write_text('{"entry":"said","content":"we moved to Port"}\n')
    (tmp_path / "other.txt").write_text("private")
    calls = [
        ("Grep", {"pattern": "moved", "path": str(logs), "output_mode": "content"}),
        ("Read", {"file_path": str(tmp_path / "other.txt")}),
        ("Write", {"file_path": str(logs / "0.jsonl"), "content": ""}),
    ]
    asked = "\n".join(f"tool: {name} {json.dumps(given)}" for name, given in calls)
    async with agent(project, f"{ANSWER}{asked}\n---\ntext: All in order.") as one:
        await say(one)
        await one.background.drain(10.0)
        seen = str(one.model.requests[-1].kwargs["messages"][-1])
    assert "we moved to Port" in seen and "private" not in seen
    assert "Not possible here" in seen
    assert (logs / "0.jsonl").read_text()


async def test_killed_it_never_happened_and_the_lock_is_free(project):
    """The time of the last dream goes back to what it was."""
    async with agent(project, f"{ANSWER}text: slow", kind=HangsAfterOne) as one:
        await say(one)
        await asyncio.sleep(0)
        assert one.background.job("dream").is_busy
        held = DreamLock(memory_directory(home(), project), stale_seconds=3_600).look()
        assert held.pid == os.getpid()
        await one.background.job("dream").stop()
        after = DreamLock(memory_directory(home(), project), stale_seconds=3_600).look()
        assert (after.pid, after.last) == (0, 0.0)
    assert entries(one, Dreamt) == []
    assert stored(project) == ["a.md", "b.md"]


class HangsAfterOne(ScriptedModel):
    """Answers the conversation, and no fork of it."""

    async def stream(self, request):
        if self.requests:
            await asyncio.Event().wait()
        async for event in super().stream(request):
            yield event


@pytest.mark.parametrize(
    "closed",
    [{"on": False}, {"after_hours": 1e9}, {"sessions": 6}],
    ids=["off", "time", "sessions"],
)
async def test_a_gate_that_is_closed_lets_no_dream_pass(project, closed):
    """Each by itself."""
    async with agent(project, "text: Hello.", by="engine", **closed) as one:
        await say(one)
        assert not one.background.job("dream").is_busy
    assert stored(project) == ["a.md", "b.md"]


async def test_sessions_are_not_counted_again_for_a_while(project):
    """A look at the directory is noted."""
    async with agent(project, "text: Hello.\n---\ntext: Again.", by="engine", sessions=6) as one:
        await say(one)
        logs = memory_directory(home(), project).parent
        for number in range(5, 9):
            (logs / f"{number}.jsonl").write_text("")
        await say(one, "more")
    assert entries(one, Dreamt) == []
    scanned = memory_directory(home(), project) / ".dream-scan"
    assert time.time() - scanned.stat().st_mtime < 60
