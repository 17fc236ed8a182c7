"""Patterns for paths."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.agent.tools.globs import expand_braces, glob_expression


def _fits(pattern, path):
    return re.fullmatch(glob_expression(pattern), path, re.DOTALL) is not None


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.py", "a.py"),
        ("*.py", "deep/down/a.py"),
        ("**/*.py", "a.py"),
        ("**/*.py", "deep/down/a.py"),
        ("src/*.py", "src/a.py"),
        ("src/**", "src/deep/a.py"),
        ("src/**/test_*.py", "src/test_a.py"),
        ("src/**/test_*.py", "src/x/y/test_a.py"),
        ("*.{ts,tsx}", "a.tsx"),
        ("src/{a,b}/*.{c,h}", "src/b/x.h"),
        ("[a-c]?.txt", "b1.txt"),
        ("[!a]", "b"),
        ("[[:digit:]]", "7"),
        ("[]]", "]"),
        ("[+--]", ","),
        ("[--0]", "."),
        ("[a-]", "-"),
        (r"\*", "*"),
        ("[open", "[open"),
        ("./a.py", "a.py"),
        ("a**b", "axyb"),
    ],
)
def test_what_fits(pattern, path):
    assert _fits(pattern, path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("src/*.py", "src/deep/a.py"),
        ("src/*.py", "other/src/a.py"),
        ("*.py", "a.pyc"),
        ("?", "ab"),
        ("[!a]", "a"),
        ("a[!b]c", "a/c"),
        (r"\*", "a"),
        ("src/**", "src"),
        ("a*b", "a/b"),
    ],
)
def test_what_does_not_fit(pattern, path):
    assert not _fits(pattern, path)


@given(st.text(alphabet="ab*?[]!-{},/\\.^", max_size=12))
def test_no_pattern_breaks_the_translation(pattern):
    try:
        re.compile(glob_expression(pattern))
    except re.error as error:
        assert "bad character range" in str(error)


def test_braces_multiply_within_reason():
    assert expand_braces("{a,b}{1,2}") == ["a1", "a2", "b1", "b2"]
    assert len(expand_braces("{a,b}" * 40)) < 300
