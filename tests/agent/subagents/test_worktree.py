"""Worktrees: created, removed if unchanged, kept otherwise, found after a crash."""

import os
import signal
import subprocess
import sys

import pytest

from longhold.agent.subagents.worktree import finish, make_worktree, sweep
from longhold.core.settings import home
from longhold.core.settings.project import project_root
from longhold.errors import ConfigError, StoreError


def _git(directory, *words):
    identity = ("-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *identity, *words], cwd=directory, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path):
    """A repository with one commit."""
    place = tmp_path / "project"
    place.mkdir()
    _git(place, "init", "-q", "-b", "trunk")
    (place / "a.txt").write_text("one\n")
    (place / ".gitignore").write_text("*.log\n")
    _git(place, "add", ".")
    _git(place, "commit", "-q", "-m", "first")
    return place


def _branches(repository):
    return _git(repository, "branch", "--format=%(refname:short)").split()


def _nothing_left(repository):
    assert _branches(repository) == ["trunk"]
    assert len(_git(repository, "worktree", "list").splitlines()) == 1
    left = [path.name for path in (home() / "worktrees").glob("*/*")]
    assert [name for name in left if not name.endswith(".lock")] == []


def test_an_agent_gets_its_own_files_on_its_own_branch(repository):
    tree = make_worktree(repository, "fix-1")
    assert (tree.path / "a.txt").read_text() == "one\n"
    assert _git(tree.path, "branch", "--show-current") == tree.record.branch == "longhold-fix-1"
    assert _git(repository, "status", "--porcelain") == ""
    assert project_root(tree.path) == repository.resolve()
    finish(tree)


def test_an_unchanged_one_is_removed(repository):
    tree = make_worktree(repository, "fix-1")
    (tree.path / "run.log").write_text("noise")
    assert finish(tree) is None
    _nothing_left(repository)


def test_changed_files_keep_it(repository):
    for name, file in (("one", "a.txt"), ("two", "new.txt")):
        tree = make_worktree(repository, name)
        (tree.path / file).write_text("other\n")
        kept = finish(tree)
        assert (kept.path, kept.branch) == (tree.path, tree.record.branch)
        assert kept.why == "files were changed"
        assert (tree.path / file).read_text() == "other\n"


def test_commits_keep_it(repository):
    for name, move in (("one", ()), ("two", ("checkout", "-q", "--detach"))):
        tree = make_worktree(repository, name)
        if move:
            _git(tree.path, *move)
        _git(tree.path, "commit", "-q", "--allow-empty", "-m", "work")
        kept = finish(tree)
        assert kept is not None and "commits were made" in kept.why


def test_where_there_is_no_repository_it_says_so(tmp_path):
    (tmp_path / "plain").mkdir()
    with pytest.raises(StoreError, match="there is no repository"):
        make_worktree(tmp_path / "plain", "x")
    _git(tmp_path / "plain", "init", "-q")
    with pytest.raises(StoreError, match="no commit yet"):
        make_worktree(tmp_path / "plain", "x")


@pytest.mark.parametrize("name", ["../x", "a/b", "a\n", "", "-b", "x y", "x..y", "x.lock"])
def test_a_name_is_a_name(repository, name):
    with pytest.raises(ConfigError, match="cannot name"):
        make_worktree(repository, name)
    assert _branches(repository) == ["trunk"]


def test_a_name_or_branch_that_is_taken_is_refused(repository):
    tree = make_worktree(repository, "one")
    with pytest.raises(StoreError, match="already"):
        make_worktree(repository, "one")
    _git(repository, "branch", "longhold-two")
    with pytest.raises(StoreError, match="branch 'longhold-two' already"):
        make_worktree(repository, "two")
    assert "longhold-two" in _branches(repository)
    assert finish(tree) is None


def test_the_repositorys_hooks_do_not_run(repository):
    hooks = repository / "hooks"
    hooks.mkdir()
    (hooks / "post-checkout").write_text(f"#!/bin/sh\ntouch {repository}/ran\n")
    (hooks / "post-checkout").chmod(0o755)
    (hooks / "reference-transaction").write_text(f"#!/bin/sh\ntouch {repository}/ran\n")
    (hooks / "reference-transaction").chmod(0o755)
    _git(repository, "config", "core.hooksPath", str(hooks))
    tree = make_worktree(repository, "one")
    assert finish(tree) is None
    assert not (repository / "ran").exists()


def test_the_repositorys_file_watcher_does_not_run(repository):
    _git(repository, "config", "core.fsmonitor", f"touch {repository}/ran; false")
    assert finish(make_worktree(repository, "one")) is None
    assert not (repository / "ran").exists()


def test_variables_do_not_lead_git_elsewhere(repository, monkeypatch, tmp_path):
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    tree = make_worktree(repository, "one")
    assert finish(tree) is None
    monkeypatch.delenv("GIT_DIR")
    monkeypatch.delenv("GIT_INDEX_FILE")
    _nothing_left(repository)


MAKER = """
import sys, pathlib, time
from longhold.agent.subagents.worktree import make_worktree
tree = make_worktree(pathlib.Path(sys.argv[1]), sys.argv[2])
for file in sys.argv[3:]:
    (tree.path / file).write_text("work")
print("made", flush=True)
time.sleep(60)
"""


def _killed(repository, name, *files):
    child = subprocess.Popen(
        [sys.executable, "-c", MAKER, str(repository), name, *files], stdout=subprocess.PIPE
    )
    assert child.stdout.readline() == b"made\n"
    return child


def test_what_a_killed_process_left_is_swept(repository):
    dead, worker, alive = (
        _killed(repository, "dead"),
        _killed(repository, "worker", "new.txt"),
        _killed(repository, "alive"),
    )
    try:
        for child in (dead, worker):
            os.kill(child.pid, signal.SIGKILL)
            child.wait()
        kept = sweep(repository)
        assert [(one.path.name, one.why) for one in kept] == [("worker", "files were changed")]
        assert sorted(_branches(repository)) == ["longhold-alive", "longhold-worker", "trunk"]
        assert (kept[0].path / "new.txt").read_text() == "work"
    finally:
        os.kill(alive.pid, signal.SIGKILL)
        for child in (dead, worker, alive):
            child.wait()
            child.stdout.close()
    assert [one.path.name for one in sweep(repository)] == ["worker"]
    assert sorted(_branches(repository)) == ["longhold-worker", "trunk"]


def test_a_worktree_that_was_never_finished_is_removed(repository):
    tree = make_worktree(repository, "one")
    (tree.path / "a.txt").unlink()
    record = tree.path.with_name("one.json")
    record.write_text(record.read_text().replace("true", "false"))
    os.close(tree.lock)
    assert sweep(repository) == []
    _nothing_left(repository)


def test_a_branch_that_moved_on_is_never_deleted(repository):
    tree = make_worktree(repository, "one")
    _git(tree.path, "commit", "-q", "--allow-empty", "-m", "work")
    os.close(tree.lock)
    _git(repository, "worktree", "remove", "--force", str(tree.path))
    assert [one.branch for one in sweep(repository)] == ["longhold-one"]
    assert "longhold-one" in _branches(repository)


@pytest.mark.parametrize("part", ["smudge", "process", "clean"])
def test_the_repositorys_filters_do_not_run(repository, tmp_path, part):
    trace = tmp_path / "trace"
    (repository / ".gitattributes").write_text("*.txt filter=x\n")
    _git(repository, "add", ".")
    _git(repository, "commit", "-q", "-m", "attributes")
    _git(repository, "config", f"filter.x.{part}", f"touch {trace}; cat")
    _git(repository, "config", "filter.x.required", "true")
    tree = make_worktree(repository, "fix-1")
    assert (tree.path / "a.txt").read_text() == "one\n"
    (tree.path / "a.txt").write_text("two\n")
    assert finish(tree).why == "files were changed"
    assert not trace.exists()
