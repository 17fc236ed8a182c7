"""A session's access to memories: opened on demand, with both indexes within limits."""

import pytest

from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.memory import Memory
from longhold.core.memory.session_memory import LazyStore
from longhold.core.settings import MemorySettings


@pytest.fixture
def opened(tmp_path):
    """Make one, and close it."""
    made = []

    def make(**limits):
        made.append(LazyStore(tmp_path / "memory", tmp_path / "team", MemorySettings(**limits)))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_looking_makes_nothing(opened, tmp_path):
    one = opened()
    assert (one.exists, one.has_any, one.index()) == (False, False, "")
    assert not (tmp_path / "memory").exists()


def test_what_was_changed_by_hand_is_in_the_index(opened, tmp_path):
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "mine.md").write_text("I like tea.\n")
    assert "I like tea." in opened().index()


def test_the_teams_index_stands_behind_the_private_one(opened, tmp_path):
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "oncall.md").write_text("Pager rota.\n")
    one = opened()
    own = Memory(file="a.md", name="a", description="mine")
    one.store().commit([MemoryChange(file="a.md", text=own.text, expected="")], by="agent", why="x")
    index = one.index()
    assert index.index("a.md") < index.index(".longhold/team/") < index.index("oncall.md")
    assert "oncall.md" not in opened(team="off").index()


def test_closed_it_opens_again(opened):
    one = opened()
    one.store()
    one.close()
    assert one.store().versions() == {}
