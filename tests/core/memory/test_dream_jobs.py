"""A session that dreams: conditions, with and without a model, the report, and a kill."""

import asyncio
import json
import os
import signal
import subprocess
import time
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from funds import fund
from longhold.agent.build import build_agent
from longhold.core.log.entries import Dreamt, Failed, Forked, Ran, Replied, Said
from longhold.core.log.spending import FileLedger
from longhold.core.log.store import FileStore
from longhold.core.memory.backlog import learning_directory
from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.dreaming import DreamLock
from longhold.core.memory.memory import Memory, MemoryRefused
from longhold.core.memory.paths import memory_directory
from longhold.core.memory.store import MemoryStore
from longhold.core.messages import ToolUse
from longhold.core.messages.usage import Tally
from longhold.core.models.scripted import ScriptedModel
from longhold.core.settings import Settings, home

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
    fund(place, 20.0)
    return place


def stored(project):
    with MemoryStore(memory_directory(home(), project)) as store:
        return list(store.versions())


def settings(consent="write", where="always", **dream):
    """Memories are put in order after each piece of work; none are extracted."""
    given = Settings()
    memory = replace(given.memory, extract="off", consent=consent)
    dream = replace(given.dream, where=where, **dream)
    return replace(given, memory=memory, dream=dream)


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
    async with agent(project, "text: Hello.", by="engine") as one:
        await say(one)
        await one.background.drain(10.0)
        assert one.notices.take()[-1].startswith("dreamt: 1 merged (undo: longhold memory undo 2")
    [dreamt] = entries(one, Dreamt)
    assert (dreamt.by, dreamt.merged, dreamt.commit, dreamt.usage) == ("engine", 1, "2", None)
    assert len(stored(project)) == 1
    async with agent(project, "text: Hello.", by="engine") as two:
        await say(two)
    assert entries(two, Dreamt) == []  # not again within a day


async def test_a_model_dreams_on_a_fork(project):
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
        assert next(iter(one.background.job("dream").progress.steps)).startswith(
            "memory str_replace"
        )
    [dreamt] = entries(one, Dreamt)
    assert (dreamt.by, dreamt.usage is not None) == ("model", True)
    assert {entry.source for entry in entries(one, Forked)} == {"dream"}
    with MemoryStore(memory_directory(home(), project)) as store:
        assert "Port" in store.read("a.md")
        assert [commit.by for commit in store.history.log()] == ["dream", "agent"]


async def test_where_consent_is_asked_for_no_model_dreams(project):
    async with agent(project, f"{ANSWER}text: I dreamt.", consent="ask") as one:
        await say(one)
        await one.background.drain(10.0)
        with pytest.raises(MemoryRefused, match="--dry-run"):
            await one.dream(is_trial=False)
    assert (entries(one, Dreamt)[0].by, entries(one, Forked)) == ("engine", [])
    assert len(stored(project)) == 1


def lock(project):
    return DreamLock(memory_directory(home(), project))


async def test_a_dream_that_failed_does_not_count_as_done(project):
    async with agent(project, f"{ANSWER}error: 400 no") as one:
        await say(one)
        await one.background.drain(10.0)
        told = one.notices.take()
    assert any("the dream failed" in line and "retried in 60 minutes" in line for line in told)
    assert entries(one, Failed)[0].error.endswith("it does not count")
    assert entries(one, Dreamt)[0].by == "engine"
    assert (len(stored(project)), lock(project).look().last) == (1, 0.0)


async def test_a_dream_that_failed_is_tried_again(project, monkeypatch):
    monkeypatch.setattr("longhold.core.memory.dreaming.RETRY_MINUTES", 0.0)
    monkeypatch.setattr("longhold.core.memory.dreaming.SCAN_MINUTES", 0.0)
    async with agent(project, f"{ANSWER}error: 400 no") as one:
        await say(one)
        await one.background.drain(10.0)
    async with agent(project, f"{ANSWER}error: 400 no") as two:
        await say(two)
        await two.background.drain(10.0)
    async with agent(project, f"{ANSWER}text: All in order.") as three:
        await say(three)
        await three.background.drain(10.0)
    assert [len(entries(two, kind)) for kind in (Failed, Dreamt)] == [1, 0]
    [dreamt] = entries(three, Dreamt)
    assert dreamt.by == "model" and lock(project).look().last > 0


