"""After erasure, a person's words are in no file, table or index."""

import asyncio
import json
import re
import subprocess
import sys

import pytest

from command_line import longhold
from longhold import Session
from longhold.core.log.entries import Failed, Said
from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.paths import memory_directory
from longhold.core.memory.store import MemoryStore
from longhold.core.settings import home
from longhold.errors import LogLocked, SessionNotFound

NEEDLE = "Zwingli-Quastenflosser"
MODEL = "claude-sonnet-4-6"
TOOL = {"name": "lookup", "description": "d", "input_schema": {"type": "object"}}
MEMORY = f"---\nname: Pet\ndescription: the pet is {NEEDLE}\ntype: user\n---\n\nIt is {NEEDLE}.\n"


def answer(id, *blocks):
    return {
        "id": id,
        "role": "assistant",
        "model": MODEL,
        "content": list(blocks) or [{"type": "text", "text": f"So it is {NEEDLE}."}],
        "stop_reason": "tool_use" if blocks else "end_turn",
        "usage": {"input_tokens": 100, "output_tokens": 5},
    }


async def talk(store, project, id):
    """Leave the needle in a log, a body, a diff, an outbox, a memory and a branch."""
    async with Session.open(
        id=id, model=MODEL, directory=project, store=store, tools=[TOOL], memory=True, history=True
    ) as session:
        session.user(f'My pet is "{NEEDLE}".\nSo.')
        await session.prepare()
        call = {"type": "tool_use", "id": "t1", "name": "lookup", "input": {"of": NEEDLE}}
        await session.record(answer("r1", call))
        session.tool_result("t1", f"{NEEDLE} " * 20_000)
        await session.prepare()
        await session.record(answer("r2"))
        made = {"command": "create", "path": "/memories/pet.md", "file_text": MEMORY}
        await session.run_tool({"type": "tool_use", "id": "m", "name": "memory", "input": made})
        look = {"query": NEEDLE}
        await session.run_tool({"type": "tool_use", "id": "h", "name": "History", "input": look})
        session._engine.log.keep_text("breaks/1.diff", f"- {NEEDLE}")
        session._engine.log.leave(Failed(what="job", error=NEEDLE))
    store.branch(id).close()


def hits(url, *places):
    """List every file and table that has the needle."""
    found = [
        str(path)
        for place in places
        for path in place.rglob("*")
        if path.is_file() and NEEDLE.encode() in path.read_bytes()
    ]
    if url is None:
        return found
    import psycopg

    query = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'longhold'"
    with psycopg.connect(url) as connection:
        for (table,) in connection.execute(query).fetchall():
            for row in connection.execute(f"SELECT * FROM longhold.{table}").fetchall():
                said = [one if isinstance(one, bytes) else str(one).encode() for one in row]
                found += [table] * any(NEEDLE.encode() in one for one in said)
    return found


@pytest.fixture
def database_url(request, reopened):
    is_files = request.node.callspec.params["reopened"] == "files"
    return None if is_files else request.getfixturevalue("postgres_url")


def fill_indexes(project):
    for words in (["history", NEEDLE], ["report"]):
        subprocess.run([sys.executable, "-m", "longhold", *words], cwd=project, check=False)


@pytest.mark.parametrize("how", ["id", "directory"])
async def test_a_needle_is_nowhere_after_it_was_erased(store, project, database_url, tmp_path, how):
    await talk(store, project, "user-7")
    store.files("user-7")
    await asyncio.to_thread(fill_indexes, project)
    with store.open("user-7"), pytest.raises(LogLocked):
        store.erase("user-7")
    assert len(hits(database_url, home(), tmp_path)) > 5
    erased = store.erase("user-7") if how == "id" else store.erase(directory=project)
    assert len(erased) == 2
    left = hits(database_url, home(), tmp_path)
    if how == "id":  # memories belong to the directory
        left = [one for one in left if "memory" not in one and one != "commits"]
    assert left == []
    with pytest.raises(SessionNotFound):
        store.erase("user-7")


