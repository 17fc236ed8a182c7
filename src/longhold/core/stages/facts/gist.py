"""Select the key sentences of a text: findings, decisions and questions.

A question at the end is always kept, because the user's next message answers it.
"""

import re
from functools import lru_cache

from longhold.core.messages.text import CUT, cut, one_line, sentences, without_code
from longhold.core.stages.facts.names import find_names, has_name

REMEMBERED = 4_096
"""Cached texts. More than the answers of a long session, which each compaction reads again."""
CONCLUSIONS = 2
LEAST_CHARS = 40
QUESTION_CHARS = 160
WEIGHED_SENTENCES = 60
"""A longer text is a document, represented by its beginning."""

_CONCLUDES = re.compile(
    r"\b(?:this means|that means|therefore|in conclusion|because|so the|which is why)\b",
    re.IGNORECASE,
)
_STRONG = re.compile(
    r"root cause|turns out|\bfound (?:it|the)\b|decided?\b|\bgo with\b|\binstead of\b"
    r"|\b(?:issue|problem|bug|reason|fix|cause|solution|mismatch|culprit|difference) (?:is|was)\b"
    r"|\b(?:issue|problem|bug|reason|fix|cause|solution|recommendation|decision)(?:\*\*)?:(?:\*\*)?\s"
    r"|\bthe (?:best|right|simplest|cleanest) (?:approach|way|option)|\bI(?:'d| would)? (?:recommend|suggest)",
    re.IGNORECASE,
)
_PLANS = re.compile(
    r"(?:Now |First |Next |Also |- )?(?:let me|I'll|I will|I should|I need)\b", re.IGNORECASE
)
_ANNOUNCES = re.compile(
    r"(?:Now|First|Next|Then|Good|Great|Perfect|OK|Okay|Let me|Let's|I'll|I will|I need to|I see|I can see|I understand|Done|You're right)\b"
)
"""Beginnings of sentences that announce a step, which is listed anyway."""
_LIMITS = re.compile(
    r"\b(?:not|no|never|only|always|instead|but|unless|because|so|since|without|until|doesn't|isn't|won't|can't)\b",
    re.IGNORECASE,
)
_MARKS = re.compile(r"^(?:[-*+•>] |\d{1,2}[.)] )+")
FRAGMENT_CHARS = 20
"""A shorter sentence says nothing by itself."""
MOST_NAMES = 3
"""More names than this are a list."""
_HEADING = re.compile(r"#{1,6} |\*\*[^*]+\*\*:?\Z|\|?[\s|:-]+\Z|\[code ")


def announces(sentence: str) -> bool:
    return bool(_ANNOUNCES.match(sentence))


def is_strong(sentence: str) -> bool:
    return bool(_STRONG.search(sentence))


@lru_cache(maxsize=REMEMBERED)
def conclusions(text: str, chars: int) -> tuple[str, ...]:
    said = [one_line(sentence).removeprefix("- ") for sentence in sentences(text)]
    long = [s for s in said if len(s) > LEAST_CHARS]
    ends = [s for s in long if s[-1] not in "?:" and not _PLANS.match(s)]
    chosen = [s for s in ends if is_strong(s)] or [s for s in ends if _CONCLUDES.search(s)]
    return tuple(cut(sentence, chars) for sentence in chosen[-CONCLUSIONS:])


@lru_cache(maxsize=REMEMBERED)
def remark(text: str, chars: int) -> str:
    said = [s for s in sentences(text) if not announces(s) or has_name(s)]
    strong = [s for s in said if is_strong(s)]
    return cut(one_line(" ".join((strong or said)[:2])), chars)


@lru_cache(maxsize=REMEMBERED)
def question(text: str) -> str:
    asked = [s for s in sentences(without_code(text))[-3:] if s.rstrip("*_) ").endswith("?")]
    return cut(one_line(asked[-1]), QUESTION_CHARS) if asked else ""


@lru_cache(maxsize=REMEMBERED)
def gist(text: str, chars: int, *, with_question: bool = True) -> str:
    """Select the key sentences of an answer, in order. `CUT` replaces omitted ones."""
    body = without_code(text)
    said = [_strip_marks(s) for s in sentences(body or text)][:WEIGHED_SENTENCES]
    if not said or len(one_line(body)) <= chars:
        return one_line(body)
    asked = question(text) if with_question else ""
    room = chars - len(asked)
    chosen: set[int] = set()
    weights = [_weight(said, i) for i in range(len(said))]
    for i in sorted(range(len(said)), key=lambda i: (-weights[i] / len(said[i]) ** 0.5, i)):
        price = len(said[i]) + 1
        if weights[i] > 0 and price <= room:
            chosen.add(i)
            room -= price
    return _join(said, chosen, asked) if chosen else cut(one_line(body), chars)


def _strip_marks(sentence: str) -> str:
    return one_line(_MARKS.sub("", sentence)).replace("**", "")


def _weight(said: list[str], place: int) -> float:
    sentence, before = said[place], said[place - 1] if place else ""
    names_cause = is_strong(sentence)
    follows = before.endswith(":") and is_strong(before)
    is_fragment = len(sentence) < FRAGMENT_CHARS or sentence.endswith(":")
    if _HEADING.match(sentence) or announces(sentence):
        return 0.0
    if is_fragment and not (names_cause or follows):
        return 0.0
    names = min(len(find_names(sentence)), MOST_NAMES)
    return 1.0 + 3.0 * names_cause + 2.0 * follows + 1.5 * bool(_LIMITS.search(sentence)) + names


def _join(said: list[str], chosen: set[int], asked: str) -> str:
    parts: list[str] = []
    for i, sentence in enumerate(said):
        if i in chosen:
            parts.append(sentence)
        elif parts[-1:] != [CUT]:
            parts.append(CUT)
    if asked and asked not in parts[-2:]:
        parts.append(asked)
    return " ".join(parts)
