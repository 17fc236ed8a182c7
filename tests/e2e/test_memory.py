"""Memory over HTTP with the official SDK: cache reads and cost of an extraction."""

import asyncio
import subprocess
from dataclasses import replace

import anthropic
import pytest

from casting import project_memory
from funds import fund
from longhold.agent.build import build_agent
from longhold.core.log.entries import (
    CacheBroke,
    Compacted,
    Dreamt,
    Forked,
    Recalled,
    Remembered,
    Replied,
)
from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.memory import Memory
from longhold.core.models.anthropic import AnthropicModel
from longhold.core.settings import DreamSettings, MemorySettings, Settings
from longhold.simulator import BrainAnswer, run_simulator
from longhold.simulator.brains import text, tool_use
from longhold.simulator.brains.digest import DigestBrain

SHARE = 0.99
"""At least this much of what the conversation left must be read."""
TALK = (
    "Remember that releases go out on Tuesday nights.",
    "Read notes.md.",
    "Never push to main without a review. Then read notes.md.",
    "When do releases go out on Tuesday?",
)


@pytest.fixture
def project(tmp_path):
    """A repository with something to read."""
    place = tmp_path / "project"
    place.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=place, check=True)
    (place / "notes.md").write_text("the mast is of pine\n" * 200)
    return place


COMPACT = "/compact"
"""In a chat: not said to the model."""


async def talk(url, project, prompts, settings=None):
    """Have a chat in a project with a past, letting what runs beside it finish after each turn; give the log."""
    fund(project, 20.0)
    async with anthropic.AsyncAnthropic(base_url=url, api_key="any", max_retries=0) as client:
        model = AnthropicModel("claude-sonnet-5-5", client=client)
        agent = await build_agent(
            model,
            directory=project,
            source="chat",
            mode="bypass",
            settings=settings or Settings(),
        )
        for prompt in prompts:
            if prompt == COMPACT:
                assert await agent.compact()
                continue
            async for _ in agent.run(prompt):
                pass
            await agent.background.drain(10.0)
        await agent.close()
    return agent.session.view.history


def shares(history):
    """How much each call of an extraction read of what the call before it had left."""
    found, left = [], 0
    for entry in history:
        if isinstance(entry, Replied) and entry.usage:
            left = entry.usage.cache_read_tokens + entry.usage.cache_write_tokens
        elif isinstance(entry, Forked) and entry.source == "memory":
            found.append(entry.usage.cache_read_tokens / left)
    return found


async def test_extraction_reads_its_parents_prefix_and_leaves_nothing_behind(project):
    with run_simulator(DigestBrain()) as simulator:
        history = await talk(simulator.url, project, TALK)
    found = shares(history)
    assert len(found) >= len(TALK) and min(found) >= SHARE
    forks = [e for e in history if isinstance(e, Forked) and e.source == "memory"]
    assert all(fork.usage.cache_write_tokens == 0 for fork in forks)
    assert not [e for e in history if isinstance(e, CacheBroke)]
    names = [name for e in history if isinstance(e, Remembered) for name in e.names]
    assert names == [
        "releases-go-out-on-tuesday.md",
        "push-to-main-without-a.md",
    ]


async def test_two_sessions_of_a_project_learn_at_once(project):
    with run_simulator(DigestBrain()) as simulator:
        await asyncio.gather(
            talk(simulator.url, project, TALK[:1]), talk(simulator.url, project, TALK[2:3])
        )
        third = await talk(
            simulator.url,
            project,
            ["May I push to main without a review?", "When do releases go out on Tuesday?"],
        )
    recalled = [e.names for e in third if isinstance(e, Recalled)]
    assert recalled == [("push-to-main-without-a.md",), ("releases-go-out-on-tuesday.md",)]


async def test_what_left_the_view_is_recalled_again(project):
    asked = "When do releases go out on Tuesday?"
    with run_simulator(DigestBrain()) as simulator:
        await talk(simulator.url, project, TALK[:1])
        history = await talk(simulator.url, project, [asked, *TALK[1:2] * 4, asked, COMPACT, asked])
    order = [type(e).__name__ for e in history if isinstance(e, Recalled | Compacted)]
    assert order == ["Recalled", "Compacted", "Recalled"]


class DreamingBrain:
    """Talks; asked to dream it prunes, merges and improves, and also tries what is not allowed."""

    def __init__(self, calls):
        self.calls = calls
        self.results = []

    def answer(self, request):
        last = request.messages[-1]["content"]
        if any("You now put the memory" in str(block.get("text")) for block in last):
            return BrainAnswer(blocks=tuple(tool_use("memory", given) for given in self.calls))
        self.results += [str(b["content"]) for b in last if b["type"] == "tool_result"]
        return BrainAnswer(blocks=(text("All in order."),))


async def test_a_dream_prunes_and_keeps_its_good_part(project):
    """Over the wire: what is refused is told to the model, the rest is one commit.

    It reads its parent's prefix, and what it adds itself is cached for five minutes only.
    """
    facts = {"over.md": "the release of May", "board.md": "tickets are in Linear", "a.md": "Ann"}
    with project_memory(project) as store:
        memories = [
            Memory(file=file, name=file, description=said, evidence=(f"s#{file}",))
            for file, said in facts.items()
        ]
        changes = [MemoryChange(file=m.file, text=m.text, expected="") for m in memories]
        store.commit(changes, by="extraction", why="learnt")
    edit = {"command": "insert", "path": "/memories/board.md", "insert_line": 0}
    brain = DreamingBrain(
        [
            {"command": "delete", "path": "/memories/over.md", "why": "that release is out"},
            edit | {"insert_text": "Everyone has an account."},
            {"command": "delete", "path": "/memories/a.md", "why": "she left"},
        ]
    )
    dreams = replace(DreamSettings(), sessions=0, after_hours=0.0, removed_floor=1)
    settings = replace(Settings(), dream=dreams, memory=MemorySettings(extract="off"))
    with run_simulator(brain) as simulator:
        history = await talk(simulator.url, project, ["Hello."], settings)
    assert ["only 1 of 3 memories may be removed" in said for said in brain.results] == [
        False,
        False,
        True,
    ]
    [dreamt] = [e for e in history if isinstance(e, Dreamt)]
    assert (dreamt.by, dreamt.removed, dreamt.names) == ("model", 1, ("board.md", "over.md"))
    with project_memory(project) as store:
        assert list(store.versions()) == ["a.md", "board.md"]
        assert "Everyone has an account." in store.read("board.md")
        [stone] = store.history.tombstones()
    assert (stone.reason, stone.evidence) == ("that release is out", ("s#over.md",))
    [answer] = [e.usage for e in history if isinstance(e, Replied)]
    first, second = [e.usage for e in history if isinstance(e, Forked) and e.source == "dream"]
    left = answer.cache_read_tokens + answer.cache_write_tokens
    assert answer.written_1h_tokens > 0 and first.cache_read_tokens >= SHARE * left
    assert second.cache_write_tokens > 0 == second.written_1h_tokens
    assert not [e for e in history if isinstance(e, CacheBroke)]
