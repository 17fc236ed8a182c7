"""One memory: parsed leniently, and written so that it parses to the same value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.core.memory.memory import KINDS, Memory, parse, stamp, timestamp

LINE = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=60)
MEMORIES = st.builds(
    Memory,
    file=st.just("a.md"),
    name=LINE,
    description=LINE,
    type=st.sampled_from(KINDS),
    created=st.integers(1, 4_000_000_000).map(float),
    modified=st.integers(1, 4_000_000_000).map(float),
    evidence=st.lists(LINE.filter(lambda s: "," not in s), max_size=3, unique=True).map(tuple),
    sources=st.dictionaries(
        st.from_regex(r"[a-z]{1,9}(/[a-z]{1,9})?\.py", fullmatch=True), LINE, max_size=3
    ),
    superseded_by=st.sampled_from(["", "b.md"]),
    body=st.text(st.characters(exclude_categories=["C"]), max_size=80).map(
        lambda text: text.lstrip("\n") + "\n"
    ),
)


@given(MEMORIES)
def test_a_memory_reads_back_as_itself(memory):
    assert parse("a.md", memory.text) == memory


@given(st.text(max_size=200))
def test_any_text_is_a_memory(text):
    memory = parse("some/thing.md", text, at=5.0)
    assert memory.name and memory.description and memory.type in KINDS


def test_a_file_without_a_head_is_named_for_itself():
    memory = parse("ops/db.md", "# The staging database\n\nIt is db-7.\n", at=7.0)
    assert (memory.name, memory.description) == ("db", "The staging database")
    assert (memory.type, memory.modified, memory.created) == ("project", 7.0, 7.0)


def test_the_yaml_that_people_write_is_understood():
    text = (
        "---\nname: 'Deploys'\ndescription: \"at: night\"\ntype: wisdom\nevidence:\n  - s1#2\n"
        "  - s1#4\ntags: [ops, night]\nmodified: 2026-03-01\n---\nOnly at night.\n"
    )
    memory = parse("d.md", text)
    assert (memory.name, memory.description, memory.type) == ("Deploys", "at: night", "project")
    assert memory.evidence == ("s1#2", "s1#4")
    assert memory.more == {"tags": ["ops", "night"]}
    assert stamp(memory.modified) == "2026-03-01T00:00:00Z"
    assert memory.body == "Only at night.\n"


def test_an_unknown_key_survives():
    text = "---\nname: a\ndescription: b\nowner: Ann\n---\n\nbody\n"
    assert "owner: Ann" in parse("a.md", text).text


def test_dashes_that_are_no_head_stay_in_the_body():
    text = "---\nnot closed\n" + "x\n" * 50
    assert parse("a.md", text).body == text


def test_a_moment_that_is_none_is_zero():
    assert timestamp("last Tuesday") == 0.0


@pytest.mark.parametrize(
    "text", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "10000-01-01"]
)
def test_a_date_outside_the_calendar_is_none(text):
    assert timestamp(text) == 0.0


@pytest.mark.parametrize("text", ["0001-01-01", "9999-12-31T23:59:59.999999"])
def test_the_first_and_the_last_moment_are_written_as_they_are_read(text):
    assert timestamp(stamp(timestamp(text))) == timestamp(text) != 0.0


def test_a_file_from_the_year_12000_is_a_memory():
    assert "created: 9999-12-31T23:59:59Z" in parse("a.md", "x\n", at=316_516_550_400.0).text


def test_a_head_nested_without_end_is_text():
    nested = "[" * 60_000
    assert parse("a.md", f"---\nname: {nested}\n---\n\nbody\n").name == nested


def test_half_a_character_in_a_head_stays_as_it_is_written():
    memory = parse("a.md", '---\nname: "a\\ud800"\n---\n\nbody\n')
    assert memory.name == "a\\ud800" and memory.text.encode()
