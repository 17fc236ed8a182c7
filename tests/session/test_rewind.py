"""Rewinding a session and dropping messages: neither loses anything."""

import pytest

from longhold.core.log.entries import Dropped, Replied, Said, Snipped, Titled
from longhold.core.log.store import FileStore
from longhold.core.messages import Text
from longhold.core.models.protocol import collect
from longhold.core.models.scripted import ScriptedModel
from longhold.errors import NotInHistory
from longhold.session.program import rewind_point
from longhold.session.session import Session
from seen import texts

MODEL = "claude-opus-4-6"
HISTORY = [
    Said(n=3, content=(Text(text="one"),)),
    Replied(n=4, response_id="a", model=MODEL, content=(Text(text="1"),)),
    Said(n=5, content=(Text(text="aside"),), hidden=True),
    Said(n=6, content=(Text(text="two"),)),
    Titled(n=7, title="x"),
]


@pytest.mark.parametrize(("n", "kept"), [(0, 5), (6, 5), (3, 2), (4, 4), (5, 5), (7, 7)])
def test_before_a_message_of_the_users_or_after_anything_else(n, kept):
    assert rewind_point(HISTORY, n) == kept


@pytest.mark.parametrize(("history", "n"), [([], 0), (HISTORY, 8)])
def test_where_there_is_nothing_to_go_back_to_it_says_so(history, n):
    with pytest.raises(NotInHistory):
        rewind_point(history, n)


@pytest.fixture
async def session(tmp_path):
    """A session with two turns."""
    model = ScriptedModel("text: first\n---\ntext: second", name=MODEL)
    with Session.open(model=MODEL, directory=tmp_path) as opened:
        for words in ("one", "two"):
            opened.user(words)
            opened._engine.record_reply(await collect(model.stream(await opened.prepare())))
        yield opened


async def test_a_rewound_session_goes_on_in_a_branch(session):
    before = texts(session)
    with Session.resume(session.rewind()) as branch:
        assert texts(branch) == ["one", "first"]
        branch.user("three")
        await branch.prepare()
    assert texts(session) == before == ["one", "first", "two", "second"]


async def test_dropped_messages_leave_with_the_next_request_and_come_back_by_undo(session):
    numbers = [entry.n for entry in session.view.history if isinstance(entry, Said | Replied)]
    mark = session.drop(*numbers[:2], why="a detour")
    assert isinstance(mark, Dropped) and texts(session)[0] == "one"
    session.undrop(numbers[1])
    session.user("three")
    await session.prepare()
    assert "one" not in texts(session) and "first" in texts(session)
    [snipped] = [entry for entry in session.view.history if isinstance(entry, Snipped)]
    session.undo(snipped.n)
    assert texts(session)[0] == "one"


def test_the_branch_is_in_the_session_s_own_store(tmp_path):
    store = FileStore(tmp_path / "elsewhere")
    with Session.open(model="claude-sonnet-4-6", directory=tmp_path, store=store) as session:
        session.user("one")
        branch = session.rewind()
    assert store.find(branch).header.parent == session.id
