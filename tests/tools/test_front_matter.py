"""Fields between two lines of dashes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.tools.front_matter import (
    UnreadableFrontMatter,
    is_on,
    names_in,
    number_in,
    read_front,
    text_in,
)


def test_fields_and_body_come_apart():
    """Names of fields in one spelling, values as plain JSON."""
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
    """It is no YAML, and half of the files there are look like it."""
    fields, body = read_front(
        "---\nname: x\ndescription: Use this when: always. Example: user: hi\n"
        "tools: Read, Grep\n---\nbody"
    )
    assert text_in(fields, "description") == "Use this when: always. Example: user: hi"
    assert names_in(fields, "tools") == ("Read", "Grep")
    assert body == "body"


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
    """However people write them."""
    assert names_in(read_front(f"---\ntools: {value}\n---\nx")[0], "tools") == names


def test_aliases_are_not_followed():
    """Nine lines of them can stand for a billion words."""
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n"
    for last, letter in zip("abcdefgh", "bcdefghi", strict=True):
        bomb += f"{letter}: &{letter} [{', '.join([f'*{last}'] * 9)}]\n"
    fields, _ = read_front(f"---\n{bomb}---\nx")
    assert all(isinstance(value, str) for value in fields.values())


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system ['true']", "!!python/name:os.x"])
def test_nothing_is_made_of_a_field(tag):
    """A definition is data."""
    fields, _ = read_front(f"---\nname: {tag}\n---\nx")
    assert fields["name"].startswith("!!python")


@pytest.mark.parametrize("text", ["", "name: x", "# Title\n---\nname: x\n---\n", "---\nname: x\n"])
def test_without_fields_it_is_no_definition(text):
    """Such as a README beside the definitions."""
    with pytest.raises(UnreadableFrontMatter):
        read_front(text)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text):
    """Nothing else happens."""
    fields, body = read_front(f"---\n{text}\n---\nbody")
    assert isinstance(fields, dict) and isinstance(body, str)
    number_in(fields, "a"), is_on(fields, "a"), names_in(fields, "a"), text_in(fields, "a")


def test_numbers_and_switches_are_read_from_either_form():
    """As YAML has them, and as words."""
    assert [number_in({"n": value}, "n") for value in (3, "3", -1, "x", True, None)] == [
        3, 3, 0, 0, 0, 0,
    ]  # fmt: skip
    assert [is_on({"b": value}, "b") for value in (True, "true", "yes", 1, None)] == [
        True, True, False, False, False,
    ]  # fmt: skip
