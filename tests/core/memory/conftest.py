"""Fixtures for memory tests: a store in its own directory, and helpers for changes."""

import pytest

from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.memory import Memory
from longhold.core.memory.store import MemoryStore


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self, at: float = 1_790_000_000.0) -> None:
        self.at = at

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock():
    """A clock that stands until it is moved."""
    return Clock()


@pytest.fixture
def store(tmp_path, clock):
    """An empty store."""
    with MemoryStore(tmp_path / "memory", clock=clock) as opened:
        yield opened


@pytest.fixture
def write(store):
    """Commit memories as they are."""

    def commit(*memories: Memory, by="agent", why="a test"):
        changes = [
            MemoryChange(file=one.file, text=one.text, expected=store.version(one.file))
            for one in memories
        ]
        return store.commit(changes, by=by, why=why)

    return commit
