"""A model's dream: one transaction with the same checks, its last steps, and its failures."""

import pytest

from core.memory.forks import ScriptedFork, creating
from longhold.core.memory.dream import Dreamer, NotDreamt, dream_with
from longhold.core.memory.memory import Memory
from longhold.core.memory.memory_tool import permit_memories
from longhold.core.messages import Text, ToolUse, Usage
from longhold.core.models.protocol import Finished, Reply
from longhold.core.settings import DreamSettings
from longhold.core.tools.context import ToolContext
from longhold.core.turn.background import JobProgress
from longhold.core.turn.round import ToolBegan, let_pass


@pytest.fixture
def dreaming(store, tmp_path):
    """Let a fork with these calls dream."""

    def make(*calls, reason="completed", is_trial=False, **more):
        place = ToolContext(root=tmp_path, home=tmp_path, scratch=tmp_path)
        fork = ScriptedFork(place, list(calls), reason=reason)
        dreamer = Dreamer(
            ask=fork, permit=permit_memories(let_pass), logs=[tmp_path / "s.jsonl"], **more
        )
        settings = DreamSettings()
        return fork, dream_with(dreamer, store, settings, repository=tmp_path, is_trial=is_trial)

    return make


def fact(file, body, **more):
    return Memory(file=file, name=file, description=f"about {body}", body=f"{body}\n", **more)


def delete(file, why="said better elsewhere"):
    return "memory", {"command": "delete", "path": f"/memories/{file}", "why": why}


async def test_a_dream_is_one_commit_that_can_be_undone(store, write, dreaming):
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


async def test_it_is_asked_for_its_phases_within_the_limits(
    store, write, dreaming, tmp_path, clock
):
    write(*(fact(f"f{i}.md", f"fact number {i}") for i in range(20)))
    fork, running = dreaming(since=clock.at - 86_400 * 3, daybook="s.jsonl:\n- #3 No, on Fridays")
    await running
    [request] = fork.requests
    assert (request.source, request.turns, request.writes_cache) == ("dream", 24, True)
    phases = ("1. Orient", "2. Gather", "3. Check against the code", "4. Consolidate", "5. Prune")
    for part in (*phases, "f7.md", str(tmp_path), "listed by session", "- #3 No, on Fridays"):
        assert part in request.say
    assert "at most 6 memories" in request.say


@pytest.mark.parametrize("reason", ["aborted", "refused", "cut_off"])
async def test_one_that_does_not_end_never_happened(store, write, dreaming, reason):
    write(fact("a.md", "one"))
    _, running = dreaming(delete("a.md"), reason=reason)
    with pytest.raises(NotDreamt):
        await running
    assert list(store.versions()) == ["a.md"]


async def test_one_that_runs_out_of_turns_keeps_what_it_wrote_and_removes_nothing(
    store, write, dreaming
):
    write(fact("a.md", "one"))
    _, running = dreaming(creating("b.md", "two"), delete("a.md"), reason="max_turns")
    report = await running
    assert list(store.versions()) == ["a.md", "b.md"]
    assert "ran out of turns" in report.dropped["a.md"]


async def test_one_that_is_cut_short_still_replaces_what_another_memory_says(
    store, write, dreaming
):
    """Otherwise both stay, and the user who forgets one of them still has the other."""
    write(fact("a.md", "the port of the harbour is 8080"), fact("b.md", "cranes"))
    whole = creating(
        "c.md", "about the port of the harbour is 8080", body="the port of the harbour is 8080\n"
    )
    moved, lost = delete("a.md", why="now in c.md"), delete("b.md", why="now in c.md")
    _, running = dreaming(whole, moved, lost, reason="max_usd")
    report = await running
    assert list(store.versions()) == ["b.md", "c.md"]
    assert list(report.dropped) == ["b.md"]


async def test_a_memory_can_be_pruned_and_its_tombstone_keeps_the_evidence(store, write, dreaming):
    write(fact("a.md", "one", evidence=("01J#3",)), fact("b.md", "two"))
    _, running = dreaming(delete("a.md", why="the task is over"))
    report = await running
    assert (list(store.versions()), report.merged, report.dropped) == (["b.md"], {"a.md": ""}, {})
    [stone] = store.history.tombstones()
    assert (stone.by, stone.reason, stone.evidence) == ("dream", "the task is over", ("01J#3",))
    store.bring_back("a.md")
    assert store.memory("a.md").evidence == ("01J#3",)


