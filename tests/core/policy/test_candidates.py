"""Which results may be cleared, updated entry by entry or read at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.stages.clear.reading import PAGE, Reading

from longhold.core.log.entries import Cleared, Compacted, Ran, Snipped
from longhold.core.messages import Text
from longhold.core.policy.candidates import Batch, Candidates, weight
from longhold.core.view import fold


@pytest.fixture
def one(tmp_path):
    """A session that reads, without the stage."""
    made = Reading(tmp_path / "s.jsonl", runs_stage=False)
    made.engine.say("Read everything.")
    yield made
    made.close()


def ids(results):
    return [result.id for result in results]


def fresh(view):
    """What a stock says that sees a view for the first time."""
    stock = Candidates(smallest=50)
    stock.follow(view)
    return stock


async def test_results_are_listed_once_an_answer_followed_them(one):
    await one.read(7)
    stock = fresh(one.view)
    assert ids(stock.newest) == [f"t{i}" for i in range(6)] and stock.unread == 1
    assert ids(stock.batch(5).results) == ["t0", "t1"]


async def test_a_refusal_in_the_users_words_is_none(one):
    one.call(("no", "Bash", {"command": "make"}))
    one.engine.take(Ran(tool_use_id="no", content=PAGE, is_error=True, refused=PAGE))
    await one.read(2)
    one.call()
    assert ids(fresh(one.view).newest) == ["t0", "t1"]


async def test_at_least_one_stays(one):
    await one.read(7)
    one.call()
    assert ids(fresh(one.view).batch(0).results) == [f"t{i}" for i in range(6)]


@given(counts=st.lists(st.integers(1, 4), min_size=1, max_size=8), keep=st.integers(0, 9))
def test_the_newest_stay_however_many_there_are(tmp_path_factory, counts, keep):
    one = Reading(tmp_path_factory.mktemp("log") / "s.jsonl")
    for step, count in enumerate(counts):
        calls = [(f"t{step}.{i}", "Read", {"file_path": f"/p/{step}/{i}.py"}) for i in range(count)]
        for use in one.call(*calls):
            one.engine.take_result(use.id, PAGE)
    taken = ids(fresh(one.view).batch(keep).results)
    one.close()
    every = [f"t{step}.{i}" for step, count in enumerate(counts) for i in range(count)]
    assert not set(taken) & set(every[-max(1, keep) :])


async def test_weights_are_those_of_what_is_sent_and_stands_before(one):
    await one.read(3)
    first, second = fresh(one.view).newest
    items = one.view.items
    assert first.before == pytest.approx(weight(items[0].measure))
    assert second.before == pytest.approx(first.before + weight(items[1].measure))
    assert first.weight == pytest.approx(weight(items[1].results_measure))


async def test_following_along_is_counting_anew(one):
    stock = Candidates(smallest=50)
    for step in range(12):
        await one.read(1, first=step)
        if step == 6:
            one.engine.record(Cleared(ids=("t1", "t2"), texts=("gone", "gone")))
        if step == 8:
            one.engine.record(Snipped(targets=(one.view.round_of("t3").id,)))
        if step == 9:
            one.engine.record(Cleared(ids=("t4",), texts=("gone",), how="edited", place=99))
        stock.follow(one.view)
        anew = fresh(fold(one.view.history))
        for name in ("newest", "heavy", "edited", "unread"):
            assert str(getattr(stock, name)) == str(getattr(anew, name))
        assert stock.cleared_weight == pytest.approx(anew.cleared_weight)


async def test_a_turn_is_looked_at_once(one):
    stock = Candidates()
    await one.read(5)
    stock.follow(one.view)
    before = list(stock.newest)
    await one.read(3, first=5)
    stock.follow(one.view)
    assert all(a is b for a, b in zip(before, stock.newest, strict=False))


async def test_batches_add_up_in_order():
    assert (Batch([], 1.0) + Batch([], 2.0)).weight == 3.0 and not Batch()


async def test_what_the_provider_hides_is_apart(one):
    await one.read(6)
    one.engine.record(Cleared(ids=("t0",), texts=("gone",), how="edited", place=99))
    one.engine.record(Cleared(ids=("t1",), texts=("gone",), how="server", inferred=True))
    stock = fresh(one.view)
    assert ids(stock.edited.results) == ["t0"] and ids(stock.served.results) == ["t1"]
    assert ids(stock.newest) == ["t2", "t3", "t4"]
    assert stock.edited.weight > weight(one.view.round_of("t2").results_measure) - 5
    assert PAGE in one.shown()["t0"]


async def test_what_left_the_view_is_not_held_on_to(one):
    stock = Candidates(smallest=50)
    await one.read(12)
    stock.follow(one.view)
    first, last = one.view.items[0].id, one.view.items[-3].id
    one.engine.record(Compacted(first=first, last=last, summary=(Text(text="so"),)))
    await one.read(2, first=12)
    stock.follow(one.view)
    assert set(stock._known) <= {item.order for item in one.view.items}
    assert ids(stock.newest) == ids(fresh(one.view).newest)
