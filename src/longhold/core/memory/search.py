"""Search memories by words, by meaning if installed, and by neighbouring messages.

To limit the time, a word that is in many memories does not select memories. It only ranks the
selected ones, because a frequent name still shows whom a question is about.
"""

import importlib.util
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from longhold.core.memory.commits import Database
from longhold.core.memory.memory import MemoryBusy, parse
from longhold.core.messages.words import split_unspaced, words_of

if TYPE_CHECKING:
    import numpy
    from tokenizers import Tokenizer

    Array: TypeAlias = numpy.ndarray[Any, numpy.dtype[numpy.float32]]
    Tokens: TypeAlias = numpy.ndarray[Any, numpy.dtype[numpy.uint16]]

PACKAGE = "wordllama"
WEIGHTS = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
TEXT_CHARS = 4_000
"""Number of characters to encode. The beginning of a memory shows its subject."""
TEXT_TOKENS = 200
WORD_MARK = "\u2581"
"""Prefix of each token that begins a word."""
UNRELATED = 0.2
"""Words with this similarity or less have nothing in common."""
CENTRE_AFTER = 20
"""With fewer memories, their mean vector describes their subject instead of the language."""

_TABLE = "CREATE TABLE IF NOT EXISTS meanings (id INTEGER PRIMARY KEY, sha TEXT, vector BLOB, tokens BLOB)"
_MISSING = (
    "SELECT t.id, t.sha, t.name || ' ' || t.description || ' ' || w.body FROM tree t"
    " JOIN words w ON w.rowid = t.id LEFT JOIN meanings m ON m.id = t.id AND m.sha = t.sha"
    " WHERE m.id IS NULL"
)


class Embedding:
    def __init__(self, weights: "Array", tokenizer: "Tokenizer") -> None:
        import numpy as np

        self._weights = weights
        self._tokenizer = tokenizer
        pieces = tokenizer.get_vocab().items()
        self._begins_word: Array = np.zeros(len(weights), bool)
        self._begins_word[[id for piece, id in pieces if piece.startswith(WORD_MARK)]] = True

    def tokens(self, texts: Iterable[str]) -> "list[Tokens]":
        import numpy as np

        words = (" ".join(words_of(text[:TEXT_CHARS])) for text in texts)
        # This is not a batch, because starting threads takes longer than encoding a question.
        encoded = (self._tokenizer.encode(text, add_special_tokens=False) for text in words)
        return [np.array(one.ids[:TEXT_TOKENS], np.uint16) for one in encoded]

    def vectors(self, texts: "Sequence[Tokens]") -> "Array":
        """Return one unit vector per text. It is zero if no word is known."""
        import numpy as np

        out = np.zeros((len(texts), self._weights.shape[1]), np.float32)
        for row, tokens in zip(out, texts, strict=True):
            if len(tokens):
                row[:] = self._weights[tokens].astype(np.float32).mean(axis=0)
        return unit(out)

    def compare_words(self, asked: Mapping[str, float], texts: "Sequence[Tokens]") -> list[float]:
        """Score how well each text contains the words of a question, or similar words.

        The score of each word is its similarity to the closest word of the text, times its weight.
        """
        import numpy as np

        query = self.vectors(self.tokens(asked))
        weights = np.array(list(asked.values()), np.float32) / (sum(asked.values()) or 1.0)
        joined = np.concatenate(texts)
        unique, at = np.unique(joined, return_inverse=True)
        rows = self._weights[unique].astype(np.float32)
        # Sum the token vectors of each word. Lengths are added as for orthogonal vectors.
        begins = self._begins_word[joined]
        texts_at = np.cumsum([0, *map(len, texts)])[:-1]
        begins[texts_at] = True
        words_at = np.flatnonzero(begins)
        squares = np.add.reduceat(np.einsum("ij,ij->i", rows, rows)[at], words_at)
        # This avoids `@`, because starting its threads takes longer than the product.
        dots = np.einsum("ij,kj->ik", rows, query)
        close = np.add.reduceat(dots[at], words_at) / np.sqrt(np.maximum(squares, 1e-9))[:, None]
        close = np.clip((close - UNRELATED) / (1 - UNRELATED), 0.0, 1.0)
        best = np.maximum.reduceat(close, np.cumsum(begins)[texts_at] - 1, axis=0)
        shares: list[float] = (best @ weights).tolist()
        return shares


