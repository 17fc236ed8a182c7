"""Search over memories: words first, then meaning where it is installed, then what goes together.

Words are stemmed and ranked by BM25 over name, description and body. A word that occurs in most
memories chooses none of them, which bounds the time, but still tells the chosen ones apart: a
name that stands in half of all memories says who a question is about.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from holdfast.memory.commits import Database
from holdfast.memory.errors import MemoryBusy
from holdfast.memory.memory import parse
from holdfast.memory.vectors import Embedding, Vectors, installed
from holdfast.messages.words import words_of

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


QUERY_WORDS = 16
"""The rarest words of a question decide; a pasted page would match everything."""
COMMON_SHARE = 0.2
"""A word in more memories than this does not choose."""
COMMON_FLOOR = 20
"""In a small store no word is too common."""
READ_MEMORIES = 1_000
"""Matches to rank at most; words that would add more cost more than they contribute."""
CANDIDATES = 120
"""Matches that are looked at closely."""
COMMON_WEIGHT = 0.1
"""What a common word adds, as a share of the best match."""
MEANING_WEIGHT = 0.35
"""What the closest meaning adds, as a share of the best match by words."""
NEAR = 0.15
"""A memory this close in meaning is as good as a word in common."""
CLOSE = 0.25
"""One this close bears on the question by itself: those of other subjects stay below."""
FEW_WORDS = 2
"""One matching word of many is chance, unless the question has no more words than this."""
AROUND = 20
"""Best memories whose neighbours are looked at."""
SUPERSEDED_ROOM = 3
"""Candidates for each hit wanted, so that current memories can come before superseded ones."""
RARE_COUNT = 3
"""A word in so few memories is significant by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryHit:
    """A memory that matches a question; higher scores match better."""

    file: str
    description: str
    score: float
    is_significant: bool
    """It matches by more than chance: in two words, a rare one, any of a short question, in a word
    and its meaning, or closely in meaning; or it stands next to such a memory."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """The words of a question, with the memories that have each."""

    chosen: Mapping[str, frozenset[int]]
    """Words that discriminate, rarest first."""
    common: Mapping[str, frozenset[int]]
    is_short: bool

    def is_enough(self, id: int, meaning: float) -> bool:
        """Say whether a memory matches by more than chance."""
        found = [len(ids) for ids in self.chosen.values() if id in ids]
        words = sum(FEW_WORDS if count <= RARE_COUNT else 1 for count in found)
        if self.is_short and words:
            return True
        return words + (meaning >= NEAR) + (meaning >= CLOSE) >= FEW_WORDS


class MemorySearch:
    """Searches one store; keeps what can be kept between questions."""

    def __init__(
        self, database: Database, embedding: Callable[[], Embedding | None] = installed
    ) -> None:
        """Make a search; the embedding is loaded when it is first needed."""
        self._sql = database
        self._embedding = embedding
        self._adjacency = Adjacency(database)
        self._common: dict[str, frozenset[int]] = {}
        self._head = -1

    @cached_property
    def _vectors(self) -> Vectors | None:
        embedding = self._embedding()
        return Vectors(self._sql, embedding) if embedding else None

    def find(self, query: str, limit: int) -> list[MemoryHit]:
        """Find memories for a question, best first and superseded ones last."""
        head: int = self._sql.one("SELECT coalesce(max(id), 0) FROM commits")[0]
        if head != self._head:
            self._head = head
            self._common.clear()
        asked = self._asked(query)
        by_words = self._by_words(asked)
        meaning: Mapping[int, float] = {}
        if self._vectors:
            with suppress(MemoryBusy):  # what the last commits brought is found by its words alone
                meaning = self._vectors.closest(query, CANDIDATES, by_words, head)
        base = _fused(by_words, meaning)
        for id in base:
            base[id] += COMMON_WEIGHT * sum(id in ids for ids in asked.common.values())
        significant = {id for id in base if asked.is_enough(id, meaning.get(id, 0.0))}
        scores = dict(base)
        best = sorted(base, key=base.__getitem__, reverse=True)[:AROUND]
        for id, near, share in self._close_by(best, head):
            scores[near] = scores.get(near, 0.0) + share * base[id]
            if id in significant:
                significant.add(near)
        found = {id: scores[id] for id in significant.union(by_words)}
        return self._hits(found, significant, limit)

    def _close_by(self, ids: Iterable[int], head: int) -> list[tuple[int, int, float]]:
        with suppress(MemoryBusy):
            return self._adjacency.of(ids, head)
        return []

    def _asked(self, query: str) -> _Asked:
        """Find the memories of each word and choose the words that discriminate, rarest first."""
        total: int = self._sql.one("SELECT count(*) FROM tree")[0]
        most = max(COMMON_FLOOR, round(total * COMMON_SHARE))
        words = words_of(query)
        chosen: dict[str, frozenset[int]] = {}
        common: dict[str, frozenset[int]] = {}
        found = {word: self._with_word(word, most) for word in words[: QUERY_WORDS * 4]}
        for word, ids in sorted(found.items(), key=lambda pair: len(pair[1])):
            room = READ_MEMORIES - sum(map(len, chosen.values()))
            if 0 < len(ids) <= (min(most, room) if chosen else most) and len(chosen) < QUERY_WORDS:
                chosen[word] = ids
            elif ids and len(common) < QUERY_WORDS:
                common[word] = ids
        return _Asked(chosen, common, len(words) <= FEW_WORDS)

    def _with_word(self, word: str, most: int) -> frozenset[int]:
        """Return the memories that have a word; of a common one they are remembered."""
        if word in self._common:
            return self._common[word]
        rows = self._sql.all("SELECT rowid FROM words WHERE words MATCH ?", f'"{word}"')
        ids = frozenset(row[0] for row in rows)
        if len(ids) > most:
            self._common[word] = ids
        return ids

    def _by_words(self, asked: _Asked) -> dict[int, float]:
        if not asked.chosen:
            return {}
        rows = self._sql.all(
            "SELECT rowid, -rank FROM words WHERE words MATCH ?"
            " AND rank MATCH 'bm25(4.0, 3.0, 1.0)' ORDER BY rank LIMIT ?",
            *(" OR ".join(f'"{word}"' for word in asked.chosen), CANDIDATES),
        )
        return dict(rows)

    def _hits(
        self, scores: Mapping[int, float], significant: set[int], limit: int
    ) -> list[MemoryHit]:
        best = sorted(scores, key=scores.__getitem__, reverse=True)[: limit * SUPERSEDED_ROOM]
        rows = self._sql.all(
            "SELECT id, file, description, superseded_by != '' FROM tree"
            f" WHERE id IN ({','.join(map(str, best))})"
        )
        rows.sort(key=lambda row: (row[3], -scores[row[0]], row[1]))
        return [
            MemoryHit(
                file=file, description=said, score=scores[id], is_significant=id in significant
            )
            for id, file, said, _ in rows[:limit]
        ]


def _fused(by_words: Mapping[int, float], meaning: Mapping[int, float]) -> dict[int, float]:
    """Add up both measures, each as a share of its best."""
    best_word = max(by_words.values(), default=1.0) or 1.0
    best_meaning = max(meaning.values(), default=1.0) or 1.0
    return {
        id: by_words.get(id, 0.0) / best_word + MEANING_WEIGHT * meaning.get(id, 0.0) / best_meaning
        for id in {*by_words, *meaning}
    }
