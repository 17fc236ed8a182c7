"""Undo by number or of the newest change, and redo."""

import pytest

from longhold.core.log.entries import Cleared, Compacted, Pinned, Snipped, Spilled, Undone
from longhold.core.messages import Text
from longhold.core.turn.undo import redo, undo
from longhold.errors import NotInHistory


@pytest.fixture
def one(talk):
    """A session of three turns."""
    made = talk()
    for number in range(3):
        made.turn(f"step {number}", words=50)
    return made


def compact(one, last):
    return one.engine.record(
        Compacted(first=3, last=last, summary=(Text(text="short"),), why="made shorter")
    )


def test_the_newest_goes_first(one):
    before = one.sent()
    first = compact(one, one.view.items[2].id)
    second = one.engine.record(Snipped(targets=(one.view.items[-1].id,)))
    assert undo(one.engine).startswith(f"#{second.n} was undone")
    assert undo(one.engine) == f"#{first.n} was undone: made shorter"
    assert one.sent() == before
    with pytest.raises(NotInHistory, match="no change of the view to undo"):
        undo(one.engine)
    assert redo(one.engine).startswith(f"#{second.n}")


def clear(one, how="rewritten"):
    id = one.view.items[1].tool_uses()[0].id
    return one.engine.record(Cleared(ids=(id,), texts=("gone",), how=how, why="cleared 1 result"))


def test_a_clearing_is_taken_back_like_the_rest(one):
    before = one.sent()
    entry = clear(one)
    assert undo(one.engine) == f"#{entry.n} was undone: cleared 1 result"
    assert one.sent() == before
    assert redo(one.engine) == f"#{entry.n} is re-applied: cleared 1 result"
    undo(one.engine, entry.n)
    assert one.sent() == before


def test_what_the_provider_did_is_not_ours_to_take_back(one):
    entry = clear(one, how="server")
    with pytest.raises(NotInHistory, match="the provider made it"):
        undo(one.engine, entry.n)
    with pytest.raises(NotInHistory, match="no change of the view to undo"):
        undo(one.engine)


def test_anything_that_shaped_the_view_can_be_named(one):
    id = one.view.items[1].tool_uses()[0].id
    entry = one.engine.record(Spilled(tool_use_id=id, text="gone", file="f"))
    with pytest.raises(NotInHistory):
        undo(one.engine)
    undo(one.engine, entry.n)
    assert "gone" not in str(one.view.messages())


def test_what_rests_on_another_goes_and_comes_with_it(one):
    first = compact(one, one.view.items[2].id)
    second = one.engine.record(
        Compacted(first=first.n, last=one.view.items[-1].id, summary=(Text(text="shorter"),))
    )
    undo(one.engine, first.n)
    with pytest.raises(NotInHistory, match="already undone"):
        undo(one.engine, second.n)
    with pytest.raises(NotInHistory, match="depends on"):
        redo(one.engine, second.n)
    redo(one.engine, first.n)
    assert "shorter" in str(one.view.messages())


@pytest.mark.parametrize("n", [1, 99_999])
def test_what_is_no_change_is_refused(one, n):
    with pytest.raises(NotInHistory, match="explain"):
        undo(one.engine, n)
    with pytest.raises(NotInHistory):
        redo(one.engine)


def test_a_redo_that_cannot_help_writes_nothing(one):
    engine = one.engine
    first = engine.record(Snipped(targets=(1,), why="one"))
    second = engine.record(Pinned(targets=(2,), rests_on=(first.n,)))
    engine.record(Undone(target=second.n))
    engine.record(Undone(target=first.n))
    count = len(engine.view.history)
    with pytest.raises(NotInHistory, match="depends on a change that is also undone"):
        redo(engine, second.n)
    assert len(engine.view.history) == count