async def test_a_session_that_read_untrusted_text_leaves_the_dream_to_another(project):
    fetched = 'tool: Bash {"command": "curl -s file:///dev/null"}\n---\ntext: Fetched.\n---\n'
    async with agent(project, f"{fetched}text: I dreamt.") as one:
        await say(one)
        await one.background.drain(10.0)
    assert (entries(one, Dreamt)[0].by, entries(one, Forked)) == ("engine", [])
    assert (len(stored(project)), lock(project).look().last) == (1, 0.0)


async def test_dreams_do_not_depend_on_extraction(project):
    given = settings(where="chat", by="engine")
    for source, count in (("run", 0), ("chat", 1)):
        model = ScriptedModel("text: Hello.", name=MODEL)
        opened = await build_agent(model, directory=project, source=source, settings=given)
        await say(opened)
        await opened.close()
        assert len(entries(opened, Dreamt)) == count


async def test_what_a_dream_did_and_left_out_is_in_its_entry(project, monkeypatch):
    monkeypatch.setattr("longhold.core.memory.dream.DREAM_TURNS", 1)
    calls = [
        {"command": "create", "path": "/memories/c.md", "file_text": "We deploy on Fridays."},
        {"command": "delete", "path": "/memories/a.md", "why": "the project is over"},
        {"command": "delete", "path": "/memories/b.md", "why": "the project is over"},
    ]
    asked = "\n".join(f"tool: memory {json.dumps(given)}" for given in calls)
    script = f"{ANSWER}{asked}\n---\ntext: Pruned."
    async with agent(project, script, removed_floor=1, removed_share=0.0) as one:
        await say(one)
        await one.background.drain(10.0)
    [dreamt] = entries(one, Dreamt)
    assert (dreamt.by, dreamt.names) == ("model", ("b.md", "c.md"))
    assert "ran out of turns" in dreamt.dropped["a.md"]
    assert "1 left out" in dreamt.why


def leave_session(project, id, *entries):
    with FileStore().create(directory=project, session=id) as log:
        for entry in entries:
            log.append(entry)
    return log.path


async def test_the_fork_may_read_clean_sessions_and_no_other_files(project, tmp_path):
    clean = leave_session(project, "clean", Said(content="we moved to Port"))
    fetch = ToolUse(id="t", name="WebFetch", input={"url": "https://example.org"})
    fetched = leave_session(
        project,
        "fetched",
        Replied(response_id="r", content=(fetch,)),
        Ran(tool_use_id="t", content="we moved to a stranger's"),
    )
    (tmp_path / "other.txt").write_text("private")
    search = {"pattern": "moved", "output_mode": "content"}
    calls = [
        ("Grep", {**search, "path": str(clean)}),
        ("Grep", {**search, "path": str(fetched)}),
        ("Grep", {**search, "path": str(clean.parent)}),
        ("Read", {"file_path": str(tmp_path / "other.txt")}),
        ("Write", {"file_path": str(clean), "content": ""}),
    ]
    asked = "\n".join(f"tool: {name} {json.dumps(given)}" for name, given in calls)
    async with agent(project, f"{ANSWER}{asked}\n---\ntext: All in order.") as one:
        await say(one)
        await one.background.drain(10.0)
        request = str(one.model.requests[-1].kwargs["messages"])
        seen = str(one.model.requests[-1].kwargs["messages"][-1])
    assert "we moved to Port" in seen and "private" not in seen and "stranger" not in seen
    assert "Not possible here" in seen
    assert str(clean) in request
    assert clean.read_text()


async def test_stopped_it_never_happened_and_left_a_report(project):
    async with agent(project, f"{ANSWER}text: slow", kind=HangsAfterOne) as one:
        await say(one)
        await asyncio.sleep(0)
        assert one.background.job("dream").is_busy
        held = DreamLock(memory_directory(home(), project)).look()
        assert held.pid == os.getpid()
        await one.background.job("dream").stop()
        after = lock(project).look()
        assert (after.pid, after.last) == (0, 0.0)
    assert [entry.error for entry in entries(one, Failed)] == ["it was stopped; it does not count"]
    assert entries(one, Dreamt) == []
    assert stored(project) == ["a.md", "b.md"]


async def test_a_dream_that_the_user_stopped_leaves_one_entry(project):
    async with agent(project, f"{ANSWER}text: slow", kind=HangsAfterOne) as one:
        await say(one)
        await asyncio.sleep(0)
        await one.background.job("dream").stop("the user stopped it")
    assert [entry.error for entry in entries(one, Failed)] == ["the user stopped it"]


