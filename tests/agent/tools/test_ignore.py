"""Which files of a tree are ignored."""

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.agent.tools.globs import parse_rule, walk


def _tree(top, files):
    for name, content in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def test_rules_nest_and_can_be_taken_back(tmp_path):
    _tree(
        tmp_path,
        {
            ".gitignore": "*.log\n!keep.log\nbuild/\n/top.txt\n# no rule\n\n",
            "a.log": "",
            "keep.log": "",
            "top.txt": "",
            "sub/top.txt": "",
            "sub/.gitignore": "!b.log\n*.txt\n!top.txt\n",
            "sub/b.log": "",
            "sub/x.txt": "",
            "build/keep.log": "",
            "sub/build/x": "",
            "sub/build.py": "",
        },
    )
    assert list(walk(tmp_path)) == [
        ".gitignore",
        "keep.log",
        "sub/.gitignore",
        "sub/b.log",
        "sub/build.py",
        "sub/top.txt",
    ]


def test_rules_above_the_search_hold_up_to_the_repository(tmp_path):
    _tree(
        tmp_path,
        {
            ".gitignore": "*.py\n",
            "repo/.gitignore": "*.log\n",
            "repo/.git/info/exclude": "*.tmp\n",
            "repo/src/a.py": "",
            "repo/src/a.log": "",
            "repo/src/a.tmp": "",
        },
    )
    assert list(walk(tmp_path / "repo" / "src")) == ["a.py"]


def test_an_ignored_directory_can_be_searched_by_name(tmp_path):
    _tree(tmp_path, {".gitignore": "vendor/\n", "vendor/a.py": "", ".git/x": ""})
    assert list(walk(tmp_path)) == [".gitignore"]
    assert list(walk(tmp_path / "vendor")) == ["a.py"]


def test_links_and_version_control_are_not_followed(tmp_path):
    _tree(tmp_path, {"a/x": "", ".hg/x": "", ".svn/y": "", ".hidden": ""})
    (tmp_path / "a" / "loop").symlink_to("..")
    (tmp_path / "link").symlink_to("a/x")
    assert list(walk(tmp_path)) == [".hidden", "a/x"]


@pytest.mark.parametrize("line", ["", "   ", "# x", "!", "/", "[z-a]"])
def test_nonsense_is_no_rule(line):
    assert parse_rule(line) is None


def test_an_escaped_space_and_hash_are_part_of_the_name():
    assert parse_rule("a\\ ").expression.fullmatch("a ")
    assert parse_rule("\\#a").expression.fullmatch("#a")
    assert parse_rule("a  ").expression.fullmatch("a")


NAMES = st.sampled_from(["a", "b", "a.log", "b.py", "d"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
LINES = st.sampled_from(
    ["a", "*.log", "!a.log", "/a", "d/", "!d/", "a/**", "**/b", "a/*/b", "a/b", "*", "!*.py", "?"]
)
RULES = st.lists(LINES, max_size=4).map("\n".join)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is the judge")
@given(st.sets(PATHS, max_size=8), RULES, RULES)
def test_git_agrees(tmp_path_factory, paths, at_top, in_d):
    top = tmp_path_factory.mktemp("repo")
    for path in sorted(paths):
        # A name may be wanted as a file and as a directory; the first one stays.
        try:
            (top / path).parent.mkdir(parents=True, exist_ok=True)
            (top / path).write_text("")
        except OSError:
            continue
    (top / "d").mkdir(exist_ok=True) if not (top / "d").is_file() else None
    (top / ".gitignore").write_text(at_top)
    if (top / "d").is_dir():
        (top / "d" / ".gitignore").write_text(in_d)
    git = ["git", "-C", str(top)]
    subprocess.run([*git, "init", "-q"], check=True)
    listed = subprocess.run(
        [*git, "ls-files", "--others", "--exclude-standard", "-z"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert sorted(walk(top)) == sorted(filter(None, listed.stdout.split("\0")))


def test_linked_and_long_files_of_rules_are_not_read(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / "a.log").touch()
    (tmp_path / "rules").write_text("*.log\n")
    (tmp_path / ".gitignore").symlink_to("rules")
    assert "a.log" in list(walk(tmp_path))
    (tmp_path / ".gitignore").unlink()
    (tmp_path / ".gitignore").symlink_to("/dev/zero")
    assert "a.log" in list(walk(tmp_path))
    (tmp_path / ".gitignore").unlink()
    (tmp_path / ".gitignore").write_text("*.log\n")
    assert "a.log" not in list(walk(tmp_path))
    (tmp_path / ".gitignore").write_text("*.log\n" + "#" * (1 << 20))
    assert "a.log" in list(walk(tmp_path))