def unit(rows: "Array") -> "Array":
    import numpy as np

    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Array = rows / np.maximum(lengths, 1e-9)
    return scaled


@lru_cache(maxsize=1)
def load_installed() -> Embedding | None:
    """Return the embedding of the `recall` extra, or None if it is not installed."""
    parts = (PACKAGE, "tokenizers", "numpy")
    specs = [importlib.util.find_spec(name) for name in parts]
    places = specs[0].submodule_search_locations if all(specs) and specs[0] else None
    if not places:
        return None
    from tokenizers import Tokenizer

    root = Path(places[0])
    if not ((root / WEIGHTS).is_file() and (root / TOKENIZER).is_file()):
        return None
    tokenizer = Tokenizer.from_file(str(root / TOKENIZER))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return Embedding(_weights(root / WEIGHTS), tokenizer)


def _weights(path: Path) -> "Array":
    """Map the tensor in a safetensors file, which has a length, a JSON header and numbers."""
    import numpy as np

    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    tensor = next(value for key, value in header.items() if key != "__metadata__")
    kind = {"F16": np.float16, "F32": np.float32}[tensor["dtype"]]
    start = 8 + size + tensor["data_offsets"][0]
    mapped: Array = np.memmap(path, kind, "r", start, tuple(tensor["shape"]))
    return mapped


class Vectors:
    def __init__(self, database: Database, embedding: Embedding) -> None:
        self._sql = database
        self._embedding = embedding
        self._head = -1
        self._ids: list[int] = []
        self._rows_by_id: dict[int, int] = {}
        self._tokens: dict[int, Tokens] = {}

    def find_closest(
        self, text: str, count: int, also: Iterable[int], head: int
    ) -> dict[int, float]:
        """Return the similarity of a text to the `count` closest memories and those in `also`."""
        import numpy as np

        if head != self._head:
            self._refresh()
            self._head = head
        if not self._rows_by_id:
            return {}
        asked = self._embedding.vectors(self._embedding.tokens([text])) - self._centre
        # This avoids `@`, because its threads wait for each other on a busy machine. Over 10,000
        # memories, the slowest of 100 runs took 8 ms of CPU time instead of 0.3 ms.
        scores = np.einsum("ij,j->i", self._rows, unit(asked)[0])
        best = np.argpartition(-scores, min(count, len(scores) - 1))[:count]
        wanted = {int(self._ids[row]): row for row in best}
        wanted.update((id, self._rows_by_id[id]) for id in also)
        return {id: max(0.0, float(scores[row])) for id, row in wanted.items()}

    def compare_words(self, asked: Mapping[str, float], ids: Sequence[int]) -> dict[int, float]:
        known = {id: self._tokens[id] for id in ids if id in self._tokens}
        if not known or not asked:
            return {}
        shares = self._embedding.compare_words(asked, list(known.values()))
        return dict(zip(known, shares, strict=True))

    def _refresh(self) -> None:
        import numpy as np

        with self._sql.writing(is_lasting=False):
            self._sql.all(_TABLE)
            self._sql.all("DELETE FROM meanings WHERE id NOT IN (SELECT id FROM tree)")
            missing = self._sql.all(_MISSING)
            tokens = self._embedding.tokens(row[2] for row in missing)
            new = self._embedding.vectors(tokens)
            for (id, sha, _), vector, ids in zip(missing, new, tokens, strict=True):
                packed = np.rint(vector * 127).astype(np.int8).tobytes()
                insert = "INSERT OR REPLACE INTO meanings VALUES (?, ?, ?, ?)"
                self._sql.insert(insert, id, sha, packed, ids.tobytes())
        rows = self._sql.all("SELECT id, vector, tokens FROM meanings ORDER BY id")
        self._tokens = {row[0]: np.frombuffer(row[2], np.uint16) for row in rows if row[2]}
        self._ids = [row[0] for row in rows]
        self._rows_by_id = {id: row for row, id in enumerate(self._ids)}
        matrix = np.frombuffer(b"".join(row[1] for row in rows), np.int8).astype(np.float32)
        matrix = unit(matrix.reshape(len(rows), -1)) if rows else matrix.reshape(0, 0)
        weight = len(rows) / (len(rows) + CENTRE_AFTER)
        self._centre = weight * matrix.mean(axis=0) if rows else 0.0
        self._rows = unit(matrix - self._centre) if rows else matrix