async def test_everything_of_a_tenant_is_erased(store, project, database_url, tmp_path):
    await talk(store, project, "user-7")
    store.files()
    assert len(store.erase(everything=True)) == 2
    assert hits(database_url, home(), tmp_path) == []


async def test_one_text_is_blacked_out_wherever_it_is_repeated(
    store, project, database_url, tmp_path
):
    await talk(store, project, "user-7")
    before = [entry.n for entry in store.load("user-7").entries]
    assert store.redact("user-7", NEEDLE) > 3
    left = hits(database_url, home(), tmp_path)
    assert [one for one in left if "memory" not in one and one != "commits"] == []
    loaded = store.load("user-7")
    assert [entry.n for entry in loaded.entries] == before
    assert not loaded.damage
    said = next(entry for entry in loaded.entries if isinstance(entry, Said))
    assert said.content[0].text == 'My pet is "[redacted]".\nSo.'
    with Session.resume("user-7", store=store) as session:
        session.user("Go on.")
        request = await session.prepare()
    assert "[redacted]" in str(request.kwargs["messages"])


@pytest.mark.parametrize("text", ["Rue du Port 7\nGenève", "Zoë \U0001f40b"])
async def test_a_text_is_blacked_out_however_it_was_written(store, project, text):
    ways = [text, json.dumps(text), json.dumps(json.dumps(text))]
    ways.append(re.sub(r"(?<=\\u)\w{4}", lambda digits: digits[0].upper(), ways[1]))
    async with Session.open(
        id="s", model=MODEL, directory=project, store=store, tools=[TOOL]
    ) as session:
        session.user("Look at " + " and ".join(ways))
        call = {"type": "tool_use", "id": "t1", "name": "lookup", "input": {}}
        await session.prepare()
        await session.record(answer("r1", call))
        session.tool_result("t1", (" and ".join(ways) + "\n") * 5_000)
        await session.prepare()
    store.redact("s", text)
    found = store.files("s").find("s")
    kept = [found.path, *(path for path in found.directory.rglob("*") if path.is_file())]
    assert len(kept) > 1
    for path in kept:
        data = path.read_bytes()
        assert b"[redacted]" in data
        assert not [way for way in ways if way.strip('"').encode() in data]


def test_one_memory_is_erased_with_its_history(project, monkeypatch):
    monkeypatch.chdir(project)
    place = memory_directory(home(), project)
    with MemoryStore(place) as store:
        store.commit(
            [MemoryChange(file="pet.md", text=MEMORY, expected="")], by="person", why=NEEDLE
        )
        other = MEMORY.replace(NEEDLE, "a dog").replace("Pet", "Dog")
        store.commit(
            [MemoryChange(file="dog.md", text=other, expected="")], by="person", why="another"
        )
    assert len(hits(None, home())) > 2
    assert longhold("sessions", "forget", "--memory", "pet.md", "--yes").returncode == 0
    assert hits(None, home()) == []
    with MemoryStore(place) as store:
        assert [memory.file for memory in store.memories()] == ["dog.md"]
        assert store.search("dog")
        assert "dog.md" in store.index()
        assert "pet.md" not in store.index()


def test_the_command_erases_what_it_is_given(project, monkeypatch):
    monkeypatch.chdir(project)
    for id in ("user-7", "user-8"):
        with Session.open(id=id, model=MODEL, directory=project) as session:
            session.user(NEEDLE)
    assert "give IDs" in longhold("sessions", "forget", "--yes").stderr
    assert "no session 'user'" in longhold("sessions", "forget", "user", "--yes").stderr
    longhold("sessions", "forget", "user-7", "--words", NEEDLE, "--yes")
    assert len(hits(None, home())) == 1
    done = longhold("sessions", "forget", "user-7", "user-8", "--yes")
    assert done.stdout == "Erased: user-7, user-8.\n"
    assert hits(None, home()) == []
    assert "tenants" in longhold("sessions", "forget", "--tenant", "x", "--yes").stderr