async def test_a_dream_that_cannot_be_paid_for_is_done_without_a_model(project):
    place = learning_directory(home(), memory_directory(home(), project)) / "spent"
    FileLedger(place / "dream").add(Tally(calls=9, usd=1.0))
    async with agent(project, ANSWER) as one:
        await say(one)
        await one.background.drain(10.0)
    assert (len(one.model.requests), stored(project)) == (1, ["a.md"])


async def test_a_dream_stops_when_its_share_is_spent(project):
    """It is paid for turn by turn, on the prompt without the conversation."""
    place = learning_directory(home(), memory_directory(home(), project)) / "spent"
    fund(project, 20.0)
    FileLedger(place / "dream").add(Tally(calls=1, usd=0.40, input_tokens=100, output_tokens=10))
    look = 'tool: memory {"command": "view", "path": "/memories"}\n---\n'
    async with agent(project, f"{ANSWER}{look * 24}text: Done.") as one:
        await say(one, "hello " * 2_000)
        await one.background.drain(10.0)
    dreams = [entry for entry in entries(one, Forked) if entry.source == "dream"]
    [dreamt] = entries(one, Dreamt)
    assert 0 < len(dreams) < 24 and "used up its share" in dreamt.why
    assert all("hello hello" not in str(r.kwargs["messages"]) for r in one.model.requests[1:])


async def test_searches_leave_enough_for_a_dream_and_a_small_project_saves_for_one(project):
    """At the default share, after three weeks in which every search was made that could be."""
    place = learning_directory(home(), memory_directory(home(), project)) / "spent"
    for ledger in (place / "all").glob("*.jsonl"):
        ledger.unlink()  # what the fixture gave
    for days in (1, 8, 15, 22):
        ago = time.time() - days * 86_400
        FileLedger(place / "all", clock=lambda ago=ago: ago).add(Tally(calls=50, usd=4.0))
        FileLedger(place / "memory", clock=lambda ago=ago: ago).add(Tally(calls=9, usd=0.16))
    look = 'tool: memory {"command": "view", "path": "/memories/a.md"}\n---\n'
    async with agent(project, f"{ANSWER}{look}text: Done.") as one:
        await say(one)
        await one.background.drain(10.0)
    [dreamt] = entries(one, Dreamt)
    assert (dreamt.by, dreamt.why) == ("model", "1 merged or removed")


FETCH = 'tool: Bash {"command": "curl -s file:///dev/null"}\n---\ntext: Read.\n---\n'


async def test_no_model_dreams_by_hand_after_untrusted_text(project):
    async with agent(project, f"{FETCH}text: x", on=False) as one:
        await say(one)
        with pytest.raises(MemoryRefused, match="read untrusted text"):
            await one.dream(is_trial=False)
    assert stored(project) == ["a.md", "b.md"]


async def test_by_hand_it_asks_no_model_if_the_engine_is_to_dream(project):
    async with agent(project, ANSWER, on=False, by="engine") as one:
        await say(one)
        report = await one.dream(is_trial=False)
    assert (report.usage, len(one.model.requests), stored(project)) == (None, 1, ["a.md"])


def killed_while_dreaming(project):
    """Let a process take the lock and die; return its number."""
    pid = os.fork()
    if not pid:
        with lock(project).hold():
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    return pid


async def test_a_killed_dream_is_reported_by_the_next_session(project):
    pid = killed_while_dreaming(project)
    assert lock(project).look().pid == pid
    for count in (1, 0):
        async with agent(project, "text: Hello.", by="engine") as one:
            await say(one)
            await one.background.drain(10.0)
            told = [line for line in one.notices.take() if "was killed while it dreamt" in line]
        killed = [e for e in entries(one, Failed) if f"process {pid} was killed" in e.error]
        assert (len(told), len(killed)) == (count, count)
    assert (lock(project).look().pid, stored(project)) == (0, ["a.md", "b.md"])


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
    async with agent(project, "text: Hello.", by="engine", **closed) as one:
        await say(one)
        assert not one.background.job("dream").is_busy
    assert stored(project) == ["a.md", "b.md"]


async def test_sessions_are_not_counted_again_for_a_while(project):
    async with agent(project, "text: Hello.\n---\ntext: Again.", by="engine", sessions=6) as one:
        await say(one)
        logs = memory_directory(home(), project).parent
        for number in range(5, 9):
            (logs / f"{number}.jsonl").write_text("")
        await say(one, "more")
    assert entries(one, Dreamt) == []
    scanned = memory_directory(home(), project) / ".dream-scan"
    assert time.time() - scanned.stat().st_mtime < 60
