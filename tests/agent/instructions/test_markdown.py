"""Telling prose from code in Markdown: comments, imports, and linear time."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.agent.instructions.gathering import find_imports, without_comments


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("See @docs/a.md and @~/b.md.", ("docs/a.md", "~/b.md.")),
        ("(@a.md)", ("a.md)",)),
        ("- @./one.md\n- @../two.md", ("./one.md", "../two.md")),
        ("@a.md @a.md", ("a.md",)),
        (r"@with\ space.md", ("with space.md",)),
        ("write to me@example.org", ()),
        ("`@a.md` and ``b ` @c.md``", ()),
        ("a `lonely tick, then @a.md", ("a.md",)),
        ("a span `over\ntwo @no.md lines` @yes.md", ("yes.md",)),
        ("tick ` here\n\n@a.md and ` there", ("a.md",)),
        ("```\n@a.md\n```\n@b.md", ("b.md",)),
        ("~~~ py\n@a.md\n```\n@b.md\n~~~\n@c.md", ("c.md",)),
        ("- ```\n  @a.md\n  ```\n- @b.md", ("b.md",)),
        ("never closed:\n```\n@a.md", ()),
        ("``` not a fence ``` @a.md", ("a.md",)),
        ("- item\n\n    @a.md", ("a.md",)),
        ("a paragraph\n    @goes/on.md", ("goes/on.md",)),
        ("<!-- @a.md -->\n@b.md", ("b.md",)),
        ("@ @@ @- @", ()),
    ],
)
def test_imports_are_found_in_prose_alone(text, found):
    assert find_imports(text) == found


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a\n<!-- for people -->\nb", "a\nb"),
        ("<!-- one\n\ntwo\n--> three", " three"),
        ("<!-- one --><!-- two -->\nthree", "three"),
        ("keep `<!-- this -->` and <!-- that -->", "keep `<!-- this -->` and <!-- that -->"),
        ("```\n<!-- code -->\n```", "```\n<!-- code -->\n```"),
        ("<!-- ``` -->\n@a.md", "@a.md"),
        ("rules\n<!-- never closed\nmore rules", "rules\n<!-- never closed\nmore rules"),
        ("<!-->\nafter", "after"),
    ],
)
def test_block_comments_go_and_all_else_stays(text, left):
    assert without_comments(text) == left


@given(st.text(alphabet=" \t\n`~@<>!-ab.*1"))
def test_without_comments_and_imports_no_text_is_refused(text):
    left = without_comments(text)
    assert all(line in text for line in left.split("\n"))
    assert all("\n" not in path for path in find_imports(text))


@pytest.mark.parametrize("piece", ["<!--\n", "` `` ``` ", "`a\n\n", "@a ", "```\n", "<!-- -->\n"])
def test_the_time_grows_with_the_text(piece):
    find_imports("@" + piece * 1_000)
    began = time.process_time()
    find_imports("@" + piece * 60_000)
    without_comments(piece * 60_000)
    assert time.process_time() - began < 5