REACH = {1: 0.3, 2: 0.15, -1: 0.15}
"""Share of a score passed from message m to m + d, because answers follow their questions."""
_TABLES = (
    "CREATE TABLE IF NOT EXISTS placed (id INTEGER PRIMARY KEY, sha TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS places (session TEXT NOT NULL, message INTEGER NOT NULL,"
    " id INTEGER NOT NULL, PRIMARY KEY (session, message, id)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS places_by_id ON places (id)",
)
_EVIDENCE = re.compile(r"(.+)#(\d{1,9})")


class Adjacency:
    """Positions of memories in sessions, read from their evidence."""

    def __init__(self, database: Database) -> None:
        self._sql = database
        self._head = -1

    def of(self, ids: Iterable[int], head: int) -> list[tuple[int, int, float]]:
        """Return triples of memory, neighbour and the share of the score to pass on."""
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
"""Only this many of the rarest words are searched, because a long text matches everything."""
COMMON_SHARE = 0.2
"""A word in a larger share of memories does not select any."""
COMMON_FLOOR = 20
"""In a small store no word is too common."""
READ_MEMORIES = 1_000
"""Limit for ranked matches. Words with more matches cost more time than they are worth."""
CANDIDATES = 120
COMMON_WEIGHT = 0.2
"""Score of a common word, as a share of the best match."""
MEANING_WEIGHT = 1.0
"""Score of the closest meaning, as a share of the best match by words."""
CLOSE_WORDS_WEIGHT = 9.0
"""Score of a memory with every word of the question, as a share of the best match."""
COMPARED = 60
"""Number of best matches that are compared word by word."""
NEAR = 0.15
"""A memory this close in meaning counts like one matching word."""
CLOSE = 0.25
"""A memory this close is relevant without matching words. Other subjects stay below."""
FEW_WORDS = 2
"""If a question has more words than this, a single matching word may be chance."""
AROUND = 20
FRESH_WEIGHT, FRESH_SECONDS = 0.04, 30 * 86_400.0
"""Bonus of the newest memory, as a share of the best score, and its half-life in seconds. It
decides between memories that match about equally."""
RARE_COUNT, RARE_ALONE_COUNT = 3, 5
"""A word in this few memories is significant if the meaning matches too, or alone."""
BEGINNING_CHARS, ENDING_CHARS = 5, 2
"""A word that no memory has is searched without its ending, as it may be misspelled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryHit:
    """A memory that matches a question. Higher scores match better."""

    file: str
    description: str
    score: float
    is_significant: bool
    """The memory matches by more than chance (see `is_enough`), or is next to such a memory."""


@dataclass(frozen=True, slots=True)
class _Asked:
    chosen: Mapping[str, frozenset[int]]
    common: Mapping[str, frozenset[int]]
    weights: Mapping[str, float]
    """The weight of each word, which is higher if few memories contain it."""
    is_short: bool
    rare: int

    def is_enough(self, id: int, meaning: float) -> bool:
        found = [len(ids) for ids in self.chosen.values() if id in ids]
        words = sum(FEW_WORDS if count <= self.rare else 1 for count in found)
        if self.is_short and words:
            return True
        return words + (meaning >= NEAR) + (meaning >= CLOSE) >= FEW_WORDS


class MemorySearch:
    def __init__(
        self, database: Database, embedding: Callable[[], Embedding | None] = load_installed
    ) -> None:
        """The function `embedding` is called on first use."""
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
        """Find memories for a question, best first. Superseded memories come last."""
        head: int = self._sql.one("SELECT coalesce(max(id), 0) FROM commits")[0]
        if head != self._head:
            self._head = head
            self._common.clear()
        asked = self._read_question(query)
        by_words = self._score_words(asked)
        meaning: Mapping[int, float] = {}
        if self._vectors:
            with suppress(MemoryBusy):  # if the store is busy, new memories are found by words only
                meaning = self._vectors.find_closest(query, CANDIDATES, by_words, head)
        base = _fuse(by_words, meaning)
        for id in base:
            base[id] += COMMON_WEIGHT * sum(id in ids for ids in asked.common.values())
        if self._vectors:
            best = sorted(base, key=base.__getitem__, reverse=True)[:COMPARED]
            for id, share in self._vectors.compare_words(asked.weights, best).items():
                base[id] += CLOSE_WORDS_WEIGHT * share
        significant = {id for id in base if asked.is_enough(id, meaning.get(id, 0.0))}
        scores = dict(base)
        best = sorted(base, key=base.__getitem__, reverse=True)[:AROUND]
        with suppress(MemoryBusy):
            for id, near, share in self._adjacency.of(best, head):
                scores[near] = scores.get(near, 0.0) + share * base[id]
                if id in significant:
                    significant.add(near)
        found = {id: scores[id] for id in significant.union(by_words)}
        return self._hits(found, significant, limit)

    def _read_question(self, query: str) -> _Asked:
        total: int = self._sql.one("SELECT count(*) FROM tree")[0]
        most = max(COMMON_FLOOR, round(total * COMMON_SHARE))
        words = words_of(split_unspaced(query))
        chosen: dict[str, frozenset[int]] = {}
        common: dict[str, frozenset[int]] = {}
        found: dict[str, frozenset[int]] = {}
        weights: dict[str, float] = {}
        for word in words[: QUERY_WORDS * 4]:
            term = f'"{word}"'
            ids = self._find_term(term, most)
            beginning = word[:-ENDING_CHARS]
            if not ids and len(beginning) >= BEGINNING_CHARS:
                term = f'"{beginning}" *'
                ids = self._find_term(term, most)
            found[term] = ids
            weights[word] = math.log(1 + total / (1 + len(ids)))
        for term, ids in sorted(found.items(), key=lambda pair: len(pair[1])):
            room = READ_MEMORIES - sum(map(len, chosen.values()))
            if 0 < len(ids) <= (min(most, room) if chosen else most) and len(chosen) < QUERY_WORDS:
                chosen[term] = ids
            elif ids and len(common) < QUERY_WORDS:
                common[term] = ids
        rare = RARE_COUNT if self._vectors else RARE_ALONE_COUNT
        return _Asked(chosen, common, weights, len(words) <= FEW_WORDS, rare)

    def _find_term(self, term: str, most: int) -> frozenset[int]:
        """Return the memories that match a term. Results for common terms are cached."""
        if term in self._common:
            return self._common[term]
        rows = self._sql.all("SELECT rowid FROM words WHERE words MATCH ?", term)
        ids = frozenset(row[0] for row in rows)
        if len(ids) > most:
            self._common[term] = ids
        return ids

    def _score_words(self, asked: _Asked) -> dict[int, float]:
        if not asked.chosen:
            return {}
        rows = self._sql.all(
            "SELECT rowid, -rank FROM words WHERE words MATCH ?"
            " AND rank MATCH 'bm25(4.0, 3.0, 1.0)' ORDER BY rank, rowid DESC LIMIT ?",
            *(" OR ".join(asked.chosen), CANDIDATES),
        )
        return dict(rows)

    def _hits(
        self, scores: Mapping[int, float], significant: set[int], limit: int
    ) -> list[MemoryHit]:
        rows = self._sql.all(
            "SELECT id, file, description, superseded_by != '', modified FROM tree"
            f" WHERE id IN ({','.join(map(str, scores))})"
        )
        newest = max((row[4] for row in rows), default=0.0)
        best = max(scores.values(), default=0.0)
        fresh = {
            row[0]: scores[row[0]]
            + FRESH_WEIGHT * best * 0.5 ** ((newest - row[4]) / FRESH_SECONDS)
            for row in rows
        }
        rows.sort(key=lambda row: (row[3], -fresh[row[0]], row[1]))
        return [
            MemoryHit(
                file=file, description=said, score=scores[id], is_significant=id in significant
            )
            for id, file, said, *_ in rows[:limit]
        ]


def _fuse(by_words: Mapping[int, float], meaning: Mapping[int, float]) -> dict[int, float]:
    best_word = max(by_words.values(), default=1.0) or 1.0
    best_meaning = max(meaning.values(), default=1.0) or 1.0
    return {
        id: by_words.get(id, 0.0) / best_word + MEANING_WEIGHT * meaning.get(id, 0.0) / best_meaning
        for id in {*by_words, *meaning}
    }
