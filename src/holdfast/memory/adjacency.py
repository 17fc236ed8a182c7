"""What goes together: memories that rest on messages close to each other in one session.

A question and its answer stand side by side, so a memory next to one that matches matters too.
"""

import re
from collections.abc import Iterable

from holdfast.memory.commits import Database
from holdfast.memory.memory import parse

REACH = {1: 0.5, 2: 0.25, -1: 0.25}
"""Share of a score that passes from message m to m + d: an answer follows what it answers."""
_TABLES = (
    "CREATE TABLE IF NOT EXISTS placed (id INTEGER PRIMARY KEY, sha TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS places (session TEXT NOT NULL, message INTEGER NOT NULL,"
    " id INTEGER NOT NULL, PRIMARY KEY (session, message, id)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS places_by_id ON places (id)",
)
_EVIDENCE = re.compile(r"(.+)#(\d{1,9})")


class Adjacency:
    """Places of memories in sessions, by the evidence that each names."""

    def __init__(self, database: Database) -> None:
        self._sql = database
        self._head = -1

    def of(self, ids: Iterable[int], head: int) -> list[tuple[int, int, float]]:
        """Return (memory, neighbour, share of its score that passes); `head` is the last commit."""
        if head != self._head:
            self._refresh()
            self._head = head
        rows = self._sql.all(
            "SELECT a.id, b.id, b.message - a.message FROM places a JOIN places b"
            f" ON b.session = a.session AND b.message BETWEEN a.message + {min(REACH)}"
            f" AND a.message + {max(REACH)} AND b.id != a.id"
            f" WHERE a.id IN ({','.join(map(str, ids))})"
        )
        return [(id, near, REACH[distance]) for id, near, distance in rows if distance in REACH]

    def _refresh(self) -> None:
        with self._sql.writing(is_lasting=False):
            for statement in _TABLES:
                self._sql.all(statement)
            stale = "SELECT p.id FROM placed p LEFT JOIN tree t ON t.id = p.id AND t.sha = p.sha"
            for table in ("places", "placed"):
                self._sql.all(f"DELETE FROM {table} WHERE id IN ({stale} WHERE t.id IS NULL)")
            missing = self._sql.all(
                "SELECT t.id, t.sha, t.file, x.text FROM tree t JOIN texts x ON x.sha = t.sha"
                " LEFT JOIN placed p ON p.id = t.id WHERE p.id IS NULL"
            )
            for id, sha, file, text in missing:
                self._sql.insert("INSERT INTO placed VALUES (?, ?)", id, sha)
                for evidence in parse(file, text).evidence:
                    if found := _EVIDENCE.fullmatch(evidence):
                        self._sql.insert(
                            "INSERT OR IGNORE INTO places VALUES (?, ?, ?)",
                            *(found[1], int(found[2]), id),
                        )