async def test_one_that_removes_too_much_is_told_and_the_rest_is_kept(store, write, dreaming):
    write(*(fact(f"f{i}.md", f"fact number {i} of its own") for i in range(6)))
    fork, running = dreaming(*(delete(f"f{i}.md") for i in range(5)), creating("g.md", "new"))
    await running
    assert list(store.versions()) == ["f3.md", "f4.md", "f5.md", "g.md"]
    assert ["only 3 of 6 memories may be removed" in said for said in fork.results] == [
        False, False, False, True, True, False,
    ]  # fmt: skip


async def test_a_removal_without_a_reason_is_refused(store, write, dreaming):
    write(fact("a.md", "one"))
    fork, running = dreaming(delete("a.md", why=""))
    await running
    assert "say `why`" in fork.results[0]
    assert list(store.versions()) == ["a.md"]


async def test_what_somebody_else_changed_meanwhile_is_left_out_and_the_rest_kept(
    store, write, dreaming
):
    write(fact("a.md", "one"), fact("b.md", "two"))
    theirs = fact("a.md", "one, as somebody else put it")

    def change_elsewhere():
        write(theirs)

    def insert(file):
        given = {"command": "insert", "insert_line": 0, "insert_text": "three"}
        return "memory", given | {"path": f"/memories/{file}"}

    _, running = dreaming(insert("b.md"), insert("a.md"), change_elsewhere)
    report = await running
    assert report.dropped == {"a.md": "it was changed elsewhere meanwhile"}
    assert store.memory("a.md").body == theirs.body
    assert store.memory("b.md").body.startswith("three")


async def test_what_the_user_undid_is_refused_to_the_model_too(store, write, dreaming):
    write(fact("a.md", "one"), fact("b.md", "two"))
    _, running = dreaming(delete("a.md"))
    await running
    store.undo()
    fork, running = dreaming(delete("a.md"))
    await running
    assert "the user undid" in fork.results[0]
    assert list(store.versions()) == ["a.md", "b.md"]


async def test_evidence_that_a_model_drops_is_given_back(store, write, dreaming):
    write(fact("a.md", "one", evidence=("01J#3",)))
    _, running = dreaming(delete("a.md", why="written anew"), creating("a.md", "one, better"))
    await running
    assert store.memory("a.md").evidence == ("01J#3",)


async def test_what_replaces_others_takes_over_evidence_and_links(store, write, dreaming):
    write(
        fact("a.md", "one", evidence=("s#1",)),
        fact("b.md", "uno", evidence=("s#2",)),
        fact("c.md", "eins, see [it](a.md)", evidence=("s#3",)),
    )
    _, running = dreaming(
        delete("a.md", why="merged into c.md"), delete("b.md", why="see c.md, which says it")
    )
    report = await running
    assert report.merged == {"a.md": "c.md", "b.md": "c.md"}
    kept = store.memory("c.md")
    assert set(kept.evidence) == {"s#1", "s#2", "s#3"}
    assert "[it](c.md)" in kept.body


async def test_links_it_leaves_dangling_are_mended(store, write, dreaming):
    write(fact("a.md", "see [b](b.md)"), fact("b.md", "two"))
    _, running = dreaming(delete("b.md"))
    report = await running
    assert report.repaired == ("a.md",)
    assert "](b.md)" not in store.memory("a.md").body


async def test_a_trial_changes_nothing(store, write, dreaming):
    write(fact("a.md", "one"))
    _, running = dreaming(creating("b.md", "two"), is_trial=True)
    report = await running
    assert report.commit is None and "two" in report.diff
    assert list(store.versions()) == ["a.md"]


def test_the_last_steps_are_kept_for_whoever_looks_on():
    progress = JobProgress()
    see, steps = progress.see, progress.steps
    look = {"command": "search", "query": "words"}
    see(ToolBegan(use=ToolUse(id="t", name="memory", input=look)))
    assert progress.phase == "reading"  # a search changes nothing
    for i in range(40):
        see(ToolBegan(use=ToolUse(id="t", name="Grep", input={"pattern": f"word {i}"})))
    assert (progress.phase, len(steps), steps[-1]) == ("reading", 30, "Grep word 39")
    gone = {"command": "delete", "path": "/memories/x.md"}
    see(ToolBegan(use=ToolUse(id="t", name="memory", input=gone)))
    reply = Reply(
        response_id="r",
        model="m",
        content=(Text(text="Now\nthe index."),),
        stop_reason="end_turn",
        usage=Usage(),
    )
    see(Finished(reply=reply))
    assert (progress.phase, list(steps)[-2:]) == (
        "updating",
        ["memory delete /memories/x.md", "Now the index."],
    )
    assert (progress.answers, progress.calls) == (1, 42)
