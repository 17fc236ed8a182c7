"""Finding memories by words: a question comes in, the best files go out, in milliseconds.

Words are looked up in name, description and body, stemmed, by BM25; words that stand in most
memories tell nothing and are left out, which also bounds the time. No model is asked here.
"""

import re
from dataclasses import dataclass

from holdfast.memory.database import Database

QUERY_WORDS = 16
"""The rarest words of a question decide; a pasted page would ask for everything."""
COMMON_SHARE = 0.2
"""A word that stands in more memories than this tells them not apart."""
COMMON_FLOOR = 20
"""In a small store no word is too common to be looked up."""

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
class Hit:
    """A memory that fits a question; a higher score fits better."""

    file: str
    description: str
    score: float


def search(database: Database, query: str, limit: int) -> list[Hit]:
    """Find memories by the words of a question, the best first; superseded ones come last."""
    words = telling_words(database, query)
    if not words:
        return []
    rows = database.all(
        "SELECT file, t.description, bm25(words, 4.0, 3.0, 1.0) FROM words"
        " JOIN tree t ON t.id = words.rowid WHERE words MATCH ?"
        " ORDER BY t.superseded_by != '', bm25(words, 4.0, 3.0, 1.0), file LIMIT ?",
        " OR ".join(f'"{word}"' for word in words),
        limit,
    )
    return [Hit(file=file, description=said, score=-score) for file, said, score in rows]


def telling_words(database: Database, query: str) -> list[str]:
    """Choose the words of a question that tell memories apart, the rarest first."""
    asked = dict.fromkeys(word.lower() for word in _WORD.findall(query))
    words = [word for word in asked if word not in STOP_WORDS and len(word) > 1]
    total: int = database.one("SELECT count(*) FROM tree")[0]
    most = max(COMMON_FLOOR, round(total * COMMON_SHARE))
    counted = [(_count(database, word, most), word) for word in words[: QUERY_WORDS * 4]]
    counted.sort()
    return [word for count, word in counted if 0 < count <= most][:QUERY_WORDS]


def _count(database: Database, word: str, most: int) -> int:
    """Count the memories a word stands in, no further than matters."""
    count: int = database.one(
        "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)",
        f'"{word}"',
        most + 1,
    )[0]
    return count
