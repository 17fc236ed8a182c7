"""The user decides: removed memories stay removed, and models remove little."""

from itertools import count

import pytest

from core.memory.forks import PREFIX, ScriptedFork, creating
from longhold.core.log.entries import Said
from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.dream import Dreamer, dream_with
from longhold.core.memory.extract import Extraction, NewMessages
from longhold.core.memory.inbox import Inbox
from longhold.core.memory.memory import Memory
from longhold.core.memory.memory_tool import permit_memories
from longhold.core.messages import Text
from longhold.core.settings import DreamSettings
from longhold.core.tools.context import ToolContext
from longhold.core.turn.round import Allowed

TABS = creating("tabs.md", "the user prefers tabs", "feedback", "Tabs, never spaces.\n")
NEW = NewMessages(cursor=9, messages=4, asked=7)


async def let_pass(use, tool):
    return Allowed(input=use.input)


@pytest.fixture
def fork(tmp_path):
    place = ToolContext(root=tmp_path, home=tmp_path, scratch=tmp_path)
    return lambda *calls, **more: ScriptedFork(place, list(calls), **more)


@pytest.fixture
def dreamt(store, tmp_path, fork):
    """Dream with these calls; gives the fork and the report."""

    async def run(*calls, **more):
        made = fork(*calls, **more)
        dreamer = Dreamer(ask=made, permit=permit_memories(let_pass))
        return made, await dream_with(dreamer, store, DreamSettings(), repository=tmp_path)

    return run


@pytest.fixture
def searched(store, tmp_path, fork):
    """Extract with these calls; gives the fork and what the user is told."""

    runs = count()

    async def run(*calls, said=()):
        made, told = fork(*calls), []
        extraction = Extraction(
            open=lambda: store,
            session=f"s{next(runs)}",
            repository=tmp_path,
            ask=made,
            permit=permit_memories(let_pass),
            is_outside=lambda: False,
            leave=lambda entry: None,
            tell=told.append,
        )
        await extraction.run(NEW, PREFIX, said)
        return made, told

    return run


def forget(store, file):
    change = MemoryChange(file=file, text=None, expected=store.version(file), reason="not wanted")
    store.commit([change], by="person", why="forgotten")


def undo(store, _file):
    store.undo()


@pytest.mark.parametrize("remove", [undo, forget])
@pytest.mark.parametrize("how", ["dreamt", "searched"])
async def test_what_a_person_removed_is_not_written_again(store, request, remove, how):
    run = request.getfixturevalue(how)
    await run(TABS)
    remove(store, "tabs.md")
    other = creating("indent.md", "the user prefers tabs", "feedback", "Tabs, never spaces.\n")
    fork, _ = await run(TABS, other)
    assert list(store.versions()) == []
    assert all("the user removed this memory" in said for said in fork.results)
    assert "tabs.md: the user prefers tabs" in fork.requests[0].say


async def test_what_a_person_declined_is_not_written_either(store, searched):
    text = TABS[1]["file_text"]
    box = Inbox(store)
    [one] = box.propose(
        [MemoryChange(file="tabs.md", text=text, expected="")], by="extraction", why="x"
    )
    box.decline(one.id)
    await searched(TABS)
    assert list(store.versions()) == []


async def test_what_the_user_says_again_is_remembered_again(store, searched, clock):
    await searched(TABS)
    forget(store, "tabs.md")
    before = Said(n=7, at=clock.at - 5, content=(Text(text="I prefer tabs, never spaces"),))
    await searched(TABS, said=(before,))
    assert list(store.versions()) == []
    clock.at += 60
    again = Said(n=8, at=clock.at, content=(Text(text="I do prefer tabs and never spaces"),))
    await searched(TABS, said=(again,))
    assert list(store.versions()) == ["tabs.md"]


async def test_what_was_brought_back_by_name_is_left_alone(store, write, dreamt):
    write(*(Memory(file=f"m{i}.md", name="m", description=f"fact {i}", body="x") for i in range(4)))
    delete = "memory", {"command": "delete", "path": "/memories/m0.md", "why": "it is old"}
    await dreamt(delete)
    store.bring_back("m0.md")
    fork, _ = await dreamt(delete)
    assert "the user undid a change of it" in fork.results[0]
    assert "m0.md" in store.versions()


def delete(number, why="it is over"):
    return "memory", {"command": "delete", "path": f"/memories/m{number}.md", "why": why}


def facts(number):
    words = ["ale", "bay", "cog", "dhow", "eel", "fog", "gull", "hull", "isle", "jib"]
    return [
        Memory(
            file=f"m{i}.md", name="m", description=f"fact {words[i]}", body=f"harbour {words[i]}"
        )
        for i in range(number)
    ]


async def test_a_search_may_delete_as_little_as_a_dream_and_says_so(store, write, searched):
    write(*facts(10))
    fork, [line] = await searched(*(delete(i) for i in range(10)), delete(9, why=""))
    assert len(store.versions()) == 7
    assert line.startswith("forgot: m0.md, m1.md, m2.md (undo")
    assert "say `why`" in fork.results[-1] or "may be removed" in fork.results[-1]


async def test_the_line_says_what_was_remembered_changed_and_forgotten(store, write, searched):
    write(*facts(4))
    change = {
        "command": "insert",
        "path": "/memories/m1.md",
        "insert_line": 0,
        "insert_text": "yes",
    }
    _, [line] = await searched(TABS, ("memory", change), delete(0))
    assert line.startswith("remembered: tabs.md; changed: m1.md; forgot: m0.md")


async def test_a_small_store_is_not_emptied(store, write, dreamt):
    write(*facts(3))
    await dreamt(*(delete(i) for i in range(3)))
    assert list(store.versions()) == ["m2.md"]


async def test_a_rewrite_that_loses_most_of_a_memory_counts_as_a_removal(store, write, dreamt):
    write(*facts(10))
    gut = [
        (
            "memory",
            {
                "command": "str_replace",
                "path": f"/memories/{one.file}",
                "old_str": one.text[one.text.index("description:") :].split("\n")[0],
                "new_str": "description: .",
            },
        )
        for one in facts(10)
    ]
    empty = [
        (
            "memory",
            {
                "command": "str_replace",
                "path": f"/memories/{one.file}",
                "old_str": one.body,
                "new_str": ".",
            },
        )
        for one in facts(10)
    ]
    await dreamt(*gut, *empty)
    kept = [one.file for one in store.memories() if "harbour" in one.body]
    assert len(kept) == 7


async def test_a_dream_that_ran_out_of_turns_or_money_says_so(store, write, dreamt):
    write(*facts(2))
    _, report = await dreamt(reason="max_turns")
    assert report.line == "it ran out of turns, nothing was changed"
    _, report = await dreamt(TABS, reason="max_usd")
    assert report.line.startswith("it used up its share (memory.share), 1 written by the model")
