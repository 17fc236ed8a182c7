"""What a memory backend promises: `longhold.core.log.shared.MemoryBackend`."""

import threading

import pytest

from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.memory import Memory, MemoryConflict
from longhold.core.memory.store import MemoryStore

ANYTHING = bytes(range(256)) * 256


def change(file, body, expected=""):
    text = Memory(file=file, name=file, description=f"about {body}", body=f"{body}\n").text
    return MemoryChange(file=file, text=text, expected=expected)


@pytest.fixture
def node(backends, tmp_path):
    """Open the memories as another machine would, each with its own copy."""
    opened = []

    def open_node(name):
        opened.append(MemoryStore(tmp_path / name, commits=backends()))
        return opened[-1]

    yield open_node
    for one in opened:
        one.close()


def test_it_begins_empty(backends):
    assert list(backends().after(0)) == []


def test_commits_come_back_in_order_and_unchanged(backends):
    one = backends()
    given = [b'{"a":1}', ANYTHING, "ü \u2028".encode(), b""]
    assert all(one.add(number, data) for number, data in enumerate(given, 1))
    for opened in (one, backends()):
        assert [(n, bytes(data)) for n, data in opened.after(0)] == list(enumerate(given, 1))
        assert [n for n, _ in opened.after(2)] == [3, 4]
        assert list(opened.after(4)) == []


def test_a_number_is_given_once(backends):
    one, other = backends(), backends()
    assert one.add(1, b"first")
    assert not other.add(1, b"second")
    assert [bytes(data) for _, data in other.after(0)] == [b"first"]


def test_of_many_writers_one_gets_the_number(backends):
    opened, won = [backends() for _ in range(8)], []

    def write(number):
        if opened[number].add(1, str(number).encode()):
            won.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert [bytes(data) for _, data in opened[0].after(0)] == [str(won[0]).encode()]


def test_projects_are_kept_apart(backends, project, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    assert backends().add(1, b"ours")
    assert list(backends(tmp_path / "elsewhere").after(0)) == []


def test_a_memory_of_one_node_is_found_on_another(node):
    here, there = node("here"), node("there")
    here.commit([change("deploy.md", "releases go out on Tuesdays")], by="agent", why="was told")
    there.refresh()
    assert there.memory("deploy.md") == here.memory("deploy.md")
    assert [hit.file for hit in there.search("when do releases go out")] == ["deploy.md"]
    there.undo()
    here.refresh()
    assert here.versions() == {}


def test_a_later_change_of_the_same_memory_is_a_conflict(node):
    here, there = node("here"), node("there")
    here.commit([change("a.md", "one")], by="agent", why="x")
    there.refresh()
    seen = there.version("a.md")
    here.commit([change("a.md", "two", seen)], by="agent", why="x")
    with pytest.raises(MemoryConflict):
        there.commit([change("a.md", "three", seen)], by="agent", why="x")
