"""Checks whether git, run in a directory, could run programs that the repository chose.

Git itself reports where it takes files and settings from, so its rules are not reimplemented.
Unknown settings and files in unusual places make a repository untrusted.
"""

import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path

from longhold.agent.permissions.places import Places, is_below
from longhold.agent.tools.git import list_settings, run_git
from longhold.errors import StoreError

INSPECT_SECONDS = 5.0
"""Git answers in milliseconds; a named pipe in place of a file would block it forever."""
MAX_SUBMODULES = 50
"""A repository with more submodules is not trusted."""
MAX_GIT_FILES = 20_000
"""Files in `.git` besides objects and hooks; few repositories have hundreds."""

_HARMLESS = re.compile(
    r"core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode"
    r"|symlinks|autocrlf|eol|safecrlf|abbrev|quotepath|longpaths|worktree|sparsecheckout"
    r"|sparsecheckoutcone|untrackedcache|commitgraph|preloadindex|compression|trustctime"
    r"|sharedrepository|protecthfs|protectntfs|hidedotfiles|hookspath)"
    r"|remote\.(.*\.)?(url|fetch|pushurl|push|tagopt|prune|prunetags|mirror|gh-resolved|pushdefault)"
    r"|(user|author|committer)\.\w+"
    r"|(branch|pull|push|rebase|init|advice|color|gui|http|gc|fetch)\..*"
    r"|submodule\.(.*\.)?(url|active|branch|update|ignore)"
    r"|extensions\.(objectformat|refstorage|worktreeconfig)"
    r"|(commit|tag)\.gpgsign|lfs\.(repositoryformatversion|.*\.(access|locksverify))",
    re.IGNORECASE | re.DOTALL,
)
"""Settings that run nothing in a read-only command, where hooks are disabled."""

_COMPARING = frozenset({"status", "diff", "describe"})
"""These run git in every submodule."""
_OPENING = _COMPARING | {"grep"}
"""These open the files in the index, wherever they are."""


def suspect(directory: Path, verbs: frozenset[str], places: Places) -> str:
    """Return why git must not run here without a prompt, or ""."""
    if not directory.is_dir():
        return ""
    try:
        return _suspect(directory, verbs, places, depth=0)
    except StoreError:
        return "git does not report where its settings come from"


def _suspect(directory: Path, verbs: frozenset[str], places: Places, *, depth: int) -> str:
    asked = ("--path-format=absolute", "--git-dir", "--git-common-dir", "--show-toplevel")
    found = run_git(directory, "rev-parse", *asked, timeout_seconds=INSPECT_SECONDS)
    paths = [Path(line) for line in found.stdout.decode("utf-8", "surrogateescape").splitlines()]
    if not paths and found.returncode:
        return _no_repository(directory)
    if found.returncode or len(paths) != 3:
        return "this directory is a bare repository"
    git, common, top = (path.resolve() for path in paths)
    if not _is_usual(git, common, top, places) or _has_special_files({git, common}):
        return "git would read its files from an unusual place"
    for is_own, key, value in list_settings(directory, timeout_seconds=INSPECT_SECONDS):
        is_switch = key == "core.fsmonitor" and value in ("true", "false")
        if is_own and not is_switch and not _HARMLESS.fullmatch(key):
            return f"the repository sets {key!r}, which could run a program"
        if key.endswith(".insteadof") and "remote" in verbs:
            return "addresses are rewritten, which can put a password in them"
    return _suspect_index(top, verbs, places, depth) if verbs & _OPENING else ""


def _no_repository(directory: Path) -> str:
    """Check for a directory that another version of git would accept as a repository."""
    for place in (directory, *directory.parents):
        if (place / "HEAD").exists() and (
            (place / "objects").exists() or (place / "commondir").exists()
        ):
            return "git would read its settings from a plain directory"
        if (place / ".git").exists():
            break
    return ""


def _is_usual(git: Path, common: Path, top: Path, places: Places) -> bool:
    """Return whether these are a repository's files, or a worktree that its repository knows."""
    if git == common == top / ".git":
        return True
    if all(is_below(path, places.real_roots) for path in (git, common, top)):
        return True
    if is_below(git, places.real_roots) or common != git.parent.parent:
        return False
    try:
        return Path((git / "gitdir").read_text(encoding="utf-8").strip()).resolve() == top / ".git"
    except (OSError, UnicodeDecodeError):
        return False


def _has_special_files(directories: set[Path]) -> bool:
    """Return whether a repository contains symlinks or pipes, or borrows objects.

    Git prints parts of the files that hold the state of a rebase or worktree, and waits for pipes.
    """
    seen = 0
    for git in directories:
        if (git / "objects" / "info" / "alternates").exists():
            return True
        for place, below, files in os.walk(git):
            seen += len(files)
            names = (Path(place, name) for name in (*below, *files))
            if seen > MAX_GIT_FILES or any(map(_is_special, names)):
                return True
            # By path, not by name, because git also reads directories that others named so.
            if Path(place) == git:
                below[:] = {*below} - {"hooks"}  # often links into the project, and none is run
            elif Path(place) == git / "objects":
                below[:] = {*below} & {"info", "pack"}
    return False


def _is_special(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:  # a lock file that git has just removed
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _suspect_index(top: Path, verbs: frozenset[str], places: Places, depth: int) -> str:
    staged = run_git(top, "ls-files", "--stage", "-z", timeout_seconds=INSPECT_SECONDS)
    rows = staged.stdout.decode("utf-8", "surrogateescape").split("\0")
    if _leads_out((row.partition("\t")[2] for row in rows), top, places):
        return "git would open files outside, which its index names"
    modules = [row.partition("\t")[2] for row in rows if row.startswith("160000 ")]
    if len(modules) > MAX_SUBMODULES or (modules and depth > 3):
        return "there are too many submodules to look at"
    for module in modules if verbs & _COMPARING else ():
        if (top / module / ".git").exists():
            found = _suspect(top / module, verbs, places, depth=depth + 1)
            if found:
                return found
    return ""


def _leads_out(names: Iterable[str], top: Path, places: Places) -> bool:
    """Return whether a path in the index leaves the repository; git does not check when reading."""
    parents = {Path(each) for each in {name[: name.rfind("/") + 1] for name in names}}
    above = {place for parent in parents for place in (parent, *parent.parents)} - {Path()}
    return any(
        place.is_absolute()
        or ".." in place.parts
        or ((top / place).is_symlink() and not is_below((top / place).resolve(), places.real_roots))
        for place in above
    )
