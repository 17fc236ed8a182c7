"""Parse and rank history questions: words, "phrases", `file:PATH` and `kind:KIND`.

Words rank the matches. Phrases, files and kinds filter them.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from longhold.core.log.entries import AnyEntry, Collapsed, Compacted, Ran, Replied, Restored, Said
from longhold.core.messages import is_thought
from longhold.core.messages.words import split_unspaced, words_of
from longhold.core.tools.describe import description_of
from longhold.core.tools.protocol import ToolKind
from longhold.errors import NotInHistory

NEAR = {1: 0.4, -1: 0.4, 0: 0.3, 2: 0.2, -2: 0.2, 3: 0.1, -3: 0.1}
"""Share of a word's weight by distance in steps. Distance 0 counts less, as results are long."""
RANKED = 600
"""Number of best passages whose surroundings are scored."""
PASSAGE_BITS = 16
"""Number of low bits in a row number that hold the passage number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageMatch:
    n: int
    passage: int = 0
    score: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TermRows:
    """The rows that contain a word, with the word's weight."""

    weight: float
    rows: Sequence[int]


def rank(
    terms: Sequence[TermRows], step_of: Callable[[int], int], is_allowed: Callable[[int], bool]
) -> list[PassageMatch]:
    """Return the records, best first, each with its best passage. In a tie the newest wins."""
    inside: defaultdict[int, float] = defaultdict(float)
    for term in terms:
        for row in term.rows:
            inside[row] += term.weight
    ordered = sorted(inside, key=lambda row: (inside[row], row), reverse=True)
    rows = islice((row for row in ordered if is_allowed(row >> PASSAGE_BITS)), RANKED)
    steps = [{step_of(row >> PASSAGE_BITS) for row in term.rows} for term in terms]
    having = [set(term.rows) for term in terms]
    scored = []
    for row in rows:
        step = step_of(row >> PASSAGE_BITS)
        around = sum(
            term.weight * next((NEAR[d] for d in NEAR if step + d in steps[i]), 0.0)
            for i, term in enumerate(terms)
            if row not in having[i]
        )
        scored.append((inside[row] + around, row))
    scored.sort(reverse=True)
    best: dict[int, PassageMatch] = {}
    for score, row in scored:
        n = row >> PASSAGE_BITS
        best.setdefault(n, PassageMatch(n=n, passage=row & ((1 << PASSAGE_BITS) - 1), score=score))
    return list(best.values())


QUERY_WORDS = 64

_PARTS = re.compile(r'(?:(?<!\S)(file|kind):)?(?:"([^"]*)"|(\S+))', re.IGNORECASE)
_TOOLS: dict[ToolKind, str] = {"write": "edit", "shell": "command"}
"""Names for the results of these kinds of tools. Other kinds keep their names."""
KINDS = (
    *("user", "aside", "answer", "thinking", "summary", "result", "error"),
    *("edit", "command", "read", "search", "fetch", "ask"),
)

_HINTS = {"user": "user", "fail": "error", "failed": "error", "failure": "error", "error": "error"}
"""Words that suggest the kind of record that answers the question."""
HINTED = 2.0
LESS = {"summary": 0.7, "read": 0.8}
"""Factors for weak matches. Summaries repeat other records, and files contain many words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryQuestion:
    text: str = ""
    words: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    """A record must contain every phrase. Case and word forms are ignored."""
    files: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset()
    """A record must have at least one of these kinds."""

    def weight_of(self, kinds: frozenset[str]) -> float:
        hinted = {_HINTS[word] for word in self.text.lower().split() if word in _HINTS}
        less = min((LESS[kind] for kind in kinds & LESS.keys()), default=1.0)
        return less * (HINTED if kinds & hinted else 1.0)

    @property
    def has_words(self) -> bool:
        return bool(self.words or self.phrases)


def parse_question(query: str, file: str = "") -> HistoryQuestion:
    """Parse a query. An unknown kind is an error that lists the known kinds."""
    words: list[str] = []
    phrases: list[str] = []
    files = [file.strip()] if file.strip() else []
    kinds: set[str] = set()
    for field, phrase, word in _PARTS.findall(query):
        text = phrase or word.strip('"')
        match field.lower():
            case "file":
                files.append(text)
            case "kind":
                kinds.update(map(_kind, text.split(",")))
            case _:
                if re.search(r"\w", text):
                    (phrases if phrase else words).append(text)
    return HistoryQuestion(
        text=" ".join([*words, *(f'"{phrase}"' for phrase in phrases)]),
        words=_list_search_words([word for word in words[:QUERY_WORDS] if word != "user"] or words),
        phrases=tuple(phrases[:QUERY_WORDS]),
        files=tuple(files),
        kinds=frozenset(kinds),
    )


def _list_search_words(written: list[str]) -> tuple[str, ...]:
    """Return the words to search for. A compound name also adds each of its parts."""
    found = words_of(split_unspaced(" ".join(written)))
    whole = [word for word in written if len(re.findall(r"[^\W_]+", word)) > 1]
    return tuple(dict.fromkeys([*found, *whole])) or tuple(dict.fromkeys(written))


def _kind(name: str) -> str:
    kind = name.strip().lower()
    if kind not in KINDS:
        raise NotInHistory(
            f"there is no kind:{name[:40]}; ask for {', '.join(KINDS)}, or quote it to find the text"
        )
    return kind


def kinds_of(entry: AnyEntry, tool: str) -> frozenset[str]:
    match entry:
        case Said():
            return frozenset({"aside" if entry.hidden or entry.role == "system" else "user"})
        case Replied(content=content):
            return frozenset(
                {"answer", "thinking"} if any(map(is_thought, content)) else {"answer"}
            )
        case Ran():
            kind = description_of(tool).kind
            failed = {"error"} if entry.is_error or entry.exit_status else set()
            return frozenset({"result", _TOOLS.get(kind, kind), *failed})
        case Compacted() | Collapsed() | Restored():
            return frozenset({"summary"})
    return frozenset()
