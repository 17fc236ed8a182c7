"""Following a log: each entry once."""

from hypothesis import given
from hypothesis import strategies as st

from longhold.core.log.cursor import LogCursor
from longhold.core.log.entries import Titled


def titled(count):
    return [Titled(n=n, title=str(n)) for n in range(1, count + 1)]


@given(st.lists(st.integers(0, 5)))
def test_every_entry_is_given_once_and_in_order(steps):
    cursor, history, seen = LogCursor(), [], []
    for count in steps:
        history += titled(count)
        seen += cursor.advance(history)
        assert not cursor.advance(history)
    assert seen == history


def test_a_shorter_history_is_another_one_and_read_from_its_start():
    cursor = LogCursor()
    cursor.advance(titled(3))
    assert not cursor.is_past(titled(3))
    assert cursor.is_past(titled(2))
    assert cursor.advance(titled(2)) == titled(2)
    assert cursor.advance(titled(3)) == titled(3)[2:]
