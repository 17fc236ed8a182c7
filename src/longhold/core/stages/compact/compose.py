"""The text that replaces history after a compaction.

In order: the user's messages with their state, the model's summary, facts from the log, an index of
missing exact names, and where to find the rest. A digest can replace the first three.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from longhold.core.log.entries import AnyEntry
from longhold.core.messages import text_of
from longhold.core.messages.secrets import mask_secrets
from longhold.core.stages.compact.digest import FactPieces, budget_for
from longhold.core.stages.compact.digest.context import LIMITS
from longhold.core.stages.compact.directives import DirectiveLedger
from longhold.core.stages.compact.facts_fold import FactsFold
from longhold.core.stages.compact.segment import Segment
from longhold.core.stages.compact.summary import prompt
from longhold.core.stages.compact.survival import Names, Survival, check_survival, recent_names
from longhold.core.stages.compact.user_words import (
    ShownWords,
    render_user_messages,
    trimmed_tokens,
    words_tokens,
)
from longhold.core.stages.facts.facts import CommandFact, Facts, cite
from longhold.core.stages.facts.names import find_names
from longhold.core.view.items import Item
from longhold.core.view.tokens import estimate_tokens

UNKNOWN = "[not found in the log]"
CHECKED = frozenset({"id", "path"})
"""Kinds of names that are never mere wording, so they can be checked against the log."""

_FILE = re.compile(r"[\w-]\.\w{1,6}$")
_PASS = re.compile(
    r"\b(?:all|the)? ?tests? (?:suite )?(?:now )?(?:all )?(?:pass(?:es|ed|ing)?|(?:is|are) green)\b",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\b(?:not|no|never|until|once|if|should|must|before|make)\b", re.IGNORECASE)
_TESTS = re.compile(r"\b(?:test|pytest|tox|jest|vitest|rspec|ctest|check)\b", re.IGNORECASE)


def mark_contradictions(written: str, facts: Facts, items: Sequence[Item]) -> str:
    for name in _find_unknown(written, facts, items):
        written = written.replace(name, f"{name} {UNKNOWN}", 1)
    failed = _find_failed_run(facts)
    if failed is None:
        return written
    mark = f" [the log says otherwise: `{failed.text}` failed {cite(failed.id)}]"
    return "\n".join(_mark_line(line, mark) for line in written.split("\n"))


def _mark_line(line: str, mark: str) -> str:
    claim = _PASS.search(line)
    if claim is None or _DENIED.search(line):
        return line
    return f"{line}{mark}"


def _find_unknown(written: str, facts: Facts, items: Sequence[Item]) -> Iterator[str]:
    names = [
        name
        for name, kind in find_names(written).items()
        if kind in CHECKED and (kind == "id" or _FILE.search(name))
    ]
    if not names:
        return
    told = "\n".join((*_texts(facts), *(text_of(item.content) for item in items)))
    for name in names:
        key = name.rpartition("/")[2] if "/" in name else name.lstrip("#")
        if key not in told:
            yield name


def _texts(facts: Facts) -> Iterator[str]:
    for _, words in facts.words():
        yield words.text
    for _, step in facts.steps():
        for field in ("text", "path", "about", "pattern", "added", "removed", "output", "error"):
            if held := getattr(step, field, ""):
                yield held
    yield from (summary.text for summary in facts.prior)
    yield from (todo.text for todo in facts.todos)


def _find_failed_run(facts: Facts) -> CommandFact | None:
    runs = [
        step
        for _, step in facts.steps()
        if isinstance(step, CommandFact) and _TESTS.search(step.text)
    ]
    return runs[-1] if runs and runs[-1].has_failed else None


HEADINGS = {
    1: "Plans and documents, from the log",
    3: "Files and code",
    4: "Errors, from the log",
    5: "Findings, from the log",
    6: "What was done, from the log",
    7: "Pending, from the log",
    8: "Latest work, from the log",
}
"""Sections the engine adds to a model's summary. The ledger has the user's messages."""
WITH_HISTORY = "The History tool opens any message cited as [#n], and searches all of it by words."
WITHOUT_HISTORY = "Read it there when exact words matter."


@dataclass(frozen=True, kw_only=True)
class DraftParts:
    items: Sequence[Item]
    ledger: DirectiveLedger
    facts: Facts

    @cached_property
    def pieces(self) -> FactPieces:
        return FactPieces(facts=self.facts, marks=self.ledger.marks())

    @cached_property
    def names(self) -> Names:
        return recent_names(self.items, self.ledger.open_texts()[-LIMITS.open_messages :])


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """The input of a compaction, gathered once for every fallback."""

    segment: Segment
    facts: Facts
    """Secrets are masked, here and in the ledger."""
    ledger: DirectiveLedger
    parts: DraftParts
    budget_tokens: int
    """The budget for a digest."""
    written_tokens: int
    """The budget for a model's summary and the additions to it."""
    words_tokens: int
    """The part of either budget for the user's messages, which nothing else can recover."""

    def words(self) -> ShownWords:
        return render_user_messages(self.ledger, self.words_tokens)

    def shrink(self, share: float, words_share: float = 1.0) -> "Material":
        return self._resize(int(self.words_tokens * words_share), share)

    def trim(self) -> "Material":
        """Leave no space for text the user pasted or for finished requests."""
        return self._resize(min(self.words_tokens, trimmed_tokens(self.ledger)), 1.0)

    def _resize(self, words: int, share: float) -> "Material":
        beside = max(0, self.budget_tokens - self.words_tokens)
        beside_written = max(0, self.written_tokens - self.words_tokens)
        return replace(
            self,
            budget_tokens=words + int(beside * share),
            written_tokens=words + int(beside_written * share),
            words_tokens=words,
        )


