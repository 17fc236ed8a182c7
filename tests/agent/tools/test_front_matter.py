"""Front matter: fields between two lines of dashes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.core.settings.front_matter import (
    UnreadableFrontMatter,
    is_on,
    names_in,
    number_in,
    parse,
    parse_memory,
    read_front,
    render_memory,
    text_in,
)


def test_fields_and_body_come_apart():
    fields, body = read_front(
        "---\nname: x\npermissionMode: plan\nmax_turns: 3\n"
        "hooks:\n  Stop:\n    - hooks:\n        - type: command\n          command: make test\n"
        "---\n\nDo it.\n---\nnot a field\n"
    )
    assert fields == {
        "name": "x",
        "permissionmode": "plan",
        "maxturns": 3,
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "make test"}]}]},
    }
    assert body == "Do it.\n---\nnot a field"


def test_a_description_with_a_colon_is_read_all_the_same():
    fields, body = read_front(
        "---\nname: x\ndescription: Use this when: always. Example: user: hi\n"
        "tools: Read, Grep\n---\nbody"
    )
    assert text_in(fields, "description") == "Use this when: always. Example: user: hi"
    assert names_in(fields, "tools") == ("Read", "Grep")
    assert body == "body"


@pytest.mark.parametrize("extra", ["", "aside: a: b\n"], ids=["yaml", "almost yaml"])
def test_front_matter_in_its_usual_forms(extra):
    text = (
        '---\nname: x\ndescription: >-\n  two\n  lines\nquoted: "a: b"\n'
        f"allowed-tools:\n  - Read\n  - Grep\n{extra}empty:\n---\nbody --- here\n"
    )
    fields, body = parse(text)
    assert {key: value or "" for key, value in fields.items() if key != "aside"} == {
        "name": "x",
        "description": "two lines",
        "quoted": "a: b",
        "allowed-tools": ["Read", "Grep"],
        "empty": "",
    }
    assert body == "body --- here\n"


def test_what_has_no_front_matter_is_all_body():
    assert parse("no front matter") == ({}, "no front matter")
    assert parse("---\n---\nbody") == ({}, "body")


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("Read, Grep", ("Read", "Grep")),
        ("[Read, Grep]", ("Read", "Grep")),
        ("\n  - Read\n  - Grep", ("Read", "Grep")),
        ("mcp__a__*", ("mcp__a__*",)),
        ("[]", ()),
        ("", None),
    ],
)
def test_names_come_as_lists_or_words(value, names):
    assert names_in(read_front(f"---\ntools: {value}\n---\nx")[0], "tools") == names


def test_aliases_are_not_followed():
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n"
    for last, letter in zip("abcdefgh", "bcdefghi", strict=True):
        bomb += f"{letter}: &{letter} [{', '.join([f'*{last}'] * 9)}]\n"
    fields, _ = read_front(f"---\n{bomb}---\nx")
    assert all(isinstance(value, str) for value in fields.values())


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system ['true']", "!!python/name:os.x"])
def test_nothing_is_made_of_a_field(tag):
    fields, _ = read_front(f"---\nname: {tag}\n---\nx")
    assert fields["name"].startswith("!!python")


@pytest.mark.parametrize("text", ["", "name: x", "# Title\n---\nname: x\n---\n", "---\nname: x\n"])
def test_without_fields_it_is_no_definition(text):
    with pytest.raises(UnreadableFrontMatter):
        read_front(text)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text):
    fields, body = read_front(f"---\n{text}\n---\nbody")
    assert isinstance(fields, dict) and isinstance(body, str)
    number_in(fields, "a"), is_on(fields, "a"), names_in(fields, "a"), text_in(fields, "a")


def test_numbers_and_switches_are_read_from_either_form():
    assert [number_in({"n": value}, "n") for value in (3, "3", -1, "x", True, None)] == [
        3, 3, 0, 0, 0, 0,
    ]  # fmt: skip
    assert [is_on({"b": value}, "b") for value in (True, "true", "yes", 1, None)] == [
        True, True, False, False, False,
    ]  # fmt: skip


_TEXT = st.text(max_size=6)
_VALUES = _TEXT | st.lists(_TEXT, max_size=3) | st.dictionaries(_TEXT, _TEXT, max_size=2)


@given(st.dictionaries(st.sampled_from("abc"), _VALUES), st.text(max_size=20))
def test_what_a_memory_says_reads_back_as_itself(fields, body):
    kept = {key: value for key, value in fields.items() if value}
    ending = "" if not body or body.endswith("\n") else "\n"
    assert parse_memory(render_memory(fields, body)) == (kept, body + ending)


def test_a_memory_written_by_hand_is_read():
    text = "---\nname: 'x'\ntags: [a, \"b\"]\nfiles:\n- c\n  - d\nwhen: 1.10 # about\n---\n\nBody\n"
    fields = {"name": "x", "tags": ["a", "b"], "files": ["c", "d"], "when": "1.10 # about"}
    assert parse_memory(text) == (fields, "Body\n")
    assert render_memory(fields, "Body") == (
        '---\nname: x\ntags: ["a", "b"]\nfiles: ["c", "d"]\nwhen: "1.10 # about"\n---\n\nBody\n'
    )
