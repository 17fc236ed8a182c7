"""Which memory repeats or contradicts another, found without a model and therefore conservatively.

One memory may replace another only if it contains nearly all its shingles, all its words and the
same negations. A newer description contradicts an older one about the same subject if its value is
of the same kind and it reports a change ("is now", "moved to"), or if both give a single number,
path or identifier. A statement that something ended contradicts the memory it names. Updates in
other words are not recognised; that takes a model.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from holdfast.memory.memory import Memory
from holdfast.messages.words import STOP_WORDS

SHINGLE_WORDS = 3
"""Word order matters within three words: "a depends on b" differs from "b depends on a"."""
LEAST_SHINGLES = 4
"""A shorter text is a duplicate only if it has exactly the same words."""
CROWDED = 50
"""A shingle shared by more memories is a stock phrase and suggests no pair."""
VALUE_WORDS = 3
"""A longer value is a description, and two descriptions may both be true."""
ENDED_SHARE = 0.5
"""How much of an older memory an ending must name to be about it."""

_WORD = re.compile(r"[^\W_][\w.:/@+-]*[\w/]|[^\W_]")
_NEGATION = re.compile(r"\b(?:not|no|never|without|cannot|none|\w+n't|\w+n’t)\b", re.IGNORECASE)
_STATEMENT = re.compile(
    r"(?P<subject>[^.:;=]{3,80}?)\s*(?:\b(?P<verb>is|are|(?:has )?moved to|changed to|switched to)\b|"
    r"\b(?:was|were|will be|runs on|lives in|(?P<uses>uses?))\b|[:=])\s*(?P<value>.{1,200})",
    re.IGNORECASE,
)
_CHANGE = re.compile(
    r"\b(?:now|no longer|not any ?more|anymore|instead|from now on|as of|moved to|"
    r"changed to|switched to|replaced|renamed)\b",
    re.IGNORECASE,
)
_END = re.compile(r"\b(?:no longer|not any ?more|anymore|cancell?ed|dropped|abandoned)\b", re.I)
_END_WORDS = "no longer not any more anymore cancelled canceled dropped abandoned"
_FILLER = "the a an our we now currently from on as of instead this is are was to it"
_PLACE = "in at by for under"
_UNIT = re.compile(r"(?:ms|s|sec|second|min|minute|h|hour|day|week|month|[kmg]i?b)s?|%", re.I)
_DAY = re.compile(r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?", re.I)
_DATUM = re.compile(r"[\d/_@`\"]|\b[A-Z]{2,}\b|\w\.\w")
_NAMES = ("name", "acronym")
"""Kinds of which one thing may well have several."""


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
    crowds = (found for found in holders.values() if len(found) <= CROWDED)
    pairs = {pair for found in crowds for pair in combinations(found, 2)}
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What a description says about what; parts that were not found are empty."""

    subject: tuple[str, ...]
    value: tuple[str, ...]
    kind: tuple[str, ...]
    """The kind of the value, after the words before it; values of one kind exclude each other."""
    detail: tuple[str, ...]
    """What follows the value, such as where it holds."""
    is_single: bool
    """The value is all that is said, and a thing has one such value at a time."""
    is_one_of_many: bool
    """The subject uses the value, and may use others."""
    is_change: bool
    is_end: bool
    words: frozenset[str]
    """All words but those that say that something ended."""
    is_negation: bool


def read_statement(description: str) -> Statement:
    match = _STATEMENT.match(description)
    subject, value = (match["subject"], match["value"]) if match else ("", "")
    kind, detail = _kind_and_detail(value)
    has_verb = match is not None and match["verb"] is not None
    return Statement(
        subject=_plain(subject),
        value=_plain(value),
        kind=kind,
        detail=detail,
        is_single=has_verb
        and _DATUM.search(value) is not None
        and len(_plain(value)) <= VALUE_WORDS,
        is_one_of_many=match is not None and match["uses"] is not None,
        is_change=_CHANGE.search(description) is not None,
        is_end=_END.search(description) is not None,
        words=frozenset(_plain(description)) - {*_END_WORDS.split()},
        is_negation=bool(negations(description)),
    )


def contradicts(new: Statement, old: Statement) -> bool:
    """Return whether a newer statement makes an older one wrong; every doubt is a no."""
    if old.is_end:
        return False
    if new.is_end:
        named = new.words & old.words
        is_about_it = len(named) > 1 and len(named) >= ENDED_SHARE * len(old.words)
        return is_about_it and new.words <= old.words and not old.is_negation
    if not new.subject or new.subject != old.subject or new.value == old.value:
        return False
    if not new.kind or new.kind != old.kind:
        return False
    if (new.is_one_of_many or old.is_one_of_many) and new.kind[-1] in _NAMES:
        return False
    if new.is_change:
        return not new.detail or not old.detail or new.detail == old.detail
    is_single = new.is_single and old.is_single and len(new.subject) > 1
    return is_single and new.detail == old.detail


def kind_of(word: str) -> str:
    """Return what kind of value a word is; '' if it only describes."""
    if _DAY.fullmatch(word):
        return "day"
    if re.fullmatch(r"[\d.,]+", word):
        return "number"
    if word[0].isdigit() and re.search(r"[/:-]", word):
        return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "0", word))
    if "@" in word:
        return "address"
    if "/" in word:
        return "path"
    if re.search(r"[\d_-]|\w\.\w", word):
        return "identifier"
    if re.fullmatch(r"[A-Z]{2,}", word):
        return "acronym"
    return "name" if word[0].isupper() else ""


def _kind_and_detail(value: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    said = [word for word in words(value) if word.lower() not in f"{_FILLER} {_PLACE}".split()]
    for number, word in enumerate(said):
        if kind := kind_of(word):
            lower = tuple(map(str.lower, said))
            before, after = lower[:number], lower[number + 1 :]
            if kind == "number" and after and _UNIT.fullmatch(after[0]):
                return (*before, kind, "unit"), after[1:]
            return (*before, kind), after
    return (), ()


def _plain(text: str) -> tuple[str, ...]:
    return tuple(word for word in _lower(text) if word not in _FILLER.split())
