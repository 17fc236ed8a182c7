"""Near-duplicate memories, found without a model and therefore conservatively.

One memory may replace another only if it contains nearly all its shingles, every one of its
words and the same negations: a single differing digit or "not" makes them different.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from holdfast.memory.memory import Memory
from holdfast.memory.search import STOP_WORDS

SHINGLE_WORDS = 3
"""Word order matters within three words: "a depends on b" differs from "b depends on a"."""
LEAST_SHINGLES = 4
"""A shorter text is a duplicate only if it has exactly the same words."""
CROWDED = 50
"""A shingle shared by more memories is a stock phrase and suggests no pair."""

_WORD = re.compile(r"[^\W_][\w.:/@+-]*[\w/]|[^\W_]")
_NEGATION = re.compile(r"\b(?:not|no|never|without|cannot|none|\w+n't|\w+n’t)\b", re.IGNORECASE)


def words(text: str) -> list[str]:
    """Return the words of a text in order, as written."""
    return _WORD.findall(text)


def negations(text: str) -> Counter[str]:
    return Counter(word.lower().replace("’", "'") for word in _NEGATION.findall(text))


def covers(kept: Memory, gone: Memory, share: float) -> bool:
    """Return whether `gone` can be removed without losing anything that `kept` does not say."""
    if kept.type != gone.type:
        return False
    ours, theirs = _content(kept), _content(gone)
    if _lower(ours) == _lower(theirs):
        return True
    mine, others = _shingles(ours), _shingles(theirs)
    if len(others) < LEAST_SHINGLES or len(mine & others) < share * len(others):
        return False
    is_covered = set(_lower(theirs)) - STOP_WORDS <= set(_lower(ours))
    return is_covered and negations(ours) == negations(theirs)


def candidate_pairs(memories: Sequence[Memory]) -> Iterator[tuple[Memory, Memory]]:
    """Yield each pair of memories that share an uncommon shingle, once."""
    holders: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, memory in enumerate(memories):
        for shingle in _shingles(_content(memory)):
            holders[shingle].append(number)
    pairs = {
        (first, second)
        for found in holders.values()
        if len(found) <= CROWDED
        for place, first in enumerate(found)
        for second in found[place + 1 :]
    }
    for first, second in sorted(pairs):
        yield memories[first], memories[second]


def _content(memory: Memory) -> str:
    return f"{memory.description}\n{memory.body}"


def _lower(text: str) -> list[str]:
    return [word.lower() for word in words(text)]


def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    found = _lower(text)
    if len(found) < SHINGLE_WORDS:
        return frozenset({tuple(found)})
    return frozenset(
        tuple(found[n : n + SHINGLE_WORDS]) for n in range(len(found) - SHINGLE_WORDS + 1)
    )
