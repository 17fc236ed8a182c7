"""Memory over HTTP, with the official SDK: what an extraction reads of its parent's prefix, and costs."""

import asyncio
import subprocess

import anthropic
import pytest

from holdfast.agent.build import build_agent
from holdfast.log.entries import CacheBroke, Forked, Recalled, Remembered, Replied
from holdfast.models.anthropic import AnthropicModel
from holdfast.simulator import running
from holdfast.simulator.brains.digest import DigestBrain

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


async def talk(url, project, prompts):
    """Have a chat, letting what runs beside it finish after each turn; give the log."""
    async with anthropic.AsyncAnthropic(base_url=url, api_key="any", max_retries=0) as client:
        model = AnthropicModel("claude-sonnet-5-5", client=client)
        agent = await build_agent(model, directory=project, source="chat", mode="bypass")
        for prompt in prompts:
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
    """After every turn of a chat, in every answer of the fork."""
    with running(DigestBrain()) as simulator:
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
    """Both are kept, and a third recalls what either learnt."""
    with running(DigestBrain()) as simulator:
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
