"""The state of a git repository: branch, changed files, recent commits.

The repository is not trusted: programs that its own configuration would have git run are switched
off (see `tools.git`), and where that is impossible, the part that would run them is left out.
"""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

from holdfast.settings import PromptSettings
from holdfast.tools.git import git_variables
from holdfast.tools.process import run

LINE_CHARS = 200
"""Limit of a branch, a path or a commit's subject; longer ones are not names but texts."""
OUTPUT_BYTES = 1 << 18
"""Limit of what is read from git; far more than is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    branch: str
    main: str = ""
    """The remote's default branch, if known."""
    status: str = ""
    """One line per changed file, as in `git status --short`."""
    commits: str = ""


async def look_at_repository(directory: Path, settings: PromptSettings) -> Repository | None:
    """Run all git commands at once; None if this is no repository, or git is missing or slow."""
    if not settings.git:
        return None
    count = str(settings.git_commits)
    questions = (
        _ask(directory, "symbolic-ref", "--short", "HEAD"),
        _ask(directory, "symbolic-ref", "--short", "refs/remotes/origin/HEAD"),
        _ask(directory, "log", "--oneline", "--no-decorate", "--no-color", "-n", count),
        _status(directory),
        _ask(directory, "rev-parse", "--is-inside-work-tree"),
    )
    try:
        async with asyncio.timeout(settings.git_seconds):
            branch, main, commits, status, inside = await asyncio.gather(*questions)
    except (TimeoutError, OSError):
        return None
    if inside is None:
        return None
    return Repository(
        branch=_lines(branch or "none checked out"),
        main=_lines((main or "").removeprefix("origin/")),
        status=_cut(_lines(status or ""), settings.git_status_chars),
        commits=_lines(commits or "") if settings.git_commits else "",
    )


async def _status(directory: Path) -> str | None:
    """List changed files, unless that would run a program set by the repository."""
    scoped = ("config", "--includes", "--show-scope", "--get-regexp", r"^filter\.")
    filters = await _ask(directory, *scoped) or ""
    if any(line.startswith(("local", "worktree")) for line in filters.split("\n")):
        return "(not looked at: this repository sets filters, which are programs)"
    status = await _ask(directory, "status", "--short", "--ignore-submodules=all")
    return None if status is None else status or "(nothing has changed)"


async def _ask(directory: Path, *words: str) -> str | None:
    done = await run(
        ("git", "--no-pager", *words),
        cwd=directory,
        variables={**git_variables(os.environ, {"core.quotePath": "true"}), "LC_ALL": "C"},
        timeout_seconds=None,
        output_bytes=OUTPUT_BYTES,
    )
    return done.stdout.decode("utf-8", "replace").rstrip() if done.status == 0 else None


def _lines(text: str) -> str:
    shown = (
        "".join(char if char.isprintable() else "?" for char in line[:LINE_CHARS])
        for line in text.split("\n")
    )
    return "\n".join(shown)


def _cut(text: str, chars: int) -> str:
    """Cut at a line's end and count the lines left out."""
    if len(text) <= chars:
        return text
    kept = text[:chars].rpartition("\n")[0]
    more = text.count("\n") - kept.count("\n") if kept else text.count("\n") + 1
    return f"{kept}\n({more} more)".lstrip("\n")
