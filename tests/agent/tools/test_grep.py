"""Grep and Glob, in a small project."""

import asyncio
import os
from pathlib import Path

import pytest

from longhold.agent.tools.process import group_members


def _tree(tool_context, files):
    for age, (name, content) in enumerate(files.items()):
        path = tool_context.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        os.utime(path, ns=(0, 1_000_000_000 * (1_000 - age)))


@pytest.fixture
def tree(tool_context):
    """A small project, newest file first."""
    _tree(
        tool_context,
        {
            "src/new.py": "import os\n\ndef find():\n    return os\n",
            "src/old.py": "def lose():\n    pass\n# find\n",
            "README.md": "How to find things.\n",
            "ignored.py": "find\n",
            ".gitignore": "ignored.py\n",
            "pic.bin": b"find\0find\n",
            "win.txt": b"find\r\nthis\r\n",
        },
    )


async def test_names_come_newest_first(tree, said):
    assert await said("Grep", pattern="find") == "src/new.py\nsrc/old.py\nREADME.md\nwin.txt"


async def test_lines_come_under_their_file(tree, said):
    assert await said("Grep", pattern="find", output_mode="content") == (
        "README.md\n1:How to find things.\n\n"
        "src/new.py\n3:def find():\n\n"
        "src/old.py\n3:# find\n\n"
        "win.txt\n1:find"
    )


async def test_lines_around_a_match_are_marked_and_gaps_shown(tool_context, said):
    _tree(tool_context, {"a.txt": "".join(f"{n}\n" for n in range(1, 21))})
    more = {"-A": 1, "-B": 1}
    assert await said("Grep", more, pattern="^(3|4|15)$", output_mode="content") == (
        "a.txt\n2-2\n3:3\n4:4\n5-5\n--\n14-14\n15:15\n16-16"
    )


async def test_context_in_several_files_has_no_stray_separator(tree, said):
    shown = await said("Grep", {"-C": 1}, pattern="def", output_mode="content")
    assert shown == (
        "src/new.py\n2-\n3:def find():\n4-    return os\n\nsrc/old.py\n1:def lose():\n2-    pass"
    )


async def test_counts_come_with_their_sum(tree, said):
    assert await said("Grep", pattern="find|def", output_mode="count") == (
        "README.md:1\nsrc/new.py:1\nsrc/old.py:2\nwin.txt:1\n[5 matching lines in 4 files.]"
    )


async def test_a_glob_and_a_type_narrow_it(tree, said):
    assert await said("Grep", pattern="find", glob="*.{py,txt}") == (
        "src/new.py\nsrc/old.py\nwin.txt"
    )
    assert await said("Grep", pattern="find", type="py", glob="src/n*") == "src/new.py"
    assert await said("Grep", pattern="find", type="md") == "README.md"


async def test_a_glob_does_not_bring_ignored_files_back(tree, said):
    assert "ignored" not in await said("Grep", pattern="find", glob="*.py")


async def test_one_file_needs_no_heading(tree, said):
    assert await said("Grep", pattern="find", path="ignored.py", output_mode="content") == "1:find"


async def test_a_directory_as_path(tree, said):
    assert await said("Grep", pattern="find", path="src") == "src/new.py\nsrc/old.py"


async def test_case_can_be_ignored_and_numbers_left_out(tree, said):
    found = await said(
        "Grep", {"-i": True, "-n": False}, pattern="HOW", output_mode="content", path="README.md"
    )
    assert found == "How to find things."


async def test_a_pattern_stays_within_a_line_unless_told(tree, said):
    pattern = r"import os\s+def"
    assert "Nothing matches" in await said("Grep", pattern=pattern)
    found = await said("Grep", pattern=pattern, multiline=True, output_mode="content")
    assert found == "src/new.py\n1:import os\n2:\n3:def find():"


async def test_a_line_end_is_the_end_of_a_windows_line_too(tree, said):
    assert await said("Grep", pattern="find$", glob="*.txt") == "win.txt"


async def test_look_around_works(tree, said):
    assert await said("Grep", pattern="find(?= things)") == "README.md"


async def test_words_and_classes_work(tree, said):
    assert await said("Grep", pattern=r"\bfind\b[[:space:]]things") == "README.md"
    assert await said("Grep", pattern=r"\<to\>") == "README.md"


