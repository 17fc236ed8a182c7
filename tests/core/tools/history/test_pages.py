"""Pages of a text join to the exact text, whatever its lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.core.tools.history.pages import LineRange, NoSuchRange, page


def turned(text, limit_chars):
    """Read a text page by page, each with the range that the one before it named."""
    whole, asked, pieces = LineRange(text), {}, []
    while True:
        shown = page(whole, **asked, limit_chars=limit_chars)
        pieces.append(shown.text)
        if not shown.more:
            return pieces
        kind, _, wanted = shown.more.partition(" ")
        asked = {kind: wanted.strip('"')}


@given(st.text(st.sampled_from("ab\n\r\u2028é🙂"), max_size=60), st.integers(1, 12))
def test_pages_join_to_the_text(text, limit):
    pieces = turned(text, limit)
    assert "".join(pieces) == text
    assert all(len(piece) <= limit for piece in pieces)
    assert all(pieces) or pieces == [""]


@given(st.text(st.sampled_from("ab\n"), min_size=1, max_size=40), st.data())
def test_a_range_of_lines_is_those_lines(text, data):
    lines = text.splitlines(keepends=True)
    first = data.draw(st.integers(1, len(lines)))
    last = data.draw(st.integers(first, len(lines) + 3))
    shown = page(LineRange(text), lines=f"{first}-{last}")
    assert shown.text == "".join(lines[first - 1 : last])
    assert shown.lines == (first, min(last, len(lines)))


def test_a_page_ends_with_a_whole_line_where_one_fits():
    whole = LineRange("one\ntwo\n" + "x" * 20)
    shown = page(whole, limit_chars=10)
    assert (shown.text, shown.more, shown.lines) == ("one\ntwo\n", 'lines "3-"', (1, 2))
    shown = page(whole, lines="3-", limit_chars=10)
    assert (shown.text, shown.more, shown.chars) == ("x" * 10, 'chars "19-"', (9, 18))


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"lines": "4"}, "there are 3 lines; there is no line 4"),
        ({"lines": "0-2"}, "there is no line 0"),
        ({"chars": "99-"}, "there are 5 characters"),
        ({"lines": "2-1"}, "ends before it begins"),
        ({"lines": "a few"}, "is not a range"),
        ({"lines": "1", "chars": "1"}, "not both"),
    ],
)
def test_what_is_not_there_is_said(asked, reason):
    with pytest.raises(NoSuchRange, match=reason):
        page(LineRange("a\nb\nc"), **asked)
