"""The index: short lines, limits that hold, and a notice of what was cut."""

import re
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.core.memory import memory as index
from longhold.core.memory.memory import Memory, index_line, make_index

LISTED = st.lists(
    st.builds(
        Memory,
        file=st.integers(0, 10_000).map(lambda n: f"m{n}.md"),
        name=st.text(max_size=80),
        description=st.text(max_size=400),
        type=st.sampled_from(["user", "feedback", "project", "reference"]),
        modified=st.floats(0, 1e9),
        uses=st.integers(0, 5),
        superseded_by=st.sampled_from(["", "", "x.md"]),
    ),
    max_size=30,
    unique_by=lambda one: one.file,
)


def links_in(text):
    return re.findall(r"\]\(([^()\s]+\.md)\)", text)


@contextmanager
def in_little_space():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "INDEX_LINES", 10)
        patch.setattr(index, "INDEX_BYTES", 1_000)
        yield


@given(LISTED)
def test_the_index_is_always_in_its_limits(listed):
    with in_little_space():
        text = make_index(listed)
        lines = text.splitlines()
        assert len(lines) <= 10 and len(text.encode()) <= 1_000
        assert all(len(line) < 150 for line in lines)


@given(LISTED)
def test_every_line_leads_to_a_memory_that_holds(listed):
    holding = {one.file for one in listed if not one.superseded_by}
    with in_little_space():
        text = make_index(listed)
    lines = [line for line in text.splitlines() if line.startswith("- ")]
    links = [links_in(line) for line in lines]
    assert all(len(found) == 1 and found[0] in holding for found in links)
    if len(lines) < len(holding):
        assert f"({len(holding) - len(lines)} more are not listed" in text


def one(file, **more):
    """Something to list."""
    return Memory(**{"file": file, "name": file, "description": "d", "type": "project", "modified": 1.0, **more})  # fmt: skip


def test_types_come_in_their_order_and_the_most_used_first():
    listed = [one("r.md", type="reference", uses=9), one("a.md"), one("b.md", uses=2)]
    listed.append(one("u.md", type="user"))
    assert links_in(make_index(listed)) == ["u.md", "b.md", "a.md", "r.md"]


def test_what_nobody_uses_leaves_the_index_first():
    listed = [one(f"m{n}.md", uses=n, modified=100.0 - n) for n in range(12)]
    with in_little_space():
        kept = links_in(make_index(listed))
    assert kept == [f"m{n}.md" for n in range(11, 2, -1)]


def test_a_long_description_is_cut_and_its_link_is_whole():
    line = index_line(one("x" * 97 + ".md", name="n" * 90, description="d" * 500))
    assert len(line) < 150 and links_in(line) == ["x" * 97 + ".md"]
