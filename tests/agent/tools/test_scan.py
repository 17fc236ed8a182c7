"""The search process, on its own."""

import json
import os
import signal
import subprocess
import sys

import pytest

from longhold.agent.tools.grep import search as search_apart
from longhold.agent.tools.scan import Query, search


def _run(**query):
    return list(search(Query(**query)))


def test_lines_come_with_their_context(tmp_path):
    (tmp_path / "a").write_text("x\ny\nz\nz\nx\n")
    (tmp_path / "b").write_text("x")
    assert _run(path=str(tmp_path), pattern="x", after=1, mode="content") == [
        ("a", 1, "x", True),
        ("a", 2, "y", False),
        ("a", 5, "x", True),
        ("b", 1, "x", True),
    ]


def test_files_and_counts(tmp_path):
    (tmp_path / "a").write_text("x\n")
    assert _run(path=str(tmp_path), pattern="x") == ["a"]
    assert _run(path=str(tmp_path), pattern="x", mode="count") == [("a", 1)]
    assert _run(path=str(tmp_path), pattern="y") == []


def test_it_lists_files(tmp_path):
    for name in ("a.py", "b.txt"):
        (tmp_path / name).write_text("")
    assert _run(path=str(tmp_path), wanted=r".*\.py") == ["a.py"]


def test_a_query_survives_the_way_to_its_process():
    query = Query(path="/ä", pattern="\"'\n\\", before=3)
    assert Query(**json.loads(query.to_json())) == query


@pytest.mark.parametrize("is_multiline", [True, False])
@pytest.mark.parametrize("pattern", ["^", "$"])
def test_empty_matches_belong_to_the_line_they_are_in(tmp_path, pattern, is_multiline):
    (tmp_path / "a").write_text("x\n")
    (tmp_path / "empty").write_text("")
    (tmp_path / "unfinished").write_text("x")
    found = _run(path=str(tmp_path), pattern=pattern, is_multiline=is_multiline, mode="content")
    assert found == [("a", 1, "x", True), ("unfinished", 1, "x", True)]


async def test_names_with_odd_characters_survive(tmp_path):
    names = ["a b", "a\nb", "ä", "-dash", "x\udcff"]
    for name in names:
        (tmp_path / name).write_text("x")
    for pattern in ("", "x"):
        query = Query(path=str(tmp_path), pattern=pattern)
        assert sorted(await search_apart(query)) == sorted(names)


def test_a_process_without_its_caller_ends(tmp_path):
    (tmp_path / "a").write_text("a" * 60 + "\n")
    query = Query(path=str(tmp_path), pattern="(?=a)(a+)+$(?<=b)")
    code = "from longhold.agent.tools import scan; scan.LAST_SECONDS = 1; scan.main()"
    ended = subprocess.run(
        [sys.executable, "-P", "-c", code],
        input=query.to_json().encode(),
        env=dict(os.environ),
        timeout=30,
    )
    assert ended.returncode == -signal.SIGALRM
