"""Long-term memory in a database: all machines share what one has learnt."""

import threading

import pytest

from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.memory import Memory, MemoryConflict
from longhold.core.memory.store import MemoryStore
from longhold.errors import StoreError

pytest.importorskip("psycopg", reason="psycopg is not installed")

from longhold import Session
from longhold.core.log.stores.postgres import PostgresStore
from longhold.core.settings import StoreSettings


@pytest.fixture
def node(postgres_url, tenant, project, tmp_path, monkeypatch):
    """Open the project's memories as another machine would, with a home of its own."""
    opened = []

    def make(name: str, directory=project, owner: str = tenant) -> MemoryStore:
        monkeypatch.setenv("LONGHOLD_HOME", str(tmp_path / name))
        store = PostgresStore(postgres_url, StoreSettings(tenant=owner))
        commits = store.shared(directory).memory
        memory = MemoryStore(commits.place, commits=commits)
        opened.extend((memory, store))
        return memory

    yield make
    for one in opened:
        one.close()


def change(file: str, body: str, expected: str = "") -> MemoryChange:
    text = Memory(file=file, name=file, description=f"about {body}", body=f"{body}\n").text
    return MemoryChange(file=file, text=text, expected=expected)


def test_a_memory_is_found_on_every_node(node):
    here, there = node("here"), node("there")
    here.commit([change("deploy.md", "releases go out on Tuesdays")], by="agent", why="was told")
    there.refresh()
    assert there.memory("deploy.md") == here.memory("deploy.md")
    assert there.index() == here.index()
    assert [hit.file for hit in there.search("when do releases go out")] == ["deploy.md"]
    assert (there.root / "deploy.md").read_text() == here.read("deploy.md")
    assert there.root != here.root
    undone = there.undo()
    here.refresh()
    assert here.versions() == {}
    assert here.history.log() == there.history.log()
    assert here.history.commit(undone.id).undoes == 1
    assert not (here.root / "deploy.md").exists()


def test_a_new_node_has_all_that_was_learnt(node):
    for number in range(3):
        node("here").commit([change(f"m{number}.md", f"fact {number}")], by="agent", why="x")
    fresh = node("fresh")
    assert list(fresh.versions()) == ["m0.md", "m1.md", "m2.md"]
    assert fresh.history.head == 3


def test_of_two_nodes_that_change_a_memory_the_later_is_told(node):
    here, there = node("here"), node("there")
    here.commit([change("a.md", "one")], by="agent", why="x")
    there.refresh()
    seen = there.version("a.md")
    here.commit([change("a.md", "two", seen)], by="agent", why="x")
    with pytest.raises(MemoryConflict, match="read it again"):
        there.commit([change("a.md", "three", seen)], by="agent", why="x")
    assert there.memory("a.md").body == "two\n"


def test_nodes_that_commit_at_once_lose_and_double_nothing(node):
    nodes = [node(f"n{number}") for number in range(4)]
    each = 8

    def write(place, commits, number):
        with MemoryStore(place, commits=commits) as store:
            for count in range(each):
                new = change(f"n{number}-{count}.md", f"fact {count} of {number}")
                store.commit([new], by="agent", why=f"{number} {count}")

    threads = [
        threading.Thread(target=write, args=(one.root, one._replica._commits, number))
        for number, one in enumerate(nodes)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in nodes:
        one.refresh()
        assert len(one.versions()) == len(nodes) * each
        assert one.history.log() == nodes[0].history.log()


def test_a_process_that_died_before_it_knew_of_its_commit_has_it(node):
    class Died(BaseException):
        pass

    def die(point):
        if point == "committed":
            raise Died

    here = node("here")
    dying = MemoryStore(here.root, commits=here._replica._commits, step=die)
    with pytest.raises(Died):
        dying.commit([change("a.md", "one")], by="agent", why="x")
    dying.close()
    for one in (node("here"), node("there")):
        assert one.memory("a.md").body == "one\n"
        assert one.history.head == 1


def test_a_file_edited_on_one_node_is_known_on_the_others(node):
    here, there = node("here"), node("there")
    here.commit([change("a.md", "one")], by="agent", why="x")
    (here.root / "a.md").write_text(change("a.md", "by hand").text)
    here.adopt()
    there.refresh()
    assert there.memory("a.md").body == "by hand\n"
    assert there.history.commit(2).by == "person"


def test_memories_of_other_tenants_and_projects_are_never_seen(node, tmp_path):
    node("here").commit([change("a.md", "one")], by="agent", why="x")
    (tmp_path / "elsewhere").mkdir()
    assert node("here", owner="somebody else").versions() == {}
    assert node("here", directory=tmp_path / "elsewhere").versions() == {}


async def test_while_the_database_is_away_memories_are_read_and_not_written(node):
    here = node("here")
    here.commit([change("a.md", "one")], by="agent", why="x")
    commits = Away(here._replica._commits)
    with MemoryStore(here.root, commits=commits) as cut_off:
        assert cut_off.memory("a.md").body == "one\n"
        with pytest.raises(StoreError, match="cannot be reached"):
            cut_off.commit([change("b.md", "two")], by="agent", why="x")
        assert list(cut_off.versions()) == ["a.md"]


class Away:
    """Commits of a database that does not answer."""

    def __init__(self, commits):
        self.place = commits.place

    def after(self, number):
        raise StoreError("the store cannot be reached: connection refused")

    add = after


async def test_what_a_session_on_one_node_learnt_another_recalls(
    node, postgres_url, tenant, project, tmp_path, monkeypatch
):
    node("here").commit(
        [change("deploy.md", "releases go out on Tuesdays after the backup")],
        by="agent",
        why="was told",
    )
    monkeypatch.setenv("LONGHOLD_HOME", str(tmp_path / "there"))
    store = PostgresStore(postgres_url, StoreSettings(tenant=tenant))
    opened = Session.open(model="claude-sonnet-5-5", memory=True, directory=project, store=store)
    async with opened as session:
        session.user("When do releases go out, and after which backup?")
        request = await session.prepare()
    assert "Tuesdays" in str(request.kwargs["messages"])
    store.close()
