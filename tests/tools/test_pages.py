"""Pages of lines."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.tools.context import ToolContext
from holdfast.tools.pages import page_of_large, page_of_text

LINES = st.lists(st.sampled_from(["", "x", "some words", "ä€", "y" * 30]), max_size=12)


@given(LINES, st.booleans(), st.integers(1, 14), st.integers(1, 6))
def test_a_file_read_in_pieces_gives_the_same_lines(
    tmp_path_factory, lines, is_finished, first, limit
):
    """However a file is read, the lines of a page are the same."""
    here = tmp_path_factory.mktemp("pages")
    place = ToolContext(root=here, home=here, scratch=here)
    text = "\n".join(lines) + ("\n" if is_finished and lines else "")
    (here / "a").write_text(text, encoding="utf-8", newline="")
    small = page_of_text(text, first, limit, 1_000, place)
    large = page_of_large(here / "a", first, limit, 1_000, place)
    assert large.lines == small.lines
    shown = [line for line in small.text.split("\n") if "\t" in line]
    assert [line for line in large.text.split("\n") if "\t" in line] == shown


@given(st.integers(1, 400), st.integers(1, 300))
def test_a_page_keeps_its_budget_and_has_at_least_one_line(tmp_path_factory, count, budget):
    """Unless one line alone is over it."""
    here = tmp_path_factory.mktemp("pages")
    place = ToolContext(root=here, home=here, scratch=here, count_tokens=len)
    page = page_of_text("words of prose\n" * count, 1, 1_000, budget, place)
    body = page.text.partition("\n[")[0]
    assert len(page.lines) == 1 or len(body) <= budget
    assert len(page.lines) >= 1
