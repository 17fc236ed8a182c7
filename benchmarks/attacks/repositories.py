"""Repositories from an archive that would run a program or open another repository."""

import hashlib
import os
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

Make = Callable[[Path, str], Path]
"""Makes a repository at a path that runs a program; returns where git has to be started."""


def git(place: Path, *words: str) -> None:
    identity = ("-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *words], cwd=place, check=True, capture_output=True)


def make_repository(place: Path) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    git(place, "init", "-q", "-b", "trunk", "--template=")
    (place / "one.txt").write_text("one\n")
    (place / ".gitattributes").write_text("*.txt filter=x diff=x\n")
    git(place, "add", ".")
    git(place, "commit", "-q", "-m", "first")
    (place / "one.txt").write_text("two\n")
    return place


def configured(key: str, value: str) -> Make:
    def make(place: Path, program: str) -> Path:
        make_repository(place)
        git(place, "config", key, value.format(program))
        return place

    return make


def included(place: Path, program: str) -> Path:
    """Settings of a file that the configuration includes."""
    make_repository(place)
    (place / "more").write_text(f"[core]\n\tfsmonitor = {program}\n")
    git(place, "config", "include.path", "../more")
    return place


def _bare_parts(place: Path, config: str) -> None:
    for name in ("objects/k", "refs/k"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("")
    (place / "config").write_text(config)


def bare(place: Path, program: str) -> Path:
    """A directory that is a repository without looking like one from above."""
    make_repository(place)
    trap = place / "sub"
    _bare_parts(trap, f"[core]\n\tbare = false\n\tworktree = ../e\n\tfsmonitor = {program}\n")
    (trap / "HEAD").write_text("ref: refs/heads/trunk\n")
    (place / "e").mkdir()
    return trap


def common_directory(place: Path, program: str) -> Path:
    """A directory whose objects, references and settings lie in another one."""
    make_repository(place)
    trap = place / "sub"
    trap.mkdir()
    (place / "e").mkdir()
    (trap / "HEAD").write_text("ref: refs/heads/trunk\n")
    (trap / "commondir").write_text("../subx\n")
    (trap / "config.worktree").write_text("[core]\n\tbare = false\n\tworktree = ../e\n")
    config = f"[core]\n\trepositoryformatversion = 1\n\tfsmonitor = {program}\n"
    _bare_parts(place / "subx", config + "[extensions]\n\tworktreeConfig = true\n")
    return trap


def git_file(place: Path, program: str) -> Path:
    """A `.git` that is a file and leads to a directory among the project's own."""
    make_repository(place)
    inner = make_repository(place / "inner")
    git(inner, "config", "core.fsmonitor", program)
    (inner / ".git").rename(place / "data")
    (inner / ".git").write_text("gitdir: ../data\n")
    return inner


def submodule(place: Path, program: str) -> Path:
    """A repository in the repository, which git looks into with that one's settings."""
    make_repository(place)
    inner = make_repository(place / "inner")
    git(place, "add", "inner")
    git(inner, "config", "core.fsmonitor", program)
    (place / ".gitmodules").write_text('[submodule "inner"]\n\tpath = inner\n\tignore = none\n')
    return place


HOSTILE = {
    "a file watcher": configured("core.fsmonitor", "{}"),
    "a text conversion": configured("diff.x.textconv", "{}"),
    "a diff driver": configured("diff.x.command", "{}"),
    "an external diff": configured("diff.external", "{}"),
    "a cleaning filter": configured("filter.x.clean", "{}; cat"),
    "a filter process": configured("filter.x.process", "{}"),
    "an included file": included,
    "a bare repository": bare,
    "a common directory": common_directory,
    "a git file": git_file,
    "a submodule": submodule,
}


def _forged_file(place: Path, other: Path) -> None:
    (place / ".git").write_text(f"gitdir: {other}/.git\n")


def _forged_link(place: Path, other: Path) -> None:
    (place / ".git").symlink_to(other / ".git")


def _forged_common(place: Path, other: Path) -> None:
    shutil.copytree(other / ".git", place / ".git")
    shutil.rmtree(place / ".git" / "objects")
    (place / ".git" / "commondir").write_text(f"{other}/.git\n")


def _borrowed_objects(place: Path, other: Path) -> None:
    shutil.copytree(other / ".git", place / ".git")
    shutil.rmtree(place / ".git" / "objects")
    (place / ".git" / "objects").symlink_to(other / ".git" / "objects")


def _alternate_objects(place: Path, other: Path) -> None:
    shutil.copytree(other / ".git", place / ".git")
    shutil.rmtree(place / ".git" / "objects")
    (place / ".git" / "objects" / "info").mkdir(parents=True)
    (place / ".git" / "objects" / "info" / "alternates").write_text(f"{other}/.git/objects\n")


def _foreign_files(place: Path, other: Path) -> None:
    shutil.copytree(other / ".git", place / ".git")
    git(place, "config", "core.worktree", str(other))


def _state_of_a_rebase(place: Path, other: Path) -> None:
    make_repository(place)
    state = place / ".git" / "rebase-merge"
    state.mkdir()
    (state / "interactive").touch()
    for name in ("done", "git-rebase-todo", "head-name", "onto"):
        (state / name).symlink_to(other / "secret.txt")


def _place_of_a_worktree(place: Path, other: Path) -> None:
    make_repository(place)
    state = place / ".git" / "worktrees" / "x"
    state.mkdir(parents=True)
    (state / "HEAD").write_text("ref: refs/heads/trunk\n")
    (state / "commondir").write_text("../..\n")
    (state / "gitdir").symlink_to(other / "secret.txt")


def _files_outside(place: Path, other: Path) -> None:
    _name_in_index(place, os.path.relpath(other / "secret.txt", place))


def _files_anywhere(place: Path, other: Path) -> None:
    _name_in_index(place, str(other / "secret.txt"))


def _files_behind_a_link(place: Path, other: Path) -> None:
    _name_in_index(place, "behind/secret.txt")
    (place / "behind").symlink_to(other)


def _name_in_index(place: Path, name: str) -> None:
    """Write the index ourselves; git adds no such name, and opens it all the same."""
    make_repository(place)
    entry = struct.pack(">10I", 0, 0, 0, 0, 0, 0, 0o100644, 0, 0, 0) + bytes(20)
    entry += struct.pack(">H", len(name)) + name.encode()
    index = b"DIRC" + struct.pack(">II", 2, 1) + entry + bytes(8 - len(entry) % 8)
    (place / ".git" / "index").write_bytes(index + hashlib.sha1(index).digest())


def forge_repositories() -> tuple[Callable[[Path, Path], None], ...]:
    """Return the ways to make what lies outside appear to be this repository's."""
    return (
        _forged_file,
        _forged_link,
        _forged_common,
        _borrowed_objects,
        _alternate_objects,
        _foreign_files,
        _state_of_a_rebase,
        _place_of_a_worktree,
        _files_outside,
        _files_anywhere,
        _files_behind_a_link,
    )
