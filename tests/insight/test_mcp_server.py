"""`longhold mcp` as a real process, called by the protocol's official client."""

import json
import os
import sys
from contextlib import asynccontextmanager

import pytest

from lazy import LazyModule, needs
from longhold import Session
from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.paths import memory_directory
from longhold.core.memory.store import MemoryStore
from longhold.core.settings import home

needs("mcp")
mcp, stdio = LazyModule("mcp"), LazyModule("mcp.client.stdio")

MEMORY = "---\nname: deploys\ndescription: How we deploy\ntype: project\n---\nOn Fridays never.\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Stand in a project of its own."""
    directory = tmp_path / "project"
    directory.mkdir()
    monkeypatch.chdir(directory)
    return directory


@pytest.fixture
def session(project):
    with Session.open(id="books", model="claude-sonnet-4-6", directory=project) as session:
        session.user("The invoice of the bakery is number 4711.")
        yield session


@asynccontextmanager
async def asked(*words):
    """Start the server as a client does, and return how to call its tools."""
    command = stdio.StdioServerParameters(
        command=sys.executable, args=["-m", "longhold", "mcp", *words], env=dict(os.environ)
    )
    async with mcp.Client(stdio.stdio_client(command)) as client:

        async def call(name, **given):
            found = await client.call_tool(name, given)
            return "".join(block.text for block in found.content), found.is_error

        call.tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        yield call


async def test_a_client_searches_and_opens_a_session_that_is_running(session):
    async with asked() as call:
        found, failed = await call("search_history", query="bakery")
        assert not failed
        assert "1 records match" in found
        session.user("The bakery paid in cash.")
        found, _ = await call("search_history", query="bakery")
        assert "2 records match" in found
        text, failed = await call("expand", id=f"#{session.view.history[-1].n}")
        assert "The bakery paid in cash." in text
        assert not failed
        notes, failed = await call("notes")
        assert "The invoice of the bakery" in notes
        assert not failed


async def test_by_default_nothing_can_be_changed(session, project):
    place = memory_directory(home(), project)
    with MemoryStore(place) as store:
        store.commit(
            [MemoryChange(file="deploys.md", text=MEMORY, expected="")], by="person", why=""
        )
    async with asked("--session", "books") as call:
        assert set(call.tools) == {"search_history", "expand", "notes", "memory"}
        assert all(tool.annotations.read_only_hint for tool in call.tools.values())
        found, failed = await call("memory", command="search", query="deploy")
        assert "/memories/deploys.md: How we deploy" in found
        assert not failed
        text, _ = await call("memory", command="view", path="/memories/deploys.md")
        assert "On Fridays never." in text
        _, failed = await call("memory", command="delete", path="/memories/deploys.md")
        assert failed
    with MemoryStore(place) as store:
        assert "deploys.md" in store.versions()


async def test_a_project_without_a_session_says_so_and_the_server_goes_on(project):
    async with asked() as call:
        said, failed = await call("search_history", query="bakery")
        assert failed
        assert "has no session" in said
        with Session.open(model="claude-sonnet-4-6", directory=project) as session:
            session.user("The bakery is new.")
            found, failed = await call("search_history", query="bakery")
        assert "1 records match" in found
        assert not failed


async def test_what_cannot_be_opened_is_an_answer_of_the_tool(session):
    async with asked() as call:
        assert (await call("expand", id="#999"))[1]
        assert (await call("expand", number=3))[1]
        assert not (await call("notes"))[1]


async def test_the_newest_session_may_be_another_agent_s(project, tmp_path, monkeypatch):
    place = tmp_path / "claude" / "projects" / "p" / "s.jsonl"
    place.parent.mkdir(parents=True)
    said = {"role": "user", "content": "The invoice of the bakery is number 4711."}
    record = {"type": "user", "uuid": "u", "sessionId": "s", "cwd": str(project), "message": said}
    place.write_text(json.dumps(record) + "\n")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    async with asked() as call:
        found, failed = await call("search_history", query="bakery")
        assert not failed
        assert "4711" in found
        notes, failed = await call("notes")
        assert not failed
        assert "bakery" in notes
