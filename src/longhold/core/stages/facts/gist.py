"""Select the key sentences of a text: findings, decisions and questions.

A question at the end is always kept, because the user's next message answers it.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from longhold.core.messages.text import CUT, cut, one_line, sentences, without_code
from longhold.core.stages.facts.names import find_names, has_name

REMEMBERED = 4_096
"""Number of cached texts. A long session has fewer answers, which each compaction reads."""
CONCLUSIONS = 2
LEAST_CHARS = 40
LONG_CHARS = 400
"""An answer of this length between calls has content and is not just an announcement."""
QUESTION_CHARS = 160
WEIGHED_SENTENCES = 60
"""A text with more sentences is a document. Its beginning represents it."""

_CONCLUDES = re.compile(
    r"\b(?:this means|that means|therefore|in conclusion|because|so the|which is why)\b",
    re.IGNORECASE,
)
_STRONG = re.compile(
    r"root cause|turns out|\bfound (?:it|the)\b|decided?\b|\bgo with\b|\binstead of\b"
    r"|\b(?:issue|problem|bug|reason|fix|cause|solution|mismatch|culprit|difference) (?:is|was)\b"
    r"|\b(?:issue|problem|bug|reason|fix|cause|solution|recommendation|decision)(?:(?:\*\*)?:(?:\*\*)?| [-–—])\s"
    r"|\bthe (?:best|right|simplest|cleanest) (?:approach|way|option)|\bI(?:'d| would)? (?:recommend|suggest)",
    re.IGNORECASE,
)
_STRONG_HINTS = (
    *("cause", "turns out", "found", "decid", "go with", "instead of", "issue", "problem", "bug"),
    *("reason", "fix", "solution", "mismatch", "culprit", "difference", "recommend", "decision"),
    *("approach", "way", "option", "suggest"),
)
_QUOTE = re.compile(r"\"[^\"]*\"")
_EXPLAINS = re.compile(
    r"(?:because|since|so|this|that|it|which|therefore|the (?:reason|fix|cause)|when|but)\b",
    re.IGNORECASE,
)
_PLANS = re.compile(
    r"(?:Now |First |Next |Also |- )?(?:let me|I'll|I will|I should|I need)\b", re.IGNORECASE
)
DOUBTS = re.compile(r"\b(?:maybe|perhaps|might|could be|possibly|wait)\b", re.IGNORECASE)
_ANNOUNCES = re.compile(
    r"(?:Now|First|Next|Then|Good|Great|Perfect|Excellent|Clean|OK|Okay|Let me|Let's|I'll|I will|I need to|I see|I can see|I understand|Done|You're right)\b"
)
"""Beginnings of sentences that announce a step. The step itself is listed anyway."""
_CHEERS = re.compile(r"(?:Good|Great|Perfect|Excellent|OK|Okay|I see|I can see|I understand)\b")
"""Those of these beginnings that may precede a finding."""
_LIMITS = re.compile(
    r"\b(?:not|no|never|only|always|instead|but|unless|because|so|since|without|until|doesn't|isn't|won't|can't|wouldn't"
    r"|couldn't|would|must|needs?|broken?|breaks?|fails?)\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\b(?:limitation|cannot|remain(?:s|ing)?|pending|not yet|todo|unresolved|next steps?)\b",
    re.IGNORECASE,
)
"""Matches mentions of remaining work and open questions."""
_MARKS = re.compile(r"^(?:[-*+•>] |\d{1,2}[.)] )+")
FRAGMENT_CHARS = 20
"""A shorter sentence has no content by itself."""
MOST_NAMES = 3
"""A sentence with more names is a list."""
_TABLE = re.compile(
    r"^[ \t]*\|[ \t|:-]+\|[ \t]*$\n?|^[ \t]*\|[ \t]*|(?<![ \t])[ \t]*\|[ \t]*$", re.MULTILINE
)
"""Matches the rule below a table's header and the borders of its rows."""
_HEADING = re.compile(r"#{1,6} |\*\*[^*]+\*\*:?\Z|\|?[\s|:-]+\Z|\[code ")


