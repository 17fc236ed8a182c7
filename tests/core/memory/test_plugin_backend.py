"""Memories that a plug-in stores: used if the user names it, and what happens if it fails."""

import pytest

from longhold import Session
from longhold.core.log.shared import FileRecords
from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.memory import Memory
from longhold.core.memory.paths import find_memories
from longhold.core.memory.store import MemoryStore
from longhold.core.settings import MemorySettings, PluginsSettings, Settings, home
from longhold.errors import StoreError

KEEPS = """
COMMITS, DOWN = {}, []
class make:
    def __init__(self, project):
        self.mine = COMMITS.setdefault(project, {})
    def after(self, number):
        if DOWN:
            raise RuntimeError("no route")
        return sorted(one for one in self.mine.items() if one[0] > number)
    def add(self, number, commit):
        if DOWN:
            raise RuntimeError("no route")
        return self.mine.setdefault(number, commit) == commit
"""
SETTINGS = Settings(plugins=PluginsSettings(use="mine"))


def change(file, body):
    text = Memory(file=file, name=file, description=f"about {body}", body=f"{body}\n").text
    return MemoryChange(file=file, text=text, expected="")


@pytest.fixture
def opened(install, tmp_path):
    install("memories", "mine", KEEPS)
    backend, place = find_memories(FileRecords(tmp_path), home(), tmp_path, SETTINGS)
    assert place.is_relative_to(home() / "memories" / "mine")
    with MemoryStore(place, commits=backend) as store:
        yield store, type(backend)


def test_without_a_name_memories_are_local(tmp_path):
    assert find_memories(FileRecords(tmp_path), home(), tmp_path, Settings())[0] is None
    chosen = Settings(memory=MemorySettings(directory=str(tmp_path / "mine")))
    place = find_memories(FileRecords(tmp_path), home(), tmp_path, chosen)[1]
    assert place == tmp_path / "mine"


async def test_a_session_recalls_from_it(opened, tmp_path):
    store, _ = opened
    told = "releases go out on Tuesdays after the backup"
    store.commit([change("deploy.md", told)], by="agent", why="was told")
    session = Session.open("claude-sonnet-5-5", memory=True, directory=tmp_path, settings=SETTINGS)
    async with session:
        session.user("When do releases go out, and after which backup?")
        assert "Tuesdays" in str((await session.prepare()).kwargs["messages"])


async def test_while_it_fails_the_copy_is_read_and_nothing_is_written(opened, tmp_path):
    store, backend = opened
    store.commit([change("deploy.md", "releases go out on Tuesdays")], by="agent", why="x")
    backend.__init__.__globals__["DOWN"].append(True)
    store.refresh()
    assert [hit.file for hit in store.search("when do releases go out")] == ["deploy.md"]
    with pytest.raises(StoreError, match="shared memories: RuntimeError: no route"):
        store.commit([change("other.md", "more")], by="agent", why="x")
    assert list(store.versions()) == ["deploy.md"]
    session = Session.open("claude-sonnet-5-5", memory=True, directory=tmp_path, settings=SETTINGS)
    async with session:
        session.user("When do releases go out on Tuesdays?")
        assert await session.prepare()


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff", b'{"at": "x"}'])
def test_a_damaged_commit_leaves_the_copy_as_it_is(opened, data):
    store, backend = opened
    store.commit([change("deploy.md", "releases go out")], by="agent", why="x")
    commits = next(iter(backend.__init__.__globals__["COMMITS"].values()))
    commits[2] = data
    store.refresh()
    assert list(store.versions()) == ["deploy.md"]
    with pytest.raises(StoreError, match="shared memories"):
        store.commit([change("other.md", "more")], by="agent", why="x")