async def test_a_wrong_expression_is_told(tree, refused):
    assert "is not a regular expression" in await refused("Grep", pattern="(")


async def test_nothing_found_is_no_error(tree, said):
    assert await said("Grep", pattern="nowhere") == (
        "Nothing matches 'nowhere' in the working directory."
    )


async def test_results_come_in_portions(tool_context, said):
    _tree(tool_context, {"a.txt": "".join(f"x{n}\n" for n in range(600))})
    first = await said("Grep", pattern="x", output_mode="content", path="a.txt")
    assert first.endswith("\n[There is more; continue with offset 250, or narrow the search.]")
    assert first.count("\n") == 250
    rest = await said(
        "Grep", pattern="x", output_mode="content", path="a.txt", offset=250, head_limit=400
    )
    assert rest.startswith("251:x250\n") and rest.endswith("\n600:x599")


async def test_a_long_line_is_cut(tool_context, said):
    _tree(tool_context, {"a.min.js": "x" * 300_000 + "needle\n" + "needle\n"})
    found = await said("Grep", pattern="x*needle", output_mode="content")
    assert found == f"a.min.js\n1:{'x' * 500}… [long line]\n2:needle"


async def test_other_encodings_are_searched(tool_context, said):
    _tree(tool_context, {"a": "\ufefffind\n".encode("utf-16-le"), "b": b"caf\xe9 find\n"})
    assert await said("Grep", pattern="find", output_mode="content") == (
        "a\n1:find\n\nb\n1:café find"
    )


async def test_a_pattern_that_never_ends_is_given_up(tool_context, refused, monkeypatch):
    monkeypatch.setattr("longhold.agent.tools.grep.SEARCH_SECONDS", 0.5)
    _tree(tool_context, {"a.txt": "a" * 40 + "\n"})
    pattern = "(?=a)(a+)+$(?<=b)"
    for mode in ("content", "files_with_matches"):
        async with asyncio.timeout(10):
            reason = await refused("Grep", pattern=pattern, output_mode=mode)
        assert "took over" in reason


def _children():
    listed = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text()
    return set(map(int, listed.split()))


async def test_a_search_can_be_cancelled(tool_context, use, until):
    _tree(tool_context, {"a.txt": "a" * 60 + "\n"})
    before = _children()
    task = asyncio.create_task(use("Grep", pattern="(?=a)(a+)+$(?<=b)"))
    await until(lambda: _children() - before)
    (group,) = _children() - before
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert group_members(group) == ()


async def test_what_is_not_there_is_told(refused):
    assert "does not exist" in await refused("Grep", pattern="x", path="nowhere")


async def test_files_are_found_by_name_newest_first(tree, said):
    assert await said("Glob", pattern="**/*.py") == "src/new.py\nsrc/old.py"
    assert await said("Glob", pattern="*.md") == "README.md"
    assert await said("Glob", pattern="*.py", path="src") == "src/new.py\nsrc/old.py"
    assert await said("Glob", pattern="*.rs") == "No file in the working directory is like *.rs."


async def test_at_most_a_hundred_files_are_listed(tool_context, said):
    _tree(tool_context, {f"{n:03}.txt": "" for n in range(120)})
    lines = (await said("Glob", pattern="*.txt")).split("\n")
    assert lines[:100] == [f"{n:03}.txt" for n in range(100)]
    assert lines[100:] == ["[The 100 newest of 120 files; ask more narrowly.]"]


async def test_a_pattern_names_no_place_of_its_own(tree, refused):
    assert "give the directory there" in await refused("Glob", pattern="/etc/*")
    assert "is a file" in await refused("Glob", pattern="*", path="README.md")
    assert "is not a path pattern" in await refused("Glob", pattern="[z-a]")


async def test_a_pipe_is_not_searched(tool_context, use, tree):
    os.mkfifo(tool_context.root / "pipe")
    outcome = await asyncio.wait_for(use("Grep", pattern="find", path="pipe"), 10)
    assert outcome.is_error
    outcome = await asyncio.wait_for(use("Grep", pattern="find"), 10)
    assert "old.py" in outcome.content
