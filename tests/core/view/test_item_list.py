"""The item list: positions, sums and rendering stay correct under any change."""

from hypothesis import given
from hypothesis import strategies as st

from longhold.core.messages import Text, ToolUse
from longhold.core.messages.measure import NOTHING, Measure
from longhold.core.view.item_list import ItemList
from longhold.core.view.items import Result, Round, Spoken, StandIn, render


def said(n, text="x", **fields):
    content = (Text(text=text),) if text else ()
    return Spoken(id=n, order=n, content=content, measure=Measure(spaced=n), **fields)


def called(n, id="a"):
    results = (Result(id=n + 1, tool_use_id=id, content="ok", measure=Measure(marks=n)),)
    use = ToolUse(id=id, name="read", input={})
    measure = results[0].measure
    return Round(
        id=n, order=n, response_id="r", content=(use,), results=results, results_measure=measure
    )


def row_of(*items):
    row = ItemList()
    for item in items:
        row.append(item)
    return row


def total(row):
    measure = NOTHING
    for item in row.items:
        measure = measure + item.measure
    return measure


def test_a_place_is_found_by_its_order():
    row = row_of(said(2), said(5), said(9))
    assert [row.index(order) for order in (2, 5, 9, 3, 0, 10)] == [0, 1, 2, None, None, None]


def test_a_span_is_all_between_two_entries():
    row = row_of(said(2), said(5), said(9))
    assert row.span(2, 5) == (0, 2)
    assert row.span(3, 99) == (1, 3)
    assert row.span(0, 1) == (0, 0)
    lo, hi = row.span(9, 2)
    assert lo >= hi - 1


def test_an_entry_is_found_by_the_item_that_shows_it():
    row = row_of(said(1), called(3))
    row.home[4] = 3
    assert row.item_of(4) is row.item_of(3) is row.items[1]
    assert row.item_of(2) is None


def test_what_took_over_a_place_does_not_show_what_stood_there():
    row = row_of(said(1), said(2), called(3))
    row.home |= {4: 3, 9: 1}
    row.splice(0, 3, [Spoken(id=9, order=1, content=(), kind="summary")])
    assert [row.item_of(n) is not None for n in (1, 2, 3, 4, 9)] == [False] * 4 + [True]


def test_a_span_may_end_at_a_summary():
    row = row_of(Spoken(id=9, order=1, content=(), kind="summary"), said(5), said(12))
    row.home[9] = 1
    assert row.span(9, 5) == (0, 2)


def test_a_result_is_changed_where_it_stands():
    row = row_of(said(1), called(3))
    row.uses["a"] = 3
    gone = StandIn(text="gone", how="rewritten", measure=Measure(marks=1))
    assert row.change_result("a", lambda result: result.clear(gone)) == 1
    assert row.measure == Measure(spaced=1, marks=1)
    assert row.change_result("b", lambda result: result) is None


def test_messages_are_rendered_again_only_from_where_they_changed():
    row = row_of(said(1), called(3), said(5), called(7, "b"))
    before = list(row.messages())
    row.put(3, called(7, "c"))
    after = row.messages()
    assert all(old is new for old, new in zip(before[:2], after[:2], strict=True))
    assert after == render(row.items)


_changes = st.lists(
    st.tuples(
        st.sampled_from(["append", "empty", "call", "put", "cut", "swap", "render"]),
        st.integers(0, 9),
        st.integers(0, 9),
    ),
    max_size=25,
)


@given(_changes)
def test_sums_and_rendering_hold_under_any_change(changes):
    row, n = ItemList(), 0
    for change, a, b in changes:
        n += 2
        lo, hi = sorted((a % (len(row.items) + 1), b % (len(row.items) + 1)))
        match change:
            case "append":
                row.append(said(n, f"text {n}"))
            case "empty":
                row.append(said(n, ""))
            case "call":
                row.append(called(n, f"use {n}"))
            case "put" if row.items:
                old = row.items[a % len(row.items)]
                row.put(a % len(row.items), said(old.order, f"again {n}"))
            case "cut":
                row.splice(lo, hi, [])
            case "swap" if lo < hi:
                row.splice(lo, hi, [said(row.items[lo].order, "short")])
            case "render":
                assert row.messages() == render(row.items)
    assert row.messages() == render(row.items)
    assert row.measure == total(row)
    assert [row.index(item.order) for item in row.items] == list(range(len(row.items)))


def test_what_is_covered_is_forgotten():
    row = row_of(called(2, "a"), called(5, "b"), called(9, "c"))
    row.home.update({3: 2, 6: 5, 10: 9, 12: 2})
    row.cover(0, 2, [Spoken(id=12, order=2, content=(Text(text="a summary"),), kind="summary")])
    assert row.home == {3: 2, 10: 9, 12: 2}
    assert [row.index_of(n) for n in (3, 6, 10, 12)] == [None, None, 1, 0]
