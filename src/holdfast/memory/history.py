"""What happened in a memory store: commits, diffs, and what is gone but not lost. Reads only."""

from collections.abc import Sequence

from holdfast.memory.commits import Changed, Commit, CommitAuthor, Tombstone, diff
from holdfast.memory.database import Database, DatabaseRow
from holdfast.memory.paths import INDEX
from holdfast.memory.refusals import NoSuchMemory

_COMMITS = "SELECT id, at, by, why, undoes FROM commits"


class CommitHistory:
    """The commits of a store, as its database tells them."""

    def __init__(self, database: Database) -> None:
        self._sql = database

    @property
    def head(self) -> int:
        """The number of the last commit; 0 before the first."""
        last: int | None = self._sql.one("SELECT max(id) FROM commits")[0]
        return last or 0

    def log(self, limit: int = -1, *, file: str = "") -> list[Commit]:
        """Give commits, the newest first; of one file, or of all."""
        chosen = ' WHERE id IN (SELECT "commit" FROM changes WHERE file = ?)' if file else ""
        values = (file, limit) if file else (limit,)
        rows = self._sql.all(f"{_COMMITS}{chosen} ORDER BY id DESC LIMIT ?", *values)
        return [self._commit(row) for row in rows]

    def commit(self, id: int) -> Commit:
        """Give one commit by its number."""
        rows = self._sql.all(f"{_COMMITS} WHERE id = ?", id)
        if not rows:
            raise NoSuchMemory(f"there is no commit {id}; `holdfast memory log` lists them")
        return self._commit(rows[0])

    def text(self, version: str) -> str:
        """Give the text of any version that ever was; '' is no text."""
        rows = self._sql.all("SELECT text FROM texts WHERE sha = ?", version)
        return rows[0][0] if rows else ""

    def diff(self, changes: Sequence[Changed]) -> str:
        """Show what changes did, file by file."""
        return "".join(
            diff(one.file, self.text(one.before), self.text(one.after)) for one in changes
        )

    def tombstones(self) -> list[Tombstone]:
        """Give what was removed and not written again since, the newest first."""
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
        """List files whose change by somebody was undone, and which are still as the undo left them."""
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
            Changed(file=file, before=before or "", after=after or "", reason=reason)
            for file, before, after, reason in rows
        )
        return Commit(id=id, at=at, by=by, why=why, changes=changes, undoes=undoes or 0)
