"""What is said about changes of memories: what is to be done, what was done, by whom and why."""

import difflib
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

CommitAuthor: TypeAlias = Literal["agent", "extraction", "dream", "person"]
WRITERS: tuple[CommitAuthor, ...] = get_args(CommitAuthor)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChange:
    """One file that is to be written or removed."""

    file: str
    text: str | None
    """The new content; None removes the memory and leaves a tombstone."""
    expected: str
    """The version this change was made from, '' for none; another one there is a conflict."""
    reason: str = ""
    """Why it goes; nothing is removed without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """One file that was written or removed; versions name texts, '' is none."""

    file: str
    before: str
    after: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A set of changes that happened at once."""

    id: int
    at: float
    by: CommitAuthor
    why: str
    changes: tuple[Changed, ...]
    undoes: int = 0
    """The commit this one takes back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone:
    """A memory that is gone and can be brought back."""

    file: str
    version: str
    reason: str
    by: CommitAuthor
    at: float
    commit: int


def diff(file: str, before: str, after: str) -> str:
    """Show what changed in a file, line by line."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True),
        after.splitlines(keepends=True),
        f"before/{file}" if before else "(none)",
        f"after/{file}" if after else "(none)",
        n=2,
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
