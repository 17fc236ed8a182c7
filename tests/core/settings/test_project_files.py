"""Project files from others: only regular and short files inside the project are read."""

import os
from pathlib import Path

import pytest

from longhold.core.settings.project import UnusableFile, checkout_top, project_root, read_text


def test_text_comes_without_mark_and_with_plain_line_ends(tmp_path):
    (tmp_path / "a.md").write_bytes(b"\xef\xbb\xbfone\r\ntwo\rthree\n")
    assert read_text(tmp_path / "a.md", 100) == "one\ntwo\nthree\n"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"x" * 101, "it is larger than 100 bytes"),
        (b"a\0b", "it is not text"),
        (b"\xff\xfe", "it is not UTF-8 text"),
    ],
)
def test_what_is_no_short_text_is_not_used(tmp_path, content, reason):
    (tmp_path / "a.md").write_bytes(content)
    with pytest.raises(UnusableFile, match=reason):
        read_text(tmp_path / "a.md", 100)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.md")
    with pytest.raises(UnusableFile, match="not a regular file"):
        read_text(tmp_path / "a.md", 100)


def test_devices_are_not_read():
    with pytest.raises(UnusableFile, match="not a regular file"):
        read_text(Path("/dev/zero"), 100)


def test_a_link_put_there_since_the_look_is_not_followed(tmp_path):
    (tmp_path / "secret").write_text("key")
    (tmp_path / "a.md").symlink_to(tmp_path / "secret")
    with pytest.raises(UnusableFile):
        read_text(tmp_path / "a.md", 100, within=tmp_path / "a.md")


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(UnusableFile, match="no such file"):
        read_text(tmp_path / "a.md", 100)


@pytest.mark.parametrize("link", ["../outside.md", "/etc/hostname", "sub/../../outside.md"])
def test_no_link_leaves_the_project(tmp_path, link):
    (tmp_path / "outside.md").write_text("key")
    project = tmp_path / "project"
    (project / "sub").mkdir(parents=True)
    (project / "a.md").symlink_to(link)
    with pytest.raises(UnusableFile, match="leads out of the project"):
        read_text(project / "a.md", 100, within=project)


def test_a_directory_on_the_way_is_no_way_out(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.md").write_text("key")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "sub").symlink_to(tmp_path / "outside")
    with pytest.raises(UnusableFile, match="leads out of the project"):
        read_text(tmp_path / "project" / "sub" / "a.md", 100, within=tmp_path / "project")


def test_links_within_the_project_are_followed(tmp_path):
    (tmp_path / "AGENTS.md").write_text("text")
    (tmp_path / "a.md").symlink_to("AGENTS.md")
    (tmp_path / "loop.md").symlink_to("loop.md")
    assert read_text(tmp_path / "a.md", 100, within=tmp_path) == "text"
    with pytest.raises(UnusableFile):
        read_text(tmp_path / "loop.md", 100, within=tmp_path)


@pytest.fixture
def victim(tmp_path):
    """A repository with one worktree, as git lays it out."""
    git = tmp_path / "victim" / ".git" / "worktrees" / "own"
    git.mkdir(parents=True)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / ".git").write_text(f"gitdir: {git}\n")
    (git / "gitdir").write_text(f"{tmp_path / 'own' / '.git'}\n")
    return tmp_path / "victim"


def test_a_worktree_belongs_to_its_repository(victim, tmp_path):
    assert project_root(tmp_path / "own") == victim
    assert checkout_top(tmp_path / "own") == tmp_path / "own"


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives a directory to another user")
@pytest.mark.parametrize("given", [".", ".git"])
def test_another_users_repository_above_is_not_the_project(tmp_path, given):
    mine = tmp_path / "mine"
    (mine / "deep").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    assert project_root(mine) == checkout_top(mine) == tmp_path
    os.chown(tmp_path / given, 65534, -1)
    assert project_root(mine) == checkout_top(mine) == mine
    (mine / ".git").mkdir()
    assert project_root(mine / "deep") == mine


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives a directory to another user")
def test_the_repository_of_the_directorys_owner_is_the_project(tmp_path):
    """As in a container, where root works in files of the user outside."""
    (tmp_path / "deep").mkdir()
    (tmp_path / ".git").mkdir()
    for place in (tmp_path, tmp_path / ".git", tmp_path / "deep"):
        os.chown(place, 65534, -1)
    assert project_root(tmp_path / "deep") == tmp_path


@pytest.mark.parametrize("name", ["own", "new"])
def test_nobody_joins_a_repository_by_naming_it(victim, tmp_path, name):
    forged = tmp_path / "archive"
    forged.mkdir()
    (forged / ".git").write_text(f"gitdir: {victim / '.git' / 'worktrees' / name}\n")
    assert project_root(forged) == forged