class Judged(Protocol):
    """A summary or notes, written by a model or a person."""

    @property
    def states(self) -> str:
        """Its unchecked claims about the state of the user's requests."""
        ...

    def text(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    log: str = ""
    has_history: bool = False
    is_auto: bool = True
    is_autonomous: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    text: str
    survival: Survival


def gather_material(
    history: Sequence[AnyEntry],
    segment: Segment,
    segment_tokens: int,
    *,
    most_words_tokens: int = LIMITS.words_tokens,
    most_tokens: int = 0,
    fold: FactsFold | None = None,
) -> Material:
    """Gather the material of a segment. `fold` has what earlier compactions already read."""
    facts, ledger = (fold or FactsFold()).gather(history, segment.items)
    words = min(words_tokens(ledger), most_words_tokens)
    beside = max(0, budget_for(segment_tokens, facts, most_words_tokens) - words)
    beside = min(beside, most_tokens) if most_tokens else beside
    written = max(int(segment_tokens * LIMITS.written_ratio), words + LIMITS.least_added_tokens)
    return Material(
        segment=segment,
        facts=facts,
        ledger=ledger,
        parts=DraftParts(items=segment.items, ledger=ledger, facts=facts),
        budget_tokens=words + beside,
        written_tokens=min(words + beside, written),
        words_tokens=words,
    )


def compose(material: Material, written: Judged | None, manner: Manner) -> Composed:
    """Assemble the parts. Without a model's summary, the digest is the body."""
    tokens = material.budget_tokens if written is None else material.written_tokens
    index_tokens = int(max(0, tokens - material.words_tokens) * LIMITS.index_ratio)
    if written is None:
        body = _write_digest(material, tokens - index_tokens, has_log=bool(manner.log))
    else:
        body = _write_beside(material, tokens - index_tokens, written)
    survival = check_survival(body, material.parts.names, index_tokens)
    parts = (prompt("lead"), body, mask_secrets(survival.index), *_end(material, manner))
    return Composed(text="\n\n".join(filter(None, parts)), survival=survival)


def _write_digest(material: Material, budget_tokens: int, *, has_log: bool) -> str:
    words = material.words_tokens
    return material.parts.pieces.digest(budget_tokens, has_log=has_log, words_tokens=words)


def _write_beside(material: Material, budget_tokens: int, written: Judged) -> str:
    words = material.words().text
    judged = mark_contradictions(
        mask_secrets(written.text()), material.facts, material.segment.items
    )
    left = budget_tokens - estimate_tokens(words) - estimate_tokens(judged)
    added = material.parts.pieces.engine_part(max(left, LIMITS.least_added_tokens), judged)
    sections = (f"## {n}. {name}\n{added[n]}" for n, name in HEADINGS.items() if added.get(n))
    return "\n\n".join((*filter(None, (words, judged)), *sections))


def _end(material: Material, manner: Manner) -> Iterable[str]:
    if manner.log:
        how = WITH_HISTORY if manner.has_history else WITHOUT_HISTORY
        yield prompt("pointers").replace("{log}", manner.log).replace("{how}", how)
    if material.segment.kept and material.segment.kind == "up_to":
        yield prompt("kept")
    if manner.is_autonomous:
        yield prompt("resume_autonomous")
    elif manner.is_auto:
        yield prompt("resume_auto")
