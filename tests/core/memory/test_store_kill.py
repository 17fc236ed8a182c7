"""A store whose process is killed at any point has the old state or the new one."""

import os
import shutil
import signal

import pytest

from longhold.core.memory.branch import Branch
from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.memory import Memory
from longhold.core.memory.store import MemoryStore

pytestmark = pytest.mark.slow

A = Memory(file="a.md", name="a", description="first", body="one\n")
B = Memory(file="b.md", name="b", description="second", body="two\n")


def write(store):
    """Change one, remove one, add two."""
    changes = [
        MemoryChange(file="a.md", text="changed\n", expected=store.version("a.md")),
        MemoryChange(file="b.md", text=None, expected=store.version("b.md"), reason="gone"),
        MemoryChange(file="c.md", text="new\n", expected=""),
        MemoryChange(file="ops/d.md", text="new\n", expected=""),
    ]
    store.commit(changes, by="agent", why="a write")


def merge(store):
    """Merge a branch, as a dream does."""
    branch = Branch(store)
    branch.remove("a.md", "same as b.md")
    branch.put(Memory(file="b.md", name="b", description="both"))
    branch.merge(by="dream", why="a dream")


def undo(store):
    """Take the last commit back."""
    store.undo()


def adopt(store):
    """Take in what was changed by hand."""
    store.adopt()


def prepared(root):
    """A store with a history, and its files."""
    with MemoryStore(root) as store:
        for memory in (A, B):
            change = MemoryChange(file=memory.file, text=memory.text, expected="")
            store.commit([change], by="agent", why="begin")


def state(root):
    """What the store says, and what is on disk: they must agree."""
    with MemoryStore(root) as store:
        said = {file: store.read(file) for file in store.versions()}
        index = store.index()
    found = {p.relative_to(root).as_posix(): p.read_text() for p in root.rglob("*.md")}
    assert found == ({**said, "MEMORY.md": index} if index else said)
    assert not list(root.rglob(".*.partial"))
    return said


def points(root, work):
    """Run to the end and list the points passed."""
    passed: list[str] = []
    with MemoryStore(root, step=passed.append) as store:
        passed.clear()
        work(store)
    return passed


def die_at(root, work, number):
    """Run in a process of its own that kills itself at its nth point."""
    pid = os.fork()
    if not pid:
        try:
            _work_until(root, work, number)
        finally:
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def _work_until(root, work, number):
    passed = []

    def step(point):
        passed.append(point)
        if len(passed) > number:
            os.kill(os.getpid(), signal.SIGKILL)

    work(MemoryStore(root, step=step))


@pytest.mark.parametrize("work", [write, merge, undo, adopt], ids=lambda work: work.__name__)
def test_a_killed_store_is_the_old_state_or_the_new_one(tmp_path, work):
    base = tmp_path / "base"
    prepared(base)
    if work is adopt:
        (base / "a.md").write_text("by hand\n")
        (base / "new.md").write_text("by hand\n")
    old, whole = _copy(base, "old"), _copy(base, "whole")
    passed = points(whole, work)
    new = state(whole)
    before = dict(state(old).items()) if work is not adopt else None
    assert len(passed) >= 4
    for number, point in enumerate(passed):
        root = _copy(base, f"killed-{number}")
        die_at(root, work, number)
        with MemoryStore(root) as store:
            store.adopt()
        after = state(root)
        assert after in (new, before), point
        with MemoryStore(root) as store:
            change = MemoryChange(file="next.md", text="goes on\n", expected="")
            assert store.commit([change], by="agent", why="the next run")


def _copy(base, name):
    return shutil.copytree(base, base.with_name(name))
