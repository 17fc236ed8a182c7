"""Writes one commit of a memory store: its changes, the current texts, the words for the search."""

from collections.abc import Sequence

from holdfast.memory.commits import CommitAuthor, CommitHistory, Database, MemoryChange, sha
from holdfast.memory.errors import MemoryConflict, MemoryRefused
from holdfast.memory.memory import parse
from holdfast.memory.paths import INDEX


class CommitWriter:
    def __init__(self, database: Database, at: float) -> None:
        self._sql = database
        self._version = CommitHistory(database).version
        self._at = at
        self.id = 0
        """The commit's number, once it has begun."""

    def due(self, changes: Sequence[MemoryChange]) -> list[MemoryChange]:
        """Return the changes that change something; raise if one was made from an old version."""
        chosen: list[MemoryChange] = []
        for change in changes:
            current = self._version(change.file)
            wanted = "" if change.text is None else sha(change.text)
            if current == wanted:
                continue
            if current != change.expected:
                raise MemoryConflict(self._conflict_message(change.file))
            if not current:
                self._check_new(change.file)
            chosen.append(change)
        return chosen

    def begin(self, by: CommitAuthor, why: str, undoes: int) -> None:
        self.id = self._sql.insert(
            "INSERT INTO commits (at, by, why, undoes) VALUES (?, ?, ?, ?)",
            *(self._at, by, why, undoes or None),
        )

    def put(self, change: MemoryChange) -> None:
        reason = change.reason if change.text is None else ""
        self._note(change.file, change.text, reason)
        self._sql.all(
            "DELETE FROM words WHERE rowid = (SELECT id FROM tree WHERE file = ?)", change.file
        )
        if change.text is None:
            self._sql.all("DELETE FROM tree WHERE file = ?", change.file)
        else:
            self._file(change.file, change.text)

    def put_index(self, text: str) -> None:
        """Record the index if it changed; an empty one is removed."""
        if self._version(INDEX) == (sha(text) if text else ""):
            return
        self._note(INDEX, text or None, "")
        if text:
            self._sql.all("INSERT OR REPLACE INTO state VALUES ('index', ?)", sha(text))
        else:
            self._sql.all("DELETE FROM state WHERE key = 'index'")

    def _file(self, file: str, text: str) -> None:
        memory = parse(file, text, at=self._at)
        self._sql.all(
            "INSERT INTO tree (file, sha, name, description, type, modified, superseded_by)"
            " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (file) DO UPDATE SET sha = excluded.sha,"
            " name = excluded.name, description = excluded.description, type = excluded.type,"
            " modified = excluded.modified, superseded_by = excluded.superseded_by",
            *(file, sha(text), memory.name, memory.description),
            *(memory.type, memory.modified, memory.superseded_by),
        )
        self._sql.all(
            "INSERT INTO words (rowid, name, description, body)"
            " SELECT id, ?, ?, ? FROM tree WHERE file = ?",
            *(memory.name, memory.description, memory.body, file),
        )

    def _note(self, file: str, text: str | None, reason: str) -> None:
        before = self._version(file) or None
        after = None if text is None else sha(text)
        if text is not None:
            self._sql.all("INSERT OR IGNORE INTO texts VALUES (?, ?)", after, text)
        self._sql.all(
            "INSERT INTO changes VALUES (?, ?, ?, ?, ?)", self.id, file, before, after, reason
        )

    def _check_new(self, file: str) -> None:
        """Refuse a name that some file systems cannot distinguish from an existing one."""
        alike = self._sql.all("SELECT file FROM tree WHERE file = ? COLLATE NOCASE", file)
        if alike:
            raise MemoryRefused(
                f"{file} differs from {alike[0][0]} only in case; use one of the two names"
            )

    def _conflict_message(self, file: str) -> str:
        rows = self._sql.all(
            'SELECT id, by FROM commits WHERE id = (SELECT max("commit") FROM changes WHERE file = ?)',
            file,
        )
        culprit = f" by {rows[0][1]} in commit {rows[0][0]}" if rows else ""
        return f"{file} was changed{culprit} since it was read; read it again, then change it"
