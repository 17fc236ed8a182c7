"""Parsing command lines: words, quotes, nesting, and doubts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.core.tools.shell_reader import read_script


def words(text):
    """Give the words of every command."""
    return [[word.text for word in command.words] for command in read_script(text).commands]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b  c", [["a", "b", "c"]]),
        ("a 'b c' \"d e\" f\\ g", [["a", "b c", "d e", "f g"]]),
        ("a;b&&c||d|e\nf", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]),
        ("r''m \"x\"y", [["rm", "xy"]]),
        ("a # b\nc", [["a"], ["c"]]),
        ("a#b", [["a#b"]]),
        ("a $(b c) d", [["b", "c"], ["a", "$(b c)", "d"]]),
        ("a `b c`", [["b", "c"], ["a", "`b c`"]]),
        ('a "$(b "c d")"', [["b", "c d"], ["a", '$(b "c d")']]),
        ("if a; then b; fi", [["a"], ["b"]]),
        ("cat <<E\nrm $(b)\nE\nc", [["cat"], ["b"], ["c"]]),
        ("sh <<'E'\nrm b\nE", [["sh"], ["rm", "b"]]),
        ("$'\\x72m' a", [["rm", "a"]]),
    ],
)
def test_commands_are_split_as_bash_splits_them(text, expected):
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "doubt"),
    [
        ("a $b", "expansion"),
        ("a {b,c}", "expansion"),
        ("a ~b", "expansion"),
        ("a $(b)", "substitution"),
        ("(a)", "group"),
        ("while a; do b; done", "group"),
        ("a &", "background"),
        ("a <<E\nE", "heredoc"),
        ("a 'b", "unreadable"),
        ("a )", "unreadable"),
        ("a <<E\nb", "unreadable"),
        ("a\u200b", "odd character"),
        ("a " * 501, "too long"),
        ("a;" * 5_001, "too long"),
        ("echo " + "$(" * 30, "too long"),
    ],
)
def test_what_cannot_be_proved_leaves_a_doubt(text, doubt):
    assert doubt in read_script(text).doubts


def test_redirections_are_kept_apart_from_words():
    (command,) = read_script("a 2>&1 >out <in b").commands
    assert [word.text for word in command.words] == ["a", "b"]
    assert [(r.operator, r.target.text) for r in command.redirects] == [
        (">&", "1"),
        (">", "out"),
        ("<", "in"),
    ]


def test_a_here_document_with_an_apostrophe_does_not_hide_what_follows():
    assert words("cat <<'E'\ndon't\nE\nrm a")[-1] == ["rm", "a"]


@given(st.text(max_size=80))
def test_any_text_is_read_without_raising(text):
    read_script(text)


@given(st.lists(st.text(alphabet="ab c'\"\\$`*;|&<>(){}#~\n", min_size=1, max_size=8), min_size=1))
def test_single_quotes_keep_every_character(parts):
    quoted = " ".join("'" + part.replace("'", "'\"'\"'") + "'" for part in parts)
    assert words("x " + quoted) == [["x", *parts]]