def announces(sentence: str) -> bool:
    if _CHEERS.match(sentence) and (is_strong(sentence) or _CONCLUDES.search(sentence)):
        return False
    return bool(_ANNOUNCES.match(sentence))


def only_announces(text: str) -> bool:
    return all(announces(s) or _PLANS.match(s) or len(s) < LEAST_CHARS for s in sentences(text))


def is_strong(sentence: str) -> bool:
    """Return whether a sentence names a cause or a decision outside of quotation marks."""
    lower = sentence.lower()
    if not any(hint in lower for hint in _STRONG_HINTS):  # ten times as fast as the pattern
        return False
    return bool(_STRONG.search(_QUOTE.sub("", sentence)))


@lru_cache(maxsize=REMEMBERED)
def conclusions(text: str, chars: int, *, with_reason: bool = False) -> tuple[str, ...]:
    said = [one_line(sentence).removeprefix("- ") for sentence in sentences(text)]
    long = [s for s in said if len(s) > LEAST_CHARS]
    ends = [s for s in long if s[-1] not in "?:" and not _PLANS.match(s) and not DOUBTS.search(s)]
    weak = (s for s in ends if _CONCLUDES.search(s) and has_name(s))
    chosen = [s for s in ends if is_strong(s)] or [*weak]
    found = chosen[-CONCLUSIONS:]
    return tuple(cut(add_reason(said, s) if with_reason else s, chars) for s in found)


def add_reason(said: Sequence[str], sentence: str) -> str:
    """Append the next sentence if it gives the reason or the mechanism."""
    place = said.index(sentence) + 1
    follows = place < len(said) and _EXPLAINS.match(said[place])
    return f"{sentence} {said[place]}" if follows else sentence


@lru_cache(maxsize=REMEMBERED)
def remark(text: str, chars: int) -> str:
    """Return the statement in an answer between calls, or "" if it only announces the next step."""
    said = [s for s in sentences(without_code(text)) if not announces(s)]
    strong = [i for i, s in enumerate(said) if is_strong(s)]
    first = strong[0] if strong else 0
    found = one_line(" ".join(said[first : first + 2]))
    says = strong or has_name(found) or _CONCLUDES.search(found) or len(text) > LONG_CHARS
    return cut(found, chars) if says else ""


@lru_cache(maxsize=REMEMBERED)
def question(text: str) -> str:
    asked = [s for s in sentences(without_code(text))[-3:] if s.rstrip("*_) ").endswith("?")]
    return cut(one_line(asked[-1]), QUESTION_CHARS) if asked else ""


@lru_cache(maxsize=REMEMBERED)
def gist(
    text: str, chars: int, *, with_question: bool = True, known: frozenset[str] = frozenset()
) -> str:
    """Select the key sentences of an answer, in order. `CUT` replaces omitted sentences.

    Sentences in `known` are omitted, because they are shown elsewhere.
    """
    text = _TABLE.sub("", text)
    if len(whole := one_line(text)) <= chars and not any(s in whole for s in known):
        return whole  # including its code
    body = without_code(text)
    said = [_strip_marks(s) for s in sentences(body or text)][:WEIGHED_SENTENCES]
    if not said or len(one_line(body)) <= chars:
        return one_line(body)
    asked = question(text) if with_question else ""
    room = chars - len(asked)
    chosen: set[int] = set()
    weights = [0.0 if s in known else _weight(said, i) for i, s in enumerate(said)]
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
    if sentence.startswith("|") and _HEADING.match("".join(said[place + 1 : place + 2])):
        return 0.0  # the header of a table
    names_cause = is_strong(sentence)
    follows = is_strong(before) and (before.endswith(":") or bool(_EXPLAINS.match(sentence)))
    is_fragment = len(sentence) < FRAGMENT_CHARS or sentence.endswith(":")
    if _HEADING.match(sentence) or announces(sentence):
        return 0.0
    if is_fragment and not (names_cause or follows):
        return 0.0
    names = min(len(find_names(sentence)), MOST_NAMES) + 2.0 * bool(_OPEN.search(sentence))
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
