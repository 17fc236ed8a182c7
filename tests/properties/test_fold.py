"""Folding: in any way, the view is the same and valid, and removes nothing permanently."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from longhold.core.log.entries import Began, Ran, Redone, Replied, Undone, ViewChange
from longhold.core.messages import ToolUse
from longhold.core.messages.measure import NOTHING
from longhold.core.messages.rules import violations
from longhold.core.view import View, fold
from longhold.core.view.items import Round, Spoken, render
from properties.naive import naive_fold, naive_messages
from properties.strategies import numbered, sequences, shaping


def picture(view):
    """Everything a view answers, as plain values."""
    return {
        "sent": list(view.messages()),
        "seen": view.render_seen(),
        "items": list(view.items),
        "total": view.total,
        "pinned": [view.is_pinned(item) for item in view.items],
        "open": view.open_round(),
        "interrupted": view.list_interrupted(),
        "compactable": view.count_compactable(),
        "anchor": view.reported,
        "frame": view.frame,
        "model": view.model,
        "title": view.title,
        "fate": view.in_force.dead,
        "vetoes": view.in_force.vetoes,
    }


def applied(entries):
    view = View()
    for entry in entries:
        view.apply(entry)
    return view


@given(sequences)
def test_folding_at_once_is_folding_entry_by_entry(entries):
    assert picture(applied(entries)) == picture(fold(entries))


@given(sequences)
def test_the_fold_agrees_with_a_naive_one(entries):
    view, plain = fold(entries), naive_fold(entries)
    assert view.messages() == naive_messages(plain, "sent")
    assert view.render_seen() == naive_messages(plain, "seen")
    assert [item.order for item in view.items] == [thing.order for thing in plain.things]
    kinds = ["round" if isinstance(item, Round) else item.kind for item in view.items]
    assert kinds == [thing.kind for thing in plain.things]
    assert [view.is_pinned(item) for item in view.items] == [t.pinned for t in plain.things]


@given(sequences)
def test_what_is_said_about_the_fold_agrees_with_a_naive_one(entries):
    view, plain = fold(entries), naive_fold(entries)
    assert (view.model, view.title, view.frame) == (plain.model, plain.title, plain.frame)
    reported = view.reported and (view.reported.n, view.reported.usage, view.reported.then)
    assert reported == plain.reported
    waiting, expected = view.open_round(), plain.open()
    assert [use.id for use in waiting.missing()] == expected.missing() if waiting else not expected
    still_running = [id for id in expected.missing() if id in plain.began] if expected else []
    assert [use.id for use in view.list_interrupted()] == still_running
    assert view.total == plain.total()


@given(sequences)
def test_the_running_measure_is_the_sum_of_the_items(entries):
    view = applied(entries)
    total = view.frame.measure if view.frame else NOTHING
    for item in view.items:
        total = total + item.measure
    assert view.total == total


@given(sequences, st.data())
def test_messages_rendered_as_they_change_are_those_rendered_afresh(entries, data):
    view = View()
    for entry in entries:
        view.apply(entry)
        if data.draw(st.booleans()):
            assert view.messages() == render(view.items, "sent")
    assert view.messages() == render(view.items, "sent")


@given(sequences)
def test_every_view_is_one_the_api_accepts(entries):
    view = View()
    for entry in entries:
        view.apply(entry)
        assert violations(view.messages()) == []
        assert violations(view.render_seen()) == []


@given(sequences)
def test_every_boundary_between_items_is_a_legal_cut(entries):
    items = fold(entries).items
    for i in range(len(items) + 1):
        head, tail = render(items[:i]), render(items[i:])
        assert violations(head) == violations(tail) == []


@given(sequences)
def test_what_left_the_view_is_still_in_the_log(entries):
    view = applied(entries)
    assert view.history == entries
    known = {entry.n for entry in entries}
    for item in view.items:
        assert item.id in known and item.order in known


@given(sequences)
def test_orders_rise_and_ids_are_unique(entries):
    items = fold(entries).items
    orders = [item.order for item in items]
    assert orders == sorted(set(orders))
    assert len({item.id for item in items}) == len(items)


@given(sequences)
def test_an_entry_is_shown_by_its_own_item_or_by_none(entries):
    view = fold(entries)
    for entry in entries:
        item = view.item_of(entry.n)
        match item:
            case Spoken():
                assert item.id == entry.n
            case Round():
                pieces = {item.id, *(result.id for result in item.results)}
                assert entry.n in pieces or (
                    getattr(entry, "response_id", None) == item.response_id
                )


@given(sequences, shaping)
def test_undo_restores_the_exact_earlier_view(entries, change):
    n = len(entries) + 1
    before = fold(entries)
    [made] = numbered([change], n)
    after = applied([*entries, made])
    after.apply(Undone(n=n + 1, target=n))
    assert after.messages() == before.messages()
    assert after.render_seen() == before.render_seen()
    assert list(after.items) == list(before.items)
    assert after.total == before.total


@given(sequences, shaping)
def test_redo_brings_back_what_was_undone(entries, change):
    n = len(entries) + 1
    [made] = numbered([change], n)
    after = fold([*entries, made])
    again = fold([*entries, made, Undone(n=n + 1, target=n), Redone(n=n + 2, target=n)])
    assert again.messages() == after.messages()
    assert again.render_seen() == after.render_seen()
    assert list(again.items) == list(after.items)


@given(sequences, st.lists(shaping, min_size=2, max_size=4))
def test_what_rests_on_an_undone_entry_goes_and_comes_with_it(entries, changes):
    first = len(entries) + 1
    chain = [
        msgspec.structs.replace(change, rests_on=(n - 1,) if n > first else ())
        for n, change in enumerate(numbered(changes, first), first)
    ]
    end = first + len(chain)
    before, after = fold(entries), fold([*entries, *chain])
    undone = [*entries, *chain, Undone(n=end, target=first)]
    assert fold(undone).messages() == before.messages()
    redone = [*undone, Redone(n=end + 1, target=first)]
    assert fold(redone).messages() == after.messages()


def said(view: View):
    """Give what is sent without thinking, for that is bound to what was undone."""
    rounds = [item for item in view.items if isinstance(item, Round)]
    bare = {item.id: msgspec.structs.replace(item, drops_thinking=True) for item in rounds}
    return render([bare.get(item.id, item) for item in view.items])


@given(sequences)
def test_undoing_everything_shows_everything_that_was_said(entries):
    """With every shaping entry undone, the view is that of the plain entries alone.

    Thinking that came in between is the exception: it was bound to a prefix that is gone.
    """
    n = len(entries)
    undos = [
        Undone(n=n + i, target=entry.n)
        for i, entry in enumerate([e for e in entries if isinstance(e, ViewChange)], 1)
    ]
    plain = [entry for entry in entries if not isinstance(entry, ViewChange)]
    assert said(fold([*entries, *undos])) == said(fold(plain))


@given(sequences)
def test_what_undone_entries_acted_on_is_vetoed(entries):
    standing = set()
    for entry in entries:
        if isinstance(entry, Undone):
            standing.add(entry.target)
        if isinstance(entry, Redone):
            standing.discard(entry.target)
        if isinstance(entry, ViewChange):
            standing.discard(entry.n)
    expected = set()
    for entry in entries:
        if isinstance(entry, ViewChange) and entry.n in standing:
            for name in ("targets", "ids"):
                expected |= set(getattr(entry, name, ()))
            for name in ("first", "last", "tool_use_id"):
                expected |= {getattr(entry, name)} if hasattr(entry, name) else set()
    assert fold(entries).in_force.vetoes == expected


def test_a_result_without_its_call_ends_nothing():
    use = ToolUse(id="a", name="Bash", input={})
    entries = [
        Began(n=1, tool_use_id="a"),
        Ran(n=2, tool_use_id="a", content="x"),
        Replied(n=3, response_id="r", content=(use,)),
    ]
    assert fold(entries).list_interrupted() == [use]
