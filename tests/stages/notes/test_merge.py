"""What a model wrote and what somebody wrote meanwhile, joined."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.stages.notes.merge import merged

LINES = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=4).map("\n".join)


@pytest.mark.parametrize(
    ("base", "mine", "theirs", "both"),
    [
        ("a", "b", "a", "b"),
        ("a", "a", "c", "c"),
        ("a", "b", "b", "b"),
        ("a", "a\nb", "a\nc", "a\nc\nb"),
        ("a", "b", "", "b"),
    ],
)
def test_who_changed_a_section_has_it(base, mine, theirs, both):
    """One change wins; of two, the person's stays and the model's new lines follow."""
    assert merged({"x": base}, {"x": mine}, {"x": theirs}) == {"x": both}


def test_sections_that_only_one_of_them_has_stay():
    """A person's own section is not the model's to drop."""
    assert merged({}, {"a": "1"}, {"b": "2"}) == {"a": "1", "b": "2"}


@given(base=LINES, mine=LINES, theirs=LINES)
def test_no_line_that_a_person_wrote_is_lost(base, mine, theirs):
    """Whatever both did: what the person changed is there, line by line."""
    both = merged({"x": base}, {"x": mine}, {"x": theirs})["x"]
    if theirs != base:
        assert set(theirs.splitlines()) <= set(both.splitlines())
