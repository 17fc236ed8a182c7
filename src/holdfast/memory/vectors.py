"""Meaning beside words: a static embedding of each memory, where the `recall` extra is installed.

A text's vector is the mean of its words' vectors, which come from a table in an installed package
and need no network and no model run. Vectors are kept beside the words in the memory database and
made when a search first meets a new memory.
"""

import importlib.util
import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from holdfast.memory.commits import Database
from holdfast.messages.words import STOP_WORDS

if TYPE_CHECKING:
    import numpy
    from tokenizers import Tokenizer

    Array: TypeAlias = numpy.ndarray[Any, numpy.dtype[numpy.float32]]

PACKAGE = "wordllama"
WEIGHTS = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
TEXT_CHARS = 4_000
"""The beginning of a memory says what it is about."""
CENTRE_AFTER = 20
"""With fewer memories their mean says more about each of them than about the language."""

_TABLE = "CREATE TABLE IF NOT EXISTS vectors (id INTEGER PRIMARY KEY, sha TEXT, vector BLOB)"
_MISSING = (
    "SELECT t.id, t.sha, t.name || ' ' || t.description || ' ' || w.body FROM tree t"
    " JOIN words w ON w.rowid = t.id LEFT JOIN vectors v ON v.id = t.id AND v.sha = t.sha"
    " WHERE v.id IS NULL"
)
_WORD = re.compile(r"[^\W_]+(?:'[a-z]+)?")


class Embedding:
    """Word vectors from an installed package."""

    def __init__(self, weights: "Array", tokenizer: "Tokenizer") -> None:
        self._weights = weights
        self._tokenizer = tokenizer

    def vectors(self, texts: Sequence[str]) -> "Array":
        """Return one vector of length 1 for each text; zeros where no word is known."""
        import numpy as np

        kept = [_content_words(text[:TEXT_CHARS]) for text in texts]
        encoded = self._tokenizer.encode_batch(kept, add_special_tokens=False)
        out = np.zeros((len(texts), self._weights.shape[1]), np.float32)
        for row, tokens in zip(out, encoded, strict=True):
            if tokens.ids:
                row[:] = self._weights[tokens.ids].astype(np.float32).mean(axis=0)
        return unit(out)


def _content_words(text: str) -> str:
    return " ".join(word for word in _WORD.findall(text) if word.lower() not in STOP_WORDS)


def unit(rows: "Array") -> "Array":
    import numpy as np

    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Array = rows / np.maximum(lengths, 1e-9)
    return scaled


@lru_cache(maxsize=1)
def installed() -> Embedding | None:
    """Return the embedding of the `recall` extra, or None without it."""
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
    """Map the one tensor of a safetensors file: a length, a JSON header, then numbers."""
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
    """The vectors of a store's memories, in memory while it is open."""

    def __init__(self, database: Database, embedding: Embedding) -> None:
        self._sql = database
        self._embedding = embedding
        self._head = -1
        self._ids: list[int] = []
        self._rows_by_id: dict[int, int] = {}

    def closest(self, text: str, count: int, also: Iterable[int], head: int) -> dict[int, float]:
        """Return how close the `count` closest memories and those of `also` are to a text."""
        import numpy as np

        if head != self._head:
            self._refresh()
            self._head = head
        if not self._rows_by_id:
            return {}
        asked = self._embedding.vectors([text]) - self._centre
        scores = self._rows @ unit(asked)[0]
        best = np.argpartition(-scores, min(count, len(scores) - 1))[:count]
        wanted = {int(self._ids[row]): row for row in best}
        wanted.update((id, self._rows_by_id[id]) for id in also)
        return {id: max(0.0, float(scores[row])) for id, row in wanted.items()}

    def _refresh(self) -> None:
        import numpy as np

        with self._sql.writing(is_lasting=False):
            self._sql.all(_TABLE)
            self._sql.all("DELETE FROM vectors WHERE id NOT IN (SELECT id FROM tree)")
            missing = self._sql.all(_MISSING)
            new = self._embedding.vectors([row[2] for row in missing])
            for (id, sha, _), vector in zip(missing, new, strict=True):
                packed = np.rint(vector * 127).astype(np.int8).tobytes()
                self._sql.insert("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", id, sha, packed)
        rows = self._sql.all("SELECT id, vector FROM vectors ORDER BY id")
        self._ids = [row[0] for row in rows]
        self._rows_by_id = {id: row for row, id in enumerate(self._ids)}
        matrix = np.frombuffer(b"".join(row[1] for row in rows), np.int8).astype(np.float32)
        matrix = unit(matrix.reshape(len(rows), -1)) if rows else matrix.reshape(0, 0)
        weight = len(rows) / (len(rows) + CENTRE_AFTER)
        self._centre = weight * matrix.mean(axis=0) if rows else 0.0
        self._rows = unit(matrix - self._centre) if rows else matrix
