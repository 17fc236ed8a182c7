"""Which part of a view a compaction covers, and where it may begin and end."""

import pytest

from longhold.core.log.entries import Compacted, Replied, Said
from longhold.core.messages import Text, ToolUse
from longhold.core.stages.compact.segment import partial_segment, segment_before, whole_segment
from longhold.core.view import fold
from longhold.errors import RequestRejected


def said(n, text="hello", **more):
    return Said(n=n, content=(Text(text=text),), **more)


def answered(n, *blocks):
    return Replied(
        n=n, response_id=f"r{n}", content=blocks or (Text(text="yes"),), stop_reason="end_turn"
    )


TALK = (said(1), answered(2), said(3), answered(4), said(5, "fix it"), answered(6), said(7))


def test_what_waits_for_an_answer_stays():
    segment = whole_segment(fold(TALK))
    assert (segment.first, segment.last, segment.kept) == (1, 6, None)


def test_an_open_round_and_what_follows_stay():
    use = ToolUse(id="t", name="Read", input={})
    segment = whole_segment(fold((*TALK[:4], said(5), answered(6, use))))
    assert segment.last == 5


def test_next_to_nothing_is_not_covered():
    assert whole_segment(fold(TALK[:1])) is None
    summary = Compacted(n=8, first=1, last=6, summary=(Text(text="all of it"),))
    view = fold((*TALK, summary))
    assert whole_segment(view) is None
    assert whole_segment(view, again=True).items[0].kind == "summary"


def test_up_to_and_from_split_at_the_message():
    view = fold(TALK)
    before, after = partial_segment(view, "up_to", 4), partial_segment(view, "from", 5)
    assert (before.first, before.last, before.kept) == (1, 4, (5, 7))
    assert (after.first, after.last, after.kept, after.pivot) == (5, 6, (1, 4), "fix it")


def test_a_pivot_that_leaves_nothing_or_is_not_there_is_refused():
    view = fold(TALK)
    with pytest.raises(RequestRejected, match="not in the view"):
        partial_segment(view, "from", 99)
    with pytest.raises(RequestRejected, match="too little"):
        partial_segment(view, "up_to", 1)


def test_what_comes_before_an_item_may_be_covered_alone():
    segment = segment_before(fold(TALK), 4)
    assert (segment.kind, segment.last, segment.kept) == ("up_to", 4, (5, 7))


def test_a_pivot_that_a_summary_covers_is_refused_with_its_number():
    summary = Compacted(n=9, first=1, last=4, summary=(Text(text="all of it"),))
    view = fold((*TALK, summary))
    with pytest.raises(RequestRejected, match="message 3 is in the summary #9"):
        partial_segment(view, "up_to", 3)
