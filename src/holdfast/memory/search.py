"""Lexical search over memories: stemmed words in name, description and body, ranked by BM25.

Words that occur in most memories are ignored, which also bounds the time.
"""

import re
from collections import Counter
from dataclasses import dataclass

from holdfast.memory.commits import Database

QUERY_WORDS = 16
"""The rarest words of a question decide; a pasted page would match everything."""
COMMON_SHARE = 0.2
"""A word in more memories than this does not discriminate."""
COMMON_FLOOR = 20
"""In a small store no word is too common."""
FEW_WORDS = 2
"""One matching word of many is chance, unless the question has no more words than this."""
READ_MEMORIES = 1_000
"""Matches to rank at most; words that would add more cost more than they contribute."""
SUPERSEDED_ROOM = 3
"""Candidates for each hit wanted, so that current memories can come before superseded ones."""
RARE_COUNT = 3
"""A word in so few memories is significant by itself."""

_STOP = (
    "a an and are as at be but by can could did do does for from had has have he her his how i if"
    " in into is it its me my not of on or our she so that the their them then there they this to"
    " us was we were what when where which who why will with would you your please let about just"
    " some any all get got make made also been than too very"
)
STOP_WORDS = frozenset(_STOP.split())
"""Words too common in questions to search for."""

_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryHit:
    """A memory that matches a question; higher scores match better."""

    file: str
    description: str
    score: float
    is_significant: bool
    """More than one word matches, or a rare one, or all words of a short question."""


def words_of(text: str) -> list[str]:
    """Return the searchable words of a text, each once."""
    words = dict.fromkeys(word.lower() for word in _WORD.findall(text))
    return [word for word in words if word not in STOP_WORDS and len(word) > 1]


def search(database: Database, query: str, limit: int) -> list[MemoryHit]:
    """Find memories by the words of a question, best first and superseded ones last."""
    counts = _search_words(database, query)
    if not counts:
        return []
    rows = database.all(
        "SELECT t.id, file, t.description, score FROM (SELECT rowid AS id, rank AS score FROM words"
        " WHERE words MATCH ? AND rank MATCH 'bm25(4.0, 3.0, 1.0)' ORDER BY rank LIMIT ?) AS found"
        " JOIN tree t ON t.id = found.id ORDER BY t.superseded_by != '', score, file LIMIT ?",
        " OR ".join(f'"{word}"' for word in counts),
        *(limit * SUPERSEDED_ROOM, limit),
    )
    ids = [row[0] for row in rows]
    has_few = len(words_of(query)) <= FEW_WORDS
    significant = set(ids) if has_few else _significant(database, counts, ids)
    return [
        MemoryHit(file=file, description=said, score=-score, is_significant=id in significant)
        for id, file, said, score in rows
    ]


def _search_words(database: Database, query: str) -> dict[str, int]:
    """Choose the words of a question that discriminate, rarest first, with their counts."""
    total: int = database.one("SELECT count(*) FROM tree")[0]
    most = max(COMMON_FLOOR, round(total * COMMON_SHARE))
    asked = words_of(query)[: QUERY_WORDS * 4]
    # Counted up to one more than `most`: beyond that a word is not used anyway.
    count_sql = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)"
    counts = sorted((database.one(count_sql, f'"{word}"', most + 1)[0], word) for word in asked)
    counted = [(count, word) for count, word in counts if 0 < count <= most]
    chosen: dict[str, int] = {}
    for count, word in counted[:QUERY_WORDS]:
        if not chosen or sum(chosen.values()) + count <= READ_MEMORIES:
            chosen[word] = count
    return chosen


def _significant(database: Database, counts: dict[str, int], ids: list[int]) -> set[int]:
    """Return the hits that enough of the words match."""
    found: Counter[int] = Counter()
    among = ",".join(map(str, ids))
    for word, count in counts.items():
        rows = database.all(
            f"SELECT rowid FROM words WHERE words MATCH ? AND rowid IN ({among})", f'"{word}"'
        )
        found.update({row[0]: FEW_WORDS if count <= RARE_COUNT else 1 for row in rows})
    return {id for id, count in found.items() if count >= FEW_WORDS}
