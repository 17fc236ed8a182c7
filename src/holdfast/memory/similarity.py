"""How alike two memories are, and what they speak about; without a model, so only what is safe.

Texts come in; words, shingles and statements go out. One memory may stand for another only if
it holds nearly all its shingles, every one of its words and the same denials: a digit or a
"not" of difference is a difference. A statement is a subject and what is said of it; a change
is a statement that says itself that something was otherwise before.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.memory.memory import Memory
from holdfast.memory.search import STOP_WORDS
from holdfast.memory.values import Valued, exclude, valued

SHINGLE_WORDS = 3
"""Order matters within three words: who depends on whom is not the same both ways."""
LEAST_SHINGLES = 4
"""A shorter text is alike only if it is the same."""
CROWDED = 50
"""A shingle that more memories share is a phrase of the house and finds no pair."""

_WORD = re.compile(r"[^\W_][\w.:/@+-]*[\w/]|[^\W_]")
_DENIAL = re.compile(r"\b(?:not|no|never|without|cannot|none|\w+n't|\w+n’t)\b", re.IGNORECASE)
_SAYS = re.compile(
    r"(?P<subject>[^.:;=]{3,80}?)\s*(?:\b(?P<verb>is|are|(?:has )?moved to|changed to|switched to)\b|"
    r"\b(?:was|were|will be|runs on|lives in|(?P<uses>uses|use))\b|[:=])\s*(?P<value>.{1,200})",
    re.IGNORECASE,
)
_CHANGE = re.compile(
    r"\b(?:now|no longer|not any ?more|anymore|instead|from now on|as of|moved to|"
    r"changed to|switched to|replaced|renamed)\b",
    re.IGNORECASE,
)
_ENDED = re.compile(r"\b(?:no longer|not any ?more|anymore|cancell?ed|dropped|abandoned)\b", re.I)
_FILLER = "the a an our we now currently from on as of instead this is are was to it"
_ENDING = "no longer not any more anymore cancelled canceled dropped abandoned"
_DATUM = re.compile(r"[\d/_@`\"]|\b[A-Z]{2,}\b|\w\.\w")

DATUM_WORDS = 3
"""A longer value is a description, and two of those may both be true."""
ENDED_SHARE = 0.5
"""How much of an older memory an ending must name to be about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What a description says of what."""

    subject: tuple[str, ...]
    value: tuple[str, ...]
    is_change: bool
    """It says itself that it was otherwise before."""
    is_end: bool
    """It says that something is no more."""
    valued: Valued
    """The value by its kind."""
    uses_it: bool
    """The value is something that is used; a thing may use several."""
    is_datum: bool
    """The value is a number, a name, a path: there is one at a time."""
    words: frozenset[str]
    """All its words but those that say that something ended."""
    is_denial: bool


def words(text: str) -> list[str]:
    """List the words of a text, in order, in lower case."""
    return [word.lower() for word in _WORD.findall(text)]


def content(memory: Memory) -> str:
    """Give what a memory says, its head's line and its body."""
    return f"{memory.description}\n{memory.body}"


def shingles(text: str) -> frozenset[tuple[str, ...]]:
    """Cut a text into overlapping runs of words."""
    found = words(text)
    if len(found) < SHINGLE_WORDS:
        return frozenset({tuple(found)})
    return frozenset(
        tuple(found[n : n + SHINGLE_WORDS]) for n in range(len(found) - SHINGLE_WORDS + 1)
    )


def stands_for(kept: Memory, gone: Memory, share: float) -> bool:
    """Tell whether nothing would be lost if one memory went and the other stayed."""
    if kept.type != gone.type:
        return False
    ours, theirs = content(kept), content(gone)
    if words(ours) == words(theirs):
        return True
    mine, others = shingles(ours), shingles(theirs)
    if len(others) < LEAST_SHINGLES or len(mine & others) < share * len(others):
        return False
    is_covered = set(words(theirs)) - STOP_WORDS <= set(words(ours))
    return is_covered and denials(ours) == denials(theirs)


def denials(text: str) -> Counter[str]:
    """Count the words that turn a statement into its opposite."""
    return Counter(word.lower().replace("’", "'") for word in _DENIAL.findall(text))


def near_pairs(memories: Sequence[Memory]) -> Iterator[tuple[Memory, Memory]]:
    """Yield pairs that share a shingle and may be alike, each once."""
    holders: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, memory in enumerate(memories):
        for shingle in shingles(content(memory)):
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


def statement(description: str) -> Statement:
    """Read a description as a subject and what is said of it; either may be empty."""
    told = _SAYS.match(description)
    value = _plain(told["value"]) if told else ()
    return Statement(
        subject=_plain(told["subject"]) if told else (),
        value=value,
        valued=valued(_as_written(told["value"]) if told else ()),
        uses_it=bool(told and told["uses"]),
        is_change=_CHANGE.search(description) is not None,
        is_end=_ENDED.search(description) is not None,
        is_datum=bool(told and told["verb"] and _DATUM.search(told["value"]))
        and len(value) <= DATUM_WORDS,
        words=frozenset(_plain(description)) - set(_ENDING.split()),
        is_denial=bool(denials(description)),
    )


def contradicts(new: Statement, old: Statement) -> bool:
    """Tell whether a newer statement makes an older one wrong."""
    if old.is_end:
        return False
    if new.is_end:
        named = new.words & old.words
        is_about_it = len(named) > 1 and len(named) >= ENDED_SHARE * len(old.words)
        return is_about_it and new.words <= old.words and not old.is_denial
    if not new.subject or new.subject != old.subject or new.value == old.value:
        return False
    if not new.is_change and not (new.is_datum and old.is_datum and len(new.subject) > 1):
        return False
    return exclude(
        new.valued,
        old.valued,
        is_change=new.is_change,
        is_one_of_many=new.uses_it or old.uses_it,
    )


def _as_written(value: str) -> list[str]:
    """List the words of a value, without those that say nothing; where it is stays."""
    silent = set(_FILLER.split()) - {"on", "from", "to"}
    return [word for word in _WORD.findall(value) if word.lower() not in silent]


def _plain(text: str) -> tuple[str, ...]:
    return tuple(word for word in words(text) if word not in _FILLER.split())
