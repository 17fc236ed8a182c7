"""Memories that an agent writes: stored immediately with evidence, or put into the inbox."""

from dataclasses import replace

import pytest

from core.memory.forks import creating
from longhold.core.memory.inbox import WAITS, ConsentedMemories, Inbox
from longhold.core.memory.memory_tool import memory_tool
from longhold.core.memory.provenance import Provenance
from longhold.core.memory.store import MemoryStore
from longhold.core.settings import MemorySettings, load_settings
from longhold.core.tools.context import ToolContext
from longhold.errors import ConfigError


@pytest.fixture
def call(tmp_path, store):
    """Call the memory tool of a session."""

    async def run(given, is_outside=False, consent="write"):
        store.limits = replace(store.limits, consent=consent)
        pages = ConsentedMemories(
            open=lambda: store,
            by="agent",
            provenance=lambda: Provenance(session="01J", message=3, repository=tmp_path),
            is_outside=lambda: is_outside,
        )
        tool_context = ToolContext(root=tmp_path, home=tmp_path, scratch=tmp_path)
        return await memory_tool(pages).run(given, tool_context)

    return run


CREATE = creating("a.md", "a fact")[1]


async def test_it_is_written_at_once_with_its_evidence(store, call):
    assert (await call(CREATE)).content == "/memories/a.md was created."
    assert store.memory("a.md").evidence == ("01J#3",)
    assert store.history.log()[0].by == "agent"


@pytest.mark.parametrize("how", [{"is_outside": True}, {"consent": "ask"}])
async def test_where_the_user_is_asked_the_model_reads_that_it_waits(store, call, how):
    assert (await call(CREATE, **how)).content == WAITS.format(command="longhold memory")
    assert store.versions() == {}
    assert [one.file for one in Inbox(store).waiting()] == ["a.md"]


async def test_what_waits_is_a_text_and_never_a_removal(store, call):
    await call(CREATE)
    done = await call({"command": "delete", "path": "/memories/a.md"}, is_outside=True)
    assert done.is_error and "longhold memory forget" in done.content
    assert list(store.versions()) == ["a.md"]


async def test_why_something_goes_is_kept_with_it(store, call):
    await call(CREATE)
    await call({"command": "delete", "path": "/memories/a.md", "why": "it was a mistake"})
    assert store.history.tombstones()[0].reason == "it was a mistake"


async def test_a_session_that_writes_nothing_makes_no_store(tmp_path):
    opened = []

    def open_it():
        opened.append(True)
        return MemoryStore(tmp_path / "m", MemorySettings())

    ConsentedMemories(
        open=open_it,
        by="agent",
        provenance=lambda: Provenance(session="s", message=1, repository=tmp_path),
        is_outside=lambda: False,
    )
    assert (opened, (tmp_path / "m").exists()) == ([], False)


@pytest.mark.parametrize(
    "line",
    [
        '[memory]\nconsent = "write"',
        '[memory]\nextract = "always"',
        '[memory]\nrecall_model = "dear"',
        '[dream]\nby = "model"',
    ],
)
def test_a_project_neither_loosens_consent_nor_spends(tmp_path, line):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".longhold").mkdir()
    (tmp_path / ".longhold" / "settings.toml").write_text(line)
    with pytest.raises(ConfigError, match="can only be set by the user"):
        load_settings(tmp_path)
