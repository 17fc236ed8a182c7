"""Phrases by which users take back a request, and which request they mean.

A sentence can cancel the previous request ("never mind"), one by number ("cancel #12") or one by its
words ("forget the retry logic"). Only unmistakable phrases are known; a paraphrase ("I changed my
mind about caching") stays in the ledger word for word, and a model may interpret it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from holdfast.messages.cut import sentences

ENOUGH = 2 / 3
"""The share of the naming words that the request must contain: users shorten."""

_LEAD = r"^\W*(?:(?:oh|ah|hmm+|ok(?:ay)?|no|wait|actually|sorry|please|so|and|also|well|right|on second thought|but)\b[\s,.:;!-]*)*(?:let'?s |please |you can |we can |could you )?"
_BARE = re.compile(
    _LEAD
    + r"(?:never ?mind|(?:forget|cancel|scrap|drop|skip|ignore|disregard|abandon|undo) (?:it|that|this|about (?:it|that|this)|what i (?:just )?said|my (?:last|previous) (?:message|request)|that (?:last )?request)|don'?t do (?:it|that|this)(?: after all| any ?more)?|stop (?:that|this|it))"
    r"(?:,? (?:please|then|for now|after all|instead))?\s*(?=$|[,.!;:—-]|\bwe\b|\bi\b|\blet)",
    re.IGNORECASE,
)
_NAMING = re.compile(
    _LEAD + r"(?:(?P<plain>never ?mind(?: about)?|forget about"
    r"|(?:don'?t|do not) bother (?:with|about)?|(?:there(?:'s| is) )?no (?:more )?need (?:for|to)"
    r"|(?:we|i) (?:no longer (?:need|want)|(?:don'?t|do not) (?:need|want)(?= .*\b(?:any ?more|after all)\b)))"
    r"|(?P<verb>cancel|scrap|abandon|disregard|forget)|drop|skip|stop|ignore|undo)"
    r"\s+(?P<what>[^.,!?;:\n—]+)",
    re.IGNORECASE,
)
"""`plain` phrases mean nothing else; a verb can also be work (`cancel buttons`) and needs an article."""
_ARTICLE = re.compile(r"^(?:the|a|an|my|that|this|those|these|our|your|all|both)\s+", re.IGNORECASE)
_POINTS = re.compile(r"^(?:the|my|that|this|those|these|our|your|all|both)\s", re.IGNORECASE)
_NUMBERED = re.compile(r"(?:#|\bmessage |\bturn |\bT)(\d+)\b")
_CONDITION = re.compile(r"\b(?:when(?:ever)?|if|unless|until|once|while)\b", re.IGNORECASE)
"""A condition describes behaviour to build, or is undecided."""
_STATED = re.compile(
    r"\b(?:should|must|needs?|shall|can|cannot|could|will|would|may|might|is|are|was|were|has|have"
    r"|had|does|do|did|gets?|goes|works?|looks?|shows?|says?|fails?|breaks?|ha[sd]n'?t|isn'?t"
    r"|aren'?t|doesn'?t|don'?t|can'?t|won'?t)\b",
    re.IGNORECASE,
)
"""A verb that makes a statement about what seemed to be named: `the cancel page needs a title`."""
_TAIL = re.compile(
    r"\b(?:any ?more|after all|for now|please|then|instead|because|since|as we)\b.*$", re.I
)
_WORD = re.compile(r"[a-z0-9_][\w./-]+")
_STOP = frozenset(
    [
        *("the", "and", "that", "this", "those", "these", "with", "for", "from", "into", "about"),
        *("any", "all", "your", "our", "can", "you", "please", "just", "have", "has", "will"),
        *("would", "should", "could", "not", "more", "need", "want", "let", "make", "being"),
        *("to", "of", "in", "it", "is", "on", "at", "by", "we", "so", "do", "an", "or", "as", "be"),
        *("my", "us", "me", "up", "request", "message", "task", "thing", "part", "idea", "plan"),
        *("work", "doing", "adding", "using"),
    ]
)
"""Words that identify no request."""

LONGEST_CHARS = 1_500
"""A longer message contains a paste, whose words are not the user's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelling:
    words: frozenset[str] = frozenset()
    """The words that identify it; none for the previous request."""
    phrase: str = ""
    """Its exact wording: a request that contains it is meant."""
    number: int = 0
    is_replacing: bool = False
    """Something else is wanted instead."""


def cancellings(text: str) -> Iterator[Cancelling]:
    for sentence in sentences(text) if len(text) <= LONGEST_CHARS else ():
        if sentence.endswith("?") or _CONDITION.search(sentence):
            continue
        is_replacing = bool(re.search(r"\binstead\b|\brather\b", sentence, re.IGNORECASE))
        if _BARE.match(sentence):
            yield Cancelling(is_replacing=is_replacing)
        elif naming := _NAMING.match(sentence):
            found = _named(naming)
            if found is not None:
                yield replace(found, is_replacing=is_replacing)


def _named(naming: re.Match[str]) -> Cancelling | None:
    """Return what is named, if it is named by itself and nothing is said about it."""
    what = _TAIL.sub("", naming["what"]).strip()
    phrase = _ARTICLE.sub("", what)
    number = _NUMBERED.search(phrase)
    if number and not significant(phrase.replace(number[0], "")):
        return Cancelling(number=int(number[1]))
    if _STATED.search(phrase) or not (naming["plain"] or _POINTS.match(what)):
        return None
    named = significant(phrase)
    least = 1 if naming["plain"] or naming["verb"] else 2  # a verb of many uses needs more
    return Cancelling(words=named, phrase=phrase.lower()) if len(named) >= least else None


def significant(text: str) -> frozenset[str]:
    """Return the stems of the words that identify a text."""
    words = (word.strip(".-/") for word in _WORD.findall(text.lower()))
    return frozenset(_stem(word) for word in words if len(word) > 1 and word not in _STOP)


def likeness(cancelling: Cancelling, text: str) -> float:
    """Return the share of a cancellation's words that a request contains."""
    return len(cancelling.words & significant(text)) / len(cancelling.words)


def clauses(text: str) -> list[str]:
    asked = sentences(_WRAPPED.sub(" ", text))
    parts = (part.strip() for sentence in asked for part in _ASKS.split(sentence))
    return [part for part in parts if significant(part) and not _REMARK.match(part)]


_ASKS = re.compile(r",? (?:and|then|also|plus) |;|, (?=\w+ (?:the|a|an)\b)")


_WRAPPED = re.compile(r"\n(?=[a-z])")
"""A line that continues the sentence."""
_REMARK = re.compile(
    r"(?:it|its|this|that|see|the|there|they|i|we|you|because|since|as|which|note|for)\b", re.I
)
"""How a sentence begins that comments on a request without asking for more."""


def _stem(word: str) -> str:
    for ending, stem in (("ing", ""), ("ies", "y"), ("ed", ""), ("es", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) > 2:
            return word.removesuffix(ending) + stem
    return word
