"""Recall before a call: added when ready, never waited for, never twice."""

import asyncio
from weakref import WeakKeyDictionary

import pytest

from longhold.core.log.entries import Failed, Recalled, Said
from longhold.core.memory.recall import RecallStage, Recollection
from longhold.core.messages import Text, Usage, text_of
from longhold.core.models.protocol import Reply
from longhold.errors import ModelUnavailable
from longhold.session.session import Session

FOUND = Recollection(names=("a.md",), text="<reminder>a</reminder>", bytes=22)


STAGES = WeakKeyDictionary()
"""The one stage of each session."""


@pytest.fixture
def session(tmp_path):
    """A session without other stages."""
    with Session.open(model="claude-opus-5-5", system="s", directory=tmp_path) as opened:
        yield opened


def staged(session, recall, **more):
    stage = RecallStage(recall, **more)
    STAGES[session] = stage
    return stage


async def prepare(session):
    return await session._engine.prepare((STAGES[session],), max_output_tokens=100)


def hidden(session):
    history = session.view.history
    return [text_of(e.content) for e in history if isinstance(e, Said) and e.hidden]


def answered(session, text="ok"):
    session._engine.record_reply(
        Reply(
            response_id=text, model="claude-opus-5-5", content=(Text(text=text),),
            stop_reason="end_turn", usage=Usage(input_tokens=1),
        )
    )  # fmt: skip


async def test_what_is_found_at_once_stands_with_the_question(session):
    asked = []

    async def by_words(words):
        asked.append(words)
        return FOUND

    staged(session, by_words)
    session.user("how do we deploy?")
    await prepare(session)
    assert (asked, hidden(session)) == (["how do we deploy?"], [FOUND.text])
    [entry] = [e for e in session.view.history if isinstance(e, Recalled)]
    assert (entry.names, entry.bytes) == (("a.md",), 22)
    assert session.view.item_of(entry.said) is not None


async def test_a_question_is_asked_once(session):
    asked = []

    async def nothing(words):
        asked.append(words)

    staged(session, nothing)
    session.user("one")
    await prepare(session)
    await prepare(session)
    answered(session)
    session.user("two")
    await prepare(session)
    assert asked == ["one", "two"]


async def test_what_is_slow_is_said_before_a_later_call(session):
    gate = asyncio.Event()

    async def by_model(words):
        await gate.wait()
        return FOUND

    staged(session, by_model)
    session.user("how do we deploy?")
    await prepare(session)
    assert hidden(session) == []
    gate.set()
    await asyncio.sleep(0)
    await prepare(session)
    assert hidden(session) == [FOUND.text]


async def test_a_models_choice_is_said_when_it_comes_even_with_the_next_question(session):
    gates = {"one": asyncio.Event(), "two": asyncio.Event()}

    async def by_words(words):
        return Recollection(names=(words,), text=f"words for {words}", bytes=3)

    async def by_model(words):
        await gates[words].wait()
        return [f"{words}.md"]

    async def show(names):
        return Recollection(names=tuple(names), text=f"chosen: {names[0]}", bytes=3)

    staged(session, by_words, choose=by_model, show=show)
    session.user("one")
    await prepare(session)
    answered(session)
    assert hidden(session) == ["words for one"]
    gates["one"].set()
    await asyncio.sleep(0.01)
    session.user("two")
    await prepare(session)
    said = ["words for one", "words for two", "chosen: one.md"]
    assert hidden(session) == said
    gates["two"].set()
    await asyncio.sleep(0.01)
    await prepare(session)  # as after a tool
    await prepare(session)
    assert hidden(session) == [*said, "chosen: two.md"]


async def test_a_model_that_fails_takes_nothing_from_the_search(session):
    async def by_words(words):
        return FOUND

    async def by_model(words):
        raise ModelUnavailable("overloaded")

    staged(session, by_words, choose=by_model)
    session.user("how do we deploy?")
    await prepare(session)
    await asyncio.sleep(0.01)
    await prepare(session)
    assert hidden(session) == [FOUND.text]
    [failed] = [e for e in session.view.history if isinstance(e, Failed)]
    assert "overloaded" in failed.error


async def test_a_recall_that_fails_is_an_entry_and_the_call_is_made(session):
    async def broken(words):
        raise OSError("disk gone")

    staged(session, broken)
    session.user("one")
    request = await prepare(session)
    assert request.kwargs["messages"]
    [failed] = [e for e in session.view.history if isinstance(e, Failed)]
    assert (failed.what, "disk gone" in failed.error) == ("recall", True)


async def test_what_a_resumed_session_had_answered_is_not_asked_again(session):
    asked = []

    async def nothing(words):
        asked.append(words)

    session.user("old")
    answered(session)
    staged(session, nothing, answered=session.view.history)
    session.user("new")
    await prepare(session)
    assert asked == ["new"]
