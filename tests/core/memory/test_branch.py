"""A branch: invisible until it is merged, as a whole or not at all."""

import pytest

from longhold.core.memory.branch import Branch
from longhold.core.memory.memory import Memory, MemoryConflict, MemoryRefused, NoSuchMemory

A = Memory(file="a.md", name="a", description="first")
B = Memory(file="b.md", name="b", description="second")
C = Memory(file="c.md", name="c", description="third")


def test_a_branch_sees_its_own_changes_and_the_store_does_not(store, write):
    write(A, B)
    branch = Branch(store)
    branch.put(C)
    branch.remove("a.md", "no longer so")
    assert branch.versions().keys() == {"b.md", "c.md"}
    assert branch.memory("b.md") == store.memory("b.md")
    with pytest.raises(NoSuchMemory):
        branch.read("a.md")
    assert store.versions().keys() == {"a.md", "b.md"}
    assert store.history.head == 1


def test_merging_is_one_commit_and_undo_takes_it_all_back(store, write):
    write(A, B)
    before = {path.name: path.read_bytes() for path in store.root.glob("*.md")}
    branch = Branch(store)
    branch.put(C)
    branch.remove("a.md", "no longer so")
    told = branch.diff()
    commit = branch.merge(by="dream", why="a dream")
    assert [one.file for one in commit.changes] == ["a.md", "c.md"]
    assert "-name: a" in told and "+name: c" in told
    store.undo()
    assert {path.name: path.read_bytes() for path in store.root.glob("*.md")} == before


def test_a_memory_changed_meanwhile_is_a_conflict(store, write):
    write(A, B)
    branch = Branch(store)
    branch.put(Memory(file="a.md", name="a", description="by the branch"))
    branch.put(C)
    write(Memory(file="a.md", name="a", description="by somebody else"))
    with pytest.raises(MemoryConflict):
        branch.merge(by="dream", why="x")
    assert store.versions().keys() == {"a.md", "b.md"}


def test_a_memory_written_meanwhile_stays(store, write):
    write(A)
    branch = Branch(store)
    branch.remove("a.md", "gone")
    write(B)
    branch.merge(by="dream", why="x")
    assert store.versions().keys() == {"b.md"}
    assert "b.md" in store.index() and "a.md" not in store.index()


def test_what_ends_as_it_began_is_no_change(store, write):
    write(A)
    branch = Branch(store)
    branch.remove("a.md", "gone")
    branch.put(A)
    assert branch.changes() == []
    assert branch.merge(by="dream", why="x") is None


def test_each_change_is_checked_as_it_comes(store):
    with pytest.raises(MemoryRefused):
        Branch(store).put(Memory(file="../a.md", name="a", description="a"))
