"""What kind of thing a statement gives as its value: only values of one kind exclude each other.

The words of a value come in; its kind goes out, with what is said after it. "db-9" is a name with
a number as "db-7" is, "8080" and "8080/tcp" are not alike, and "small" and "friendly" are no values
at all: both may be true. What has no kind contradicts nothing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
_UNITS = frozenset(
    [
        "ms",
        "s",
        "sec",
        "second",
        "min",
        "minute",
        "h",
        "hour",
        "day",
        "week",
        "month",
        "kb",
        "mb",
        "gb",
        "kib",
        "mib",
        "gib",
        "%",
    ]
)
_PLACES = frozenset(["in", "on", "at", "by", "from", "for", "to", "under"])
_JOINTS = _PLACES | frozenset(
    [
        "since",
        "because",
        "and",
        "or",
        "not",
        "but",
        "when",
        "after",
        "before",
        "with",
        "as",
        "until",
    ]
)
NAMES = frozenset({"name", "letters"})
"""Kinds of which one thing may well have several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Valued:
    """A value by its kind."""

    place: str
    """The word that leads to it, as `in` or `on`; '' is none."""
    kind: tuple[str, ...]
    """What must be the same for two values to exclude each other; empty is no kind."""
    rest: tuple[str, ...]
    """What is said after it."""


def valued(words: Sequence[str]) -> Valued:
    """Read the words of a value, as they were written."""
    place = words[0].lower() if words and words[0].lower() in _PLACES else ""
    said = words[1:] if place else words
    for number, word in enumerate(said):
        if not (kind := kind_of(word)):
            continue
        end = number + 1
        before = tuple(one.lower() for one in said[:number])
        unit: tuple[str, ...] = ()
        if kind == "number" and end < len(said) and said[end].lower() not in _JOINTS:
            unit = (_unit(said[end]),)
            end += 1
        rest = tuple(one.lower() for one in said[end:])
        return Valued(place=place, kind=(*before, kind, *unit), rest=rest)
    return Valued(place=place, kind=(), rest=())


def kind_of(word: str) -> str:
    """Say what kind of value a word is; '' for one that merely describes."""
    if word.lower().removesuffix("s") in _DAYS.split():
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
        return "name with signs"
    if re.fullmatch(r"[A-Z]{2,}", word):
        return "letters"
    return "name" if word[0].isupper() else ""


def exclude(new: Valued, old: Valued, *, is_change: bool, is_one_of_many: bool) -> bool:
    """Tell whether two values of one thing cannot both hold."""
    if not new.kind or new.kind != old.kind:
        return False
    if is_one_of_many and new.kind[-1] in NAMES:
        return False
    if is_change:
        return not new.rest or not old.rest or new.rest == old.rest
    return (new.place, new.rest) == (old.place, old.rest)


def _unit(word: str) -> str:
    told = word.lower()
    return "unit" if told in _UNITS or told.removesuffix("s") in _UNITS else told
