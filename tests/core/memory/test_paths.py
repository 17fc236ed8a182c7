"""The directory of memories, and names that may not lead there."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.core.memory.memory import MemoryRefused
from longhold.core.memory.paths import (
    check_memory_name,
    check_place,
    memory_directory,
    team_directory,
)

ATTACKS = [
    "../escape.md",
    "a/../../escape.md",
    "/etc/passwd.md",
    "~/x.md",
    "..",
    ".",
    "",
    ".hidden.md",
    "a/.git/b.md",
    "a//b.md",
    "a/./b.md",
    "a\\..\\b.md",
    "C:\\x.md",
    "a\0.md",
    "a\n.md",
    "a b.md",
    "%2e%2e%2fescape.md",
    "..%2f.md",
    "\uff0e\uff0e\uff0fescape.md",  # full-width dots and slash
    "\u2025/escape.md",  # a two-dot leader becomes two dots
    "a\u2044b.md",  # a fraction slash
    "a\u200b.md",  # no width
    "a\u202egpj.md",  # turns the direction
    "cafe\u0301.md",  # not composed
    "\ufb01le.md",  # a ligature
    "MEMORY.md",
    "memory.MD.md/../MEMORY.md",
    "Memory.md",
    "team/MEMORY.md",
    "notes.txt",
    "notes",
    ".md",
    "a.md/b.md",
    "a/b/c/d.md",
    "x" * 98 + ".md",
    "a*.md",
    "a|b.md",
    "$(touch x).md",
]


@pytest.mark.parametrize("name", ATTACKS)
def test_a_name_that_could_lead_elsewhere_is_refused(name):
    with pytest.raises(MemoryRefused, match="cannot name a memory"):
        check_memory_name(name)


@pytest.mark.parametrize("name", ["deploy.md", "a_b-c.1.md", "ops/db.md", "a/b/c.md", "größe.md"])
def test_a_plain_name_is_taken(name):
    assert check_memory_name(name) == name


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_name_leads_out_of_the_directory(tmp_path, first, second):
    for name in (first, second, f"{first}/{second}.md", f"../{first}.md"):
        try:
            place = check_place(tmp_path, name)
        except MemoryRefused:
            continue
        assert place.resolve().is_relative_to(tmp_path.resolve())
        assert place != tmp_path


def test_a_link_on_the_way_is_refused(tmp_path):
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir(), outside.mkdir()
    (root / "linked").symlink_to(outside)
    (root / "file.md").symlink_to(outside / "target.md")
    (root / "dangling.md").symlink_to(root / "nowhere")
    for name in ("linked/x.md", "file.md", "dangling.md"):
        with pytest.raises(MemoryRefused, match="behind a link"):
            check_place(root, name)


def test_worktrees_and_subdirectories_share_a_directory(tmp_path):
    repository, worktree = tmp_path / "repo", tmp_path / "tree"
    (repository / "src").mkdir(parents=True)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*git, *words], cwd=repository, check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(worktree)], cwd=repository, check=True)
    home = tmp_path / "home"
    places = {memory_directory(home, d) for d in (repository, repository / "src", worktree)}
    assert len(places) == 1
    assert team_directory(worktree) == worktree / ".longhold" / "team"
    assert team_directory(repository / "src") == repository / ".longhold" / "team"


def test_two_projects_share_nothing(tmp_path):
    home = tmp_path / "home"
    assert memory_directory(home, tmp_path / "a") != memory_directory(home, tmp_path / "b")


@pytest.mark.parametrize("chosen", ["relative", "/", "/tmp", "a\0b"])
def test_a_chosen_directory_must_be_a_whole_path(tmp_path, chosen):
    with pytest.raises(MemoryRefused, match="absolute path"):
        memory_directory(tmp_path, tmp_path, chosen)
