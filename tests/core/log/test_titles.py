"""Session titles in a list, found without reading whole logs."""

import pytest

from longhold.core.log import Header, write_log
from longhold.core.log.entries import Failed, Framed, Said, Titled
from longhold.core.log.titles import END_BYTES, TITLE_CHARS, title_of
from longhold.core.messages import Image, Text
from properties.strategies import numbered

BULK = tuple(Failed(what="x", error="y" * 1_000) for _ in range(END_BYTES // 500))
"""More than both ends of a log together."""


@pytest.fixture
def titled(tmp_path):
    """Write a log of these entries and ask for its title."""

    def ask(*entries):
        path = tmp_path / "s.jsonl"
        write_log(path, Header(session="s"), numbered(entries))
        return title_of(path)

    return ask


def said(text, **fields):
    return Said(content=(Text(text=text),), **fields)


def test_the_title_is_the_last_one_given(titled):
    assert titled(said("fix it"), Titled(title="Old"), Titled(title="New")) == "New"


def test_without_a_title_it_is_the_first_words_of_the_user(titled):
    assert (
        titled(
            said("a reminder", hidden=True),
            said("  "),
            Said(content=(Image(source={}),)),
            said("Fix\n  the   bug"),
            said("and then"),
        )
        == "Fix the bug"
    )


def test_what_a_client_wrapped_around_the_users_words_is_not_the_title(titled):
    reminded = (Text(text="<system-reminder>\nToday is Monday.\n</system-reminder>\n\n"),)
    assert (
        titled(
            said("<environment_context><cwd>/work</cwd></environment_context>"),
            Said(content=(*reminded, Text(text="Fix the bug"))),
        )
        == "Fix the bug"
    )


def test_the_first_words_are_found_behind_a_large_prompt(titled):
    tools = ({"name": "Bash", "description": "d" * 2 * END_BYTES},)
    assert titled(Framed(tools=tools), said("Fix the bug")) == "Fix the bug"


def test_a_session_without_words(titled):
    assert titled() == "(nothing said yet)"


def test_a_title_given_late_in_a_long_log(titled):
    assert titled(said("fix it"), *BULK, Titled(title="Late")) == "Late"


def test_a_title_given_early_in_a_long_log(titled):
    assert titled(Titled(title="Early"), said("fix it"), *BULK) == "Early"


def test_a_title_from_the_end_goes_before_one_from_the_beginning(titled):
    assert titled(Titled(title="Early"), *BULK, Titled(title="Late")) == "Late"


def test_long_titles_are_cut(titled):
    title = titled(said("word " * 100))
    assert len(title) == TITLE_CHARS
    assert title.endswith("…")


def test_a_long_first_message_still_gives_a_title(titled):
    assert titled(said("look at this: " + "x" * 2 * END_BYTES)).startswith("look at this: xxx")


def test_damaged_lines_are_passed_over(tmp_path):
    path = tmp_path / "s.jsonl"
    write_log(path, Header(session="s"), numbered([said("fix it")]))
    with path.open("ab") as file:
        file.write(b'{"entry":"titled","n":"x"}\n\xff\xfe\n{"entry":"titled","n":9,"tit')
    assert title_of(path) == "fix it"
