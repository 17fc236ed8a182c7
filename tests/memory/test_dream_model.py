"""A model's dream: one transaction under the same checks, its last steps, and what throws it away."""

import pytest

from holdfast.memory.dream import Dreamer, NotDreamt, Steps, dream_with, observer
from holdfast.memory.errors import MemoryRefused
from holdfast.memory.memory import Memory
from holdfast.memory.tool import memories_only
from holdfast.messages import Text, ToolUse, Usage
from holdfast.models.protocol import Finished, Reply
from holdfast.settings import DreamSettings
from holdfast.tools.context import ToolContext
from holdfast.turn.round import ToolBegan, let_pass
from memory.forks import ScriptedFork, creating


@pytest.fixture
def dreaming(store, tmp_path):
    """Let a fork with these calls dream."""

    def make(*calls, reason="completed", is_trial=False, **more):
        place = ToolContext(root=tmp_path, home=tmp_path, scratch=tmp_path)
        fork = ScriptedFork(place, list(calls), reason=reason)
        dreamer = Dreamer(ask=fork, permit=memories_only(let_pass), logs=tmp_path / "logs", **more)
        settings = DreamSettings()
        return fork, dream_with(dreamer, store, settings, repository=tmp_path, is_trial=is_trial)

    return make


def fact(file, body, **more):
    return Memory(file=file, name=file, description=f"about {body}", body=f"{body}\n", **more)


def delete(file, why="said better elsewhere"):
    return "memory", {"command": "delete", "path": f"/memories/{file}", "why": why}


async def test_a_dream_is_one_commit_that_can_be_undone(store, write, dreaming):
    """What it wrote and removed happens at once; undo brings all of it back."""
    write(fact("a.md", "the board is in Linear"), fact("b.md", "we use Linear as our board"))
    before = {file: store.read(file) for file in store.versions()}
    _, running = dreaming(
        creating("board.md", "tickets are in Linear"), delete("a.md"), delete("b.md")
    )
    report = await running
    assert list(store.versions()) == ["board.md"]
    assert (report.commit.by, report.rewritten) == ("dream", 1)
    assert set(report.merged) == {"a.md", "b.md"}
    assert "1 written by the model, 2 merged or removed" in report.line
    assert "+description: tickets are in Linear" in report.diff
    store.undo()
    assert {file: store.read(file) for file in store.versions()} == before


async def test_it_is_asked_for_four_phases_within_the_limits(
    store, write, dreaming, tmp_path, clock
):
    """With the index, the place of the logs and what may be removed."""
    write(*(fact(f"f{i}.md", f"fact number {i}") for i in range(20)))
    fork, running = dreaming(since=clock.at - 86_400 * 3, touched=7)
    await running
    [request] = fork.requests
    assert (request.source, request.turns, request.writes_cache) == ("dream", 24, True)
    for part in ("1. Orient", "2. Gather", "3. Consolidate", "4. Prune", "f7.md", str(tmp_path)):
        assert part in request.say
    assert "7 of them" in request.say and "at most 6 memories" in request.say


@pytest.mark.parametrize("reason", ["max_turns", "aborted", "refused", "cut_off"])
async def test_one_that_does_not_end_never_happened(store, write, dreaming, reason):
    """Half a dream is none."""
    write(fact("a.md", "one"))
    _, running = dreaming(delete("a.md"), reason=reason)
    with pytest.raises(NotDreamt):
        await running
    assert list(store.versions()) == ["a.md"]


async def test_one_that_removes_too_much_is_thrown_away(store, write, dreaming):
    """The same checks as without a model."""
    write(*(fact(f"f{i}.md", f"fact number {i} of its own") for i in range(6)))
    _, running = dreaming(*(delete(f"f{i}.md") for i in range(5)))
    with pytest.raises(MemoryRefused, match="more than 3"):
        await running
    assert len(store.versions()) == 6


async def test_one_that_loses_evidence_is_thrown_away(store, write, dreaming):
    """What a memory rested on is named by the one that stands for it."""
    write(fact("a.md", "one", evidence=("01J#3",)), fact("b.md", "two"))
    _, running = dreaming(delete("a.md"))
    with pytest.raises(MemoryRefused, match="evidence is lost: 01J#3"):
        await running


async def test_links_it_leaves_dangling_are_mended(store, write, dreaming):
    """The safe tidying comes after the model."""
    write(fact("a.md", "see [b](b.md)"), fact("b.md", "two"))
    _, running = dreaming(delete("b.md"))
    report = await running
    assert report.unlinked == ("a.md",)
    assert "](b.md)" not in store.memory("a.md").body


async def test_a_trial_changes_nothing(store, write, dreaming):
    """It says what it would do."""
    write(fact("a.md", "one"))
    _, running = dreaming(creating("b.md", "two"), is_trial=True)
    report = await running
    assert report.commit is None and "two" in report.diff
    assert list(store.versions()) == ["a.md"]


def test_the_last_steps_are_kept_for_whoever_looks_on():
    """Thirty of them, and whether it writes already."""
    steps = Steps(most=30)
    see = observer(steps)
    for i in range(40):
        see(ToolBegan(use=ToolUse(id="t", name="Grep", input={"pattern": f"word {i}"})))
    assert (steps.phase, len(steps.done), steps.done[-1]) == ("gathering", 30, "Grep word 39")
    see(ToolBegan(use=ToolUse(id="t", name="memory", input={"command": "delete", "path": "/x"})))
    reply = Reply(
        response_id="r",
        model="m",
        content=(Text(text="Now\nthe index."),),
        stop_reason="end_turn",
        usage=Usage(),
    )
    see(Finished(reply=reply))
    assert (steps.phase, list(steps.done)[-2:]) == (
        "updating",
        ["memory delete /x", "Now the index."],
    )
