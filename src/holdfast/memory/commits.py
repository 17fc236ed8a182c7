"""Commits of a memory store: what is to be changed, what was changed, by whom and why.

`CommitHistory` only reads: commits, diffs, and memories that were removed and can be restored.
"""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from holdfast.memory.database import Database, DatabaseRow
from holdfast.memory.errors import NoSuchMemory
from holdfast.memory.paths import INDEX

CommitAuthor: TypeAlias = Literal["agent", "extraction", "dream", "person"]

_COMMITS = "SELECT id, at, by, why, undoes FROM commits"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChange:
    file: str
    text: str | None
    """The new content; None removes the memory and leaves a tombstone."""
    expected: str
    """The version this change was made from, '' for none; any other version is a conflict."""
    reason: str = ""
    """Why it is removed; required for removals."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedChange:
    """One file that was written or removed, with its versions; '' is none."""

    file: str
    before: str
    after: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    id: int
    at: float
    by: CommitAuthor
    why: str
    changes: tuple[CommittedChange, ...]
    undoes: int = 0
    """The commit that this one reverts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone:
    file: str
    version: str
    reason: str
    by: CommitAuthor
    at: float
    commit: int


class CommitHistory:
    def __init__(self, database: Database) -> None:
        self._sql = database

    @property
    def head(self) -> int:
        """The number of the last commit; 0 before the first."""
        last: int | None = self._sql.one("SELECT max(id) FROM commits")[0]
        return last or 0

    def log(self, limit: int = -1, *, file: str = "") -> list[Commit]:
        """Return the commits of one file or of all, newest first."""
        chosen = ' WHERE id IN (SELECT "commit" FROM changes WHERE file = ?)' if file else ""
        values = (file, limit) if file else (limit,)
        rows = self._sql.all(f"{_COMMITS}{chosen} ORDER BY id DESC LIMIT ?", *values)
        return [self._commit(row) for row in rows]

    def commit(self, id: int) -> Commit:
        rows = self._sql.all(f"{_COMMITS} WHERE id = ?", id)
        if not rows:
            raise NoSuchMemory(f"there is no commit {id}; `holdfast memory log` lists them")
        return self._commit(rows[0])

    def text(self, version: str) -> str:
        """Return the text of any version that ever existed; '' if there is none."""
        rows = self._sql.all("SELECT text FROM texts WHERE sha = ?", version)
        return rows[0][0] if rows else ""

    def diff(self, changes: Sequence[CommittedChange]) -> str:
        return "".join(
            diff(one.file, self.text(one.before), self.text(one.after)) for one in changes
        )

    def tombstones(self) -> list[Tombstone]:
        """Return what was removed and not written again since, newest first."""
        rows = self._sql.all(
            "SELECT c.file, c.before, c.reason, k.by, k.at, k.id FROM changes c"
            ' JOIN commits k ON k.id = c."commit"'
            " WHERE c.after IS NULL AND c.file != ? AND c.file NOT IN (SELECT file FROM current)"
            ' AND c."commit" = (SELECT max("commit") FROM changes m WHERE m.file = c.file)'
            " ORDER BY k.id DESC, c.file",
            INDEX,
        )
        return [
            Tombstone(file=file, version=version, reason=reason, by=by, at=at, commit=id)
            for file, version, reason, by, at, id in rows
        ]

    def vetoed(self, by: CommitAuthor) -> frozenset[str]:
        """Return files whose change by an author was undone and which did not change since."""
        rows = self._sql.all(
            "SELECT c.file FROM commits undo JOIN commits k ON k.id = undo.undoes AND k.by = ?"
            ' JOIN changes c ON c."commit" = undo.id JOIN current t'
            " ON t.file = c.file AND t.sha = c.after",
            by,
        )
        return frozenset(row[0] for row in rows)

    def _commit(self, row: DatabaseRow) -> Commit:
        id, at, by, why, undoes = row
        rows = self._sql.all(
            'SELECT file, before, after, reason FROM changes WHERE "commit" = ? ORDER BY rowid', id
        )
        changes = tuple(
            CommittedChange(file=file, before=before or "", after=after or "", reason=reason)
            for file, before, after, reason in rows
        )
        return Commit(id=id, at=at, by=by, why=why, changes=changes, undoes=undoes or 0)


def diff(file: str, before: str, after: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(keepends=True),
        after.splitlines(keepends=True),
        f"before/{file}" if before else "(none)",
        f"after/{file}" if after else "(none)",
        n=2,
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
