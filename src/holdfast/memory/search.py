"""Finding memories by words: a question comes in, the best files go out, in milliseconds.

Words are looked up in name, description and body, stemmed, by BM25; words that stand in most
memories tell nothing and are left out, which also bounds the time. No model is asked here.
"""

import re
from collections import Counter
from dataclasses import dataclass

from holdfast.memory.database import Database

QUERY_WORDS = 16
"""The rarest words of a question decide; a pasted page would ask for everything."""
COMMON_SHARE = 0.2
"""A word that stands in more memories than this tells them not apart."""
COMMON_FLOOR = 20
"""In a small store no word is too common to be looked up."""
FEW_WORDS = 2
"""One word of many in common is chance; a question of so few words has no more to give."""
READ_MEMORIES = 1_000
"""Rare words decide; words that would have this many memories weighed cost more than they tell."""
SUPERSEDED_ROOM = 3
"""Looked at for each one wanted, so that what holds comes before what was superseded."""
RARE_COUNT = 3
"""A word that so few memories hold speaks for them by itself."""

_STOP = (
    "a an and are as at be but by can could did do does for from had has have he her his how i if"
    " in into is it its me my not of on or our she so that the their them then there they this to"
    " us was we were what when where which who why will with would you your please let about just"
    " some any all get got make made also been than too very"
)
STOP_WORDS = frozenset(_STOP.split())
"""Words of every question that no answer is found by."""

_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryHit:
    """A memory that fits a question; a higher score fits better."""

    file: str
    description: str
    score: float
    is_telling: bool
    """More than one word speaks for it, or one that is rare or was all there was to ask."""


def words_of(text: str) -> list[str]:
    """List the words of a text that could tell something, each once."""
    words = dict.fromkeys(word.lower() for word in _WORD.findall(text))
    return [word for word in words if word not in STOP_WORDS and len(word) > 1]


def search(database: Database, query: str, limit: int) -> list[MemoryHit]:
    """Find memories by the words of a question, the best first; superseded ones come last."""
    counts = telling_words(database, query)
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
    telling = set(ids) if has_few else _telling(database, counts, ids)
    return [
        MemoryHit(file=file, description=said, score=-score, is_telling=id in telling)
        for id, file, said, score in rows
    ]


def telling_words(database: Database, query: str) -> dict[str, int]:
    """Choose the words of a question that tell memories apart, the rarest first, with their counts."""
    total: int = database.one("SELECT count(*) FROM tree")[0]
    most = max(COMMON_FLOOR, round(total * COMMON_SHARE))
    asked = words_of(query)[: QUERY_WORDS * 4]
    counts = sorted((_count(database, word, most), word) for word in asked)
    counted = [(count, word) for count, word in counts if 0 < count <= most]
    chosen: dict[str, int] = {}
    for count, word in counted[:QUERY_WORDS]:
        if not chosen or sum(chosen.values()) + count <= READ_MEMORIES:
            chosen[word] = count
    return chosen


def _count(database: Database, word: str, most: int) -> int:
    """Count the memories a word stands in, no further than matters."""
    count: int = database.one(
        "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)",
        f'"{word}"',
        most + 1,
    )[0]
    return count


def _telling(database: Database, counts: dict[str, int], ids: list[int]) -> set[int]:
    """Choose the hits for which enough of the words speak."""
    found: Counter[int] = Counter()
    among = ",".join(map(str, ids))
    for word, count in counts.items():
        rows = database.all(
            f"SELECT rowid FROM words WHERE words MATCH ? AND rowid IN ({among})", f'"{word}"'
        )
        found.update({row[0]: FEW_WORDS if count <= RARE_COUNT else 1 for row in rows})
    return {id for id, count in found.items() if count >= FEW_WORDS}
