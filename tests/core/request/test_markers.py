"""Cache breakpoints: at most four, placed so that everything readable is read."""

from hypothesis import given
from hypothesis import strategies as st

from longhold.core.messages import JsonObject
from longhold.core.request.markers import (
    LOOK_BACK_BLOCKS,
    CachedPrefix,
    MarkerPlace,
    Markers,
    last_place,
    places,
)

block = st.sampled_from(["text", "tool_use", "thinking"])


def message(*kinds: str) -> JsonObject:
    return {"role": "user", "content": [{"type": kind} for kind in kinds]}


def grow(markers: Markers, messages: list[JsonObject], unmoved: int, slots: int = 2):
    """Send these messages and have them answered."""
    where = markers.place(messages, unmoved, slots=slots)
    markers.observe_reply()
    return where


def test_a_marker_never_stands_on_thinking():
    assert last_place([message("text"), message("tool_use", "thinking")]) == MarkerPlace(1, 0)
    assert last_place([message("thinking")]) is None


def test_a_short_round_needs_one_marker():
    markers = Markers()
    first = [message("text")]
    assert grow(markers, first, 0) == (MarkerPlace(0, 0),)
    longer = [*first, message("text"), message("text")]
    assert grow(markers, longer, 1) == (MarkerPlace(2, 0),)


def test_a_long_round_marks_what_the_call_before_left():
    markers = Markers()
    first = [message("text")]
    grow(markers, first, 0)
    longer = [*first, message(*["tool_use"] * 10), message(*["text"] * 10)]
    assert grow(markers, longer, 1) == (MarkerPlace(0, 0), MarkerPlace(2, 9))


def test_a_change_in_the_middle_marks_the_last_message_before_it():
    markers = Markers()
    old = [message("text") for _ in range(60)]
    grow(markers, old, 0)
    new = [*old[:30], *(message("text") for _ in range(31))]
    assert grow(markers, new, 30) == (MarkerPlace(29, 0), MarkerPlace(60, 0))


def test_a_call_that_was_not_answered_left_nothing():
    markers = Markers()
    first = [message("text")]
    grow(markers, first, 0)
    longer = [*first, *(message("text") for _ in range(30))]
    markers.place(longer, 1, slots=2)
    again = [*longer, message("text")]
    assert markers.place(again, 31, slots=2) == (MarkerPlace(0, 0), MarkerPlace(31, 0))


def test_a_last_message_that_grew_still_holds_what_was_left():
    left = CachedPrefix(place=MarkerPlace(1, 0), message=message("text"))
    assert left.is_in([message("text"), message("text", "text")], 1)
    assert not left.is_in([message("text"), message("tool_use", "text")], 1)


@given(
    st.lists(
        st.lists(st.lists(block, min_size=1, max_size=30), min_size=1, max_size=4), max_size=8
    ),
    st.integers(0, 3),
)
def test_the_entry_before_is_always_within_reach(rounds, slots):
    markers, messages, unmoved = Markers(), [], 0
    for added in rounds:
        left = markers.cached
        messages = [*messages, *(message(*kinds) for kinds in added)]
        where = grow(markers, messages, unmoved, slots)
        unmoved = len(messages)
        assert len(where) <= min(slots, 2)
        if left is None or slots < 2:
            continue
        flat = [MarkerPlace(i, j) for i, m in enumerate(messages) for j in range(len(m["content"]))]
        at = flat.index(left.place)
        assert any(0 <= flat.index(place) - at < LOOK_BACK_BLOCKS for place in where)


def test_without_slots_nothing_is_marked():
    assert places([message("text")], None, 0, slots=0) == ()
