"""Checks whether git, run in a directory, could run programs that the repository chose.

Git itself reports where it takes files and settings from, so its rules are not reimplemented.
Unknown settings and files in unusual places make a repository untrusted.
"""

import os
import re
import shlex
import stat
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from longhold.agent.permissions.places import Places, is_below
from longhold.agent.permissions.sources import SettingsSection, as_section
from longhold.agent.tools.git import list_settings, run_git
from longhold.core.messages import JsonObject
from longhold.errors import StoreError

INSPECT_SECONDS = 5.0
"""Git answers in milliseconds, but a named pipe in place of a file would block it forever."""
MAX_SUBMODULES = 50
"""A repository with more submodules is not trusted."""
MAX_GIT_FILES = 20_000
"""The limit for files in `.git` other than objects and hooks. Few repositories have hundreds."""

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
"""Settings that run nothing in a read-only command, where hooks and transports are disabled."""
_RISKY_IN_CHANGES = re.compile(
    r"(gc|init)\..*|http\.(?!(.*\.)?(postbuffer|version|lowspeedlimit|lowspeedtime)$).*",
    re.IGNORECASE | re.DOTALL,
)
"""Settings with which only commands that change something run programs or write elsewhere."""

_COMPARING = frozenset({"status", "diff", "describe"})
"""Verbs that run git in every submodule."""
_OPENING = _COMPARING | {"grep"}
"""Verbs that open the files in the index, wherever they are."""


def suspect(
    directory: Path, verbs: frozenset[str], places: Places, *, is_reading: bool = True
) -> str:
    """Return why git must not run here without a prompt, or "".

    With `is_reading`, git gets settings that disable hooks and transports.
    """
    if not directory.is_dir():
        return ""
    try:
        return _suspect(directory, verbs, places, is_reading, depth=0)
    except StoreError:
        return "git does not report where its settings come from"


def _suspect(
    directory: Path, verbs: frozenset[str], places: Places, is_reading: bool, *, depth: int
) -> str:
    paths, is_found = _locate_repository(directory)
    if not paths and not is_found:
        return _no_repository(directory)
    if not is_found or len(paths) != 3:
        return "this directory is a bare repository"
    git, common, top = paths
    if not _is_usual(git, common, top, places) or _has_special_files({git, common}):
        return "git would read its files from an unusual place"
    settings = list_settings(directory, timeout_seconds=INSPECT_SECONDS)
    for is_own, key, value in settings:
        is_switch = key == "core.fsmonitor" and value in ("true", "false")
        if is_own and not is_switch and _is_risky(key, value, is_reading):
            return f"the repository sets {key!r}, which could run a program"
        if key.endswith(".insteadof") and "remote" in verbs:
            return "addresses are rewritten, which can put a password in them"
    if not is_reading:
        hooks = _read_hooks(top, common, settings)
        if hooks is not None and not hooks.is_trusted:
            return f"git would run programs in {hooks.file}; `longhold trust` shows them"
        verbs |= _OPENING
    return _suspect_index(top, verbs, places, is_reading, depth) if verbs & _OPENING else ""


def _locate_repository(directory: Path) -> tuple[list[Path], bool]:
    asked = ("--path-format=absolute", "--git-dir", "--git-common-dir", "--show-toplevel")
    found = run_git(directory, "rev-parse", *asked, timeout_seconds=INSPECT_SECONDS)
    lines = found.stdout.decode("utf-8", "surrogateescape").splitlines()
    return [Path(line).resolve() for line in lines], not found.returncode


def _is_risky(key: str, value: str, is_reading: bool) -> bool:
    if not _HARMLESS.fullmatch(key):
        return True
    is_command = key.startswith("submodule.") and value.startswith("!")
    return not is_reading and (is_command or bool(_RISKY_IN_CHANGES.fullmatch(key)))


def find_hooks(directory: Path) -> SettingsSection | None:
    """Find the programs that git runs for a repository, as a section that can be trusted."""
    try:
        paths, _ = _locate_repository(directory)
        settings = list_settings(directory)
    except StoreError:  # because without git, nothing runs them
        return None
    return _read_hooks(paths[2], paths[1], settings) if len(paths) == 3 else None


def _read_hooks(
    top: Path, common: Path, settings: Iterable[tuple[bool, str, str]]
) -> SettingsSection | None:
    named = [(is_own, value) for is_own, key, value in settings if key == "core.hookspath"]
    named = [each for each in named if each != (False, os.devnull)]  # set by `git_variables`
    if named and not named[-1][0]:
        return None  # because they are the user's own, in every repository
    place = top / Path(named[-1][1]).expanduser() if named else common / "hooks"
    found = list(islice(place.rglob("*"), MAX_GIT_FILES))
    if len(found) == MAX_GIT_FILES:
        raise StoreError(f"{place} has too many files to review; remove those that are not hooks")
    files = (path for path in found if path.is_file() and path.suffix != ".sample")
    commands = [shlex.quote(str(path)) for path in files]
    value: JsonObject = {"hooks": [{"command": command} for command in sorted(commands)]}
    return as_section("git hooks", place, value, top) if commands else None


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
    """Return whether these directories are a repository, or a worktree that a repository lists."""
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

    Git prints parts of the files that describe a rebase or worktree. A pipe would block git.
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
            # Compare paths, not names, because git also reads other directories with these names.
            if Path(place) == git:
                below[:] = {*below} - {"hooks"}  # often links into the project, and never run
            elif Path(place) == git / "objects":
                below[:] = {*below} & {"info", "pack"}
    return False


def _is_special(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:  # because git has just removed a lock file
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _suspect_index(
    top: Path, verbs: frozenset[str], places: Places, is_reading: bool, depth: int
) -> str:
    staged = run_git(top, "ls-files", "--stage", "-z", timeout_seconds=INSPECT_SECONDS)
    rows = staged.stdout.decode("utf-8", "surrogateescape").split("\0")
    if _leads_out((row.partition("\t")[2] for row in rows), top, places):
        return "git would open files outside the repository, which its index names"
    modules = [row.partition("\t")[2] for row in rows if row.startswith("160000 ")]
    if len(modules) > MAX_SUBMODULES or (modules and depth > 3):
        return "there are too many submodules to check"
    for module in modules if verbs & _COMPARING else ():
        if (top / module / ".git").exists():
            found = _suspect(top / module, verbs, places, is_reading, depth=depth + 1)
            if found:
                return found
    return ""


def _leads_out(names: Iterable[str], top: Path, places: Places) -> bool:
    """Return whether a path in the index leaves the repository. Git does not check this."""
    parents = {Path(each) for each in {name[: name.rfind("/") + 1] for name in names}}
    above = {place for parent in parents for place in (parent, *parent.parents)} - {Path()}
    return any(
        place.is_absolute()
        or ".." in place.parts
        or ((top / place).is_symlink() and not is_below((top / place).resolve(), places.real_roots))
        for place in above
    )
