"""An extraction killed at every point has happened or not, and the next completes it once."""

import asyncio
import os
import shutil
import signal

import pytest

from core.memory.forks import PREFIX, ScriptedFork, creating
from longhold.core.log import outbox
from longhold.core.log.entries import Remembered
from longhold.core.memory.extract import Extraction, NewMessages
from longhold.core.memory.memory_tool import permit_memories
from longhold.core.memory.store import MemoryStore
from longhold.core.tools.context import ToolContext
from longhold.core.turn.round import let_pass

pytestmark = pytest.mark.slow

STRETCH = NewMessages(cursor=9, messages=4, asked=7)
CALLS = [creating("a.md", "one thing"), creating("ops/b.md", "another thing")]


def work(place, step=lambda point: None):
    """Extract two memories in a project that lies in this place; give the fork."""
    fork = ScriptedFork(ToolContext(root=place, home=place, scratch=place), list(CALLS))
    with MemoryStore(place / "memory", step=step) as store:
        extraction = Extraction(
            open=lambda: store,
            session="01J",
            repository=place,
            ask=fork,
            permit=permit_memories(let_pass),
            is_outside=lambda: False,
            leave=lambda entry: outbox.leave(place, entry),
            tell=lambda line: None,
            step=step,
        )
        asyncio.run(extraction.run(STRETCH, PREFIX))
    return fork


def points(place):
    passed = []
    work(place, passed.append)
    return passed


def die_at(place, number):
    """Run in a process of its own that kills itself at its nth point."""
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1]
    count = 0

    def step(point):
        nonlocal count
        count += 1
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        work(place, step)
    finally:
        os._exit(0)


def state(place):
    with MemoryStore(place / "memory") as store:
        commits = [c for c in store.history.log() if c.by == "extraction"]
        return sorted(store.versions()), len(commits)


def reports(place):
    taken = []
    outbox.take(place, [], lambda entry: taken.append(entry) or entry)
    return [entry.cursor for entry in taken if isinstance(entry, Remembered)]


@pytest.fixture(scope="module")
def count(tmp_path_factory):
    """How many points there are."""
    return len(points(tmp_path_factory.mktemp("count")))


def test_killed_at_every_point_it_is_completed_once(tmp_path, count):
    assert count > 8
    for number in range(1, count + 1):
        place = tmp_path / str(number)
        place.mkdir()
        status = die_at(place, number)
        assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        assert state(place) in (([], 0), (["a.md", "ops/b.md"], 1)), number
        reported = reports(place)
        assert reported in ([], [9])
        if not reported:
            work(place)
            assert reports(place) == [9], number
        assert state(place) == (["a.md", "ops/b.md"], 1), number
        shutil.rmtree(place)
