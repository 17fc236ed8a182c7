"""A dream killed at every point: the store is intact, and the next dream completes."""

import os
import shutil
import signal

import pytest

from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.dream import dream
from longhold.core.memory.dreaming import DreamLock
from longhold.core.memory.memory import Memory
from longhold.core.memory.store import MemoryStore
from longhold.core.settings import DreamSettings

pytestmark = pytest.mark.slow

SETTINGS = DreamSettings()
BEFORE = 1_000.0
NOW = 2_000_000_000.0
MEMORIES = [
    Memory(file="a.md", name="a", description="The port of the api is 8080", modified=1.0),
    Memory(file="b.md", name="b", description="The port of the api is 9090", modified=2.0),
    Memory(file="c.md", name="c", description="Ann reviews", modified=3.0, evidence=("s#1",)),
    Memory(file="d.md", name="d", description="Ann reviews", modified=4.0, evidence=("s#2",)),
]


def prepared(root):
    """A store with something to put in order, dreamt over long ago."""
    with MemoryStore(root) as store:
        changes = [MemoryChange(file=m.file, text=m.text, expected="") for m in MEMORIES]
        store.commit(changes, by="agent", why="begin")
    with DreamLock(root, clock=lambda: BEFORE).hold():
        pass


def dream_in(root, at, step=lambda point: None):
    """Dream with the lock, at a moment."""
    with MemoryStore(root, step=step) as store:
        lock = DreamLock(root, clock=lambda: at)
        with lock.hold():
            return dream(store, SETTINGS, repository=root)


def state(root):
    """What the store says."""
    with MemoryStore(root) as store:
        return {file: store.read(file) for file in store.versions()}


def die_at(root, number):
    """Dream in a process of its own that kills itself at its nth point."""
    passed = []

    def step(point):
        passed.append(point)
        if len(passed) > number:
            os.kill(os.getpid(), signal.SIGKILL)

    pid = os.fork()
    if not pid:
        try:
            dream_in(root, NOW, step)
        finally:
            os._exit(1)
    assert os.WIFSIGNALED(os.waitpid(pid, 0)[1])


def test_a_killed_dream_happened_or_did_not(tmp_path):
    base, whole = tmp_path / "base", tmp_path / "whole"
    prepared(base)
    shutil.copytree(base, whole)
    points = []
    dream_in(whole, NOW, points.append)
    old, new = state(base), state(whole)
    assert old != new and len(points) >= 8
    for number in range(len(points)):
        root = shutil.copytree(base, tmp_path / f"killed-{number}")
        die_at(root, number)
        assert state(root) in (old, new), points[number]
        held = DreamLock(root).look()
        assert held.pid and held.last == BEFORE, "the dream does not count as one"
        dream_in(root, NOW + 61)
        assert state(root) == new
        assert DreamLock(root).look().last == NOW + 61
