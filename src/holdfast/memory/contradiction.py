"""Contradicted memories, found without a model and therefore conservatively.

A description is read as a subject and a value. A newer one contradicts an older one about the
same subject if its value is of the same kind and it reports a change ("is now", "moved to"), or if
both give a single number, path or identifier. A statement that something ended contradicts the
memory it names. Updates in other words are not recognised; that takes a model.
"""

import re
from dataclasses import dataclass

from holdfast.memory.similarity import negations, words

VALUE_WORDS = 3
"""A longer value is a description, and two descriptions may both be true."""
ENDED_SHARE = 0.5
"""How much of an older memory an ending must name to be about it."""

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
    silent = {*_FILLER.split(), *_PLACE.split()}
    said = [word for word in words(value) if word.lower() not in silent]
    for number, word in enumerate(said):
        if kind := kind_of(word):
            before, after = _lower(said[:number]), _lower(said[number + 1 :])
            if kind == "number" and after and _UNIT.fullmatch(after[0]):
                return (*before, kind, "unit"), after[1:]
            return (*before, kind), after
    return (), ()


def _lower(said: list[str]) -> tuple[str, ...]:
    return tuple(word.lower() for word in said)


def _plain(text: str) -> tuple[str, ...]:
    return tuple(word for word in _lower(words(text)) if word not in _FILLER.split())
