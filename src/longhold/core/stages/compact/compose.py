"""The text that replaces history after a compaction.

The text contains the user's messages with their state, the model's summary, facts from the log, an
index of other exact names, and pointers to the rest. A digest can replace the first three.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from longhold.core.log.entries import AnyEntry
from longhold.core.messages import Json, Text, ToolUse, text_of
from longhold.core.messages.secrets import mask_secrets
from longhold.core.messages.text import BAR
from longhold.core.stages.compact.digest import FactPieces, budget_for
from longhold.core.stages.compact.digest.context import LIMITS, DigestLimits
from longhold.core.stages.compact.digest.pieces import Count
from longhold.core.stages.compact.directives import (
    DirectiveLedger,
    ShownWords,
    bounded_tokens,
    render_user_messages,
    trimmed_tokens,
    words_tokens,
)
from longhold.core.stages.compact.facts_fold import FactsFold
from longhold.core.stages.compact.segment import Segment
from longhold.core.stages.compact.summary import Written, prompt
from longhold.core.stages.facts.facts import Facts
from longhold.core.stages.facts.names import NameKind, find_names
from longhold.core.view.items import Item, Round, Spoken
from longhold.core.view.tokens import estimate_tokens

_TURN = re.compile(r"^(?=[ \t]*T\d+ *\[#)", re.MULTILINE)
"""Matches a line that imitates Longhold's list of the user's messages."""
INDEX_HEADING = "Names in use lately that are not above:"

_ORDER: tuple[NameKind, ...] = ("path", "id", "address", "flag", "name", "number")
"""The order of names by kind. Names that cannot be guessed come first, numbers last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Names in messages, then names that are only in tool inputs, each sorted by frequency."""

    said: dict[str, NameKind]
    earlier: dict[str, NameKind] = field(default_factory=dict)
    """Names in older answers and calls. The index lists them if there is space."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survival:
    names: int
    missing: int
    index: str
    listed: int

    @property
    def share(self) -> float:
        return 1 - (self.missing - self.listed) / self.names if self.names else 1.0


def recent_names(
    items: Sequence[Item], directives: Iterable[str] = (), limits: DigestLimits = LIMITS
) -> Names:
    every = [item for item in items if isinstance(item, Round)]
    rounds = every[-limits.current_rounds :]
    asked = [item for item in items if isinstance(item, Spoken) and item.is_asked()]
    texts = [text_of(item.content) for item in asked[-limits.current_messages :]]
    said = _names_in(rounds, (*texts, *directives))
    earlier = _names_in(every[: -limits.current_rounds], ())
    return Names(said=said, earlier={n: kind for n, kind in earlier.items() if n not in said})


def _names_in(rounds: Sequence[Round], texts: Iterable[str]) -> dict[str, NameKind]:
    blocks = [block for each in rounds for block in each.content]
    answers = (block.text for block in blocks if isinstance(block, Text))
    spoken = _count_names((*texts, *answers))
    inputs = (block.input for block in blocks if isinstance(block, ToolUse))
    given = _count_names(text for given in inputs for text in _strings(given))
    return spoken | {name: kind for name, kind in given.items() if name not in spoken}


def check_survival(
    text: str, names: Names, budget_tokens: int, count: Count = estimate_tokens
) -> Survival:
    missing = {name: kind for name, kind in names.said.items() if name not in text}
    earlier = {name: kind for name, kind in names.earlier.items() if name not in text}
    recent = _order(missing, text)
    _, listed = _index(recent, budget_tokens, count)
    index, _ = _index([*recent, *_order(earlier, text)], budget_tokens, count)
    return Survival(names=len(names.said), missing=len(missing), index=index, listed=listed)


def _count_names(texts: Iterable[str]) -> dict[str, NameKind]:
    times: Counter[str] = Counter()
    kinds: dict[str, NameKind] = {}
    for text in texts:
        found = find_names(text)
        times.update(found.keys())
        kinds.update(found)
    return {name: kinds[name] for name, _ in times.most_common()}


def _strings(value: Json) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for inner in value.values():
                yield from _strings(inner)
        case list():
            for inner in value:
                yield from _strings(inner)
        case int() | float() if not isinstance(value, bool):
            yield str(value)


def _order(missing: dict[str, NameKind], text: str) -> list[tuple[str, NameKind]]:
    """Sort names that cannot be guessed first, and paths to files that the text names last."""
    paths = [name for name, kind in missing.items() if kind == "path"]
    known = {
        path
        for path in paths
        if path.rstrip("/").rpartition("/")[2] in text or not _PATH.search(path)
    }
    return [
        *((name, k) for kind in _ORDER[:-1] for name, k in missing.items() if k == kind and name not in known),
        *((name, k) for name, k in missing.items() if name in known),
        *((name, k) for name, k in missing.items() if k == _ORDER[-1]),
    ]  # fmt: skip


_PATH = re.compile(r"\.\w+$|^[/~.]")
"""Matches a path with an extension or a root, but not two words joined by a slash."""


def _index(
    missing: list[tuple[str, NameKind]], budget_tokens: int, count: Count
) -> tuple[str, int]:
    """List names by kind while they fit. Names that are part of a listed name are skipped."""
    chosen: dict[NameKind, list[str]] = {}
    spent = count(INDEX_HEADING)
    listed = 0
    for name, kind in missing:
        if any(name in other for others in chosen.values() for other in others):
            listed += 1
            continue
        price = count(name) + 1
        if spent + price > budget_tokens:
            continue
        spent += price
        listed += 1
        chosen.setdefault(kind, []).append(name)
    lines = [
        f"- {kind}{'es' if kind == 'address' else 's'}: {', '.join(chosen[kind])}"
        for kind in _ORDER
        if kind in chosen
    ]
    return ("\n".join([INDEX_HEADING, *lines]) if lines else ""), listed


HEADINGS = {
    1: "Plans and documents, from the log",
    3: "Files and code",
    4: "Errors, from the log",
    5: "Findings, from the log",
    6: "What was done, from the log",
    7: "Pending, from the log",
    8: "Latest work, from the log",
}
"""Sections that Longhold adds to a model's summary. The user's messages are listed elsewhere."""
PINNED = "(pinned, shown whole)"
WITH_HISTORY = "The History tool opens any message cited as [#n], and searches all of it by words."
WITHOUT_HISTORY = "Read it there when exact words matter."


@dataclass(frozen=True, kw_only=True)
class DraftParts:
    items: Sequence[Item]
    ledger: DirectiveLedger
    facts: Facts
    """The facts, with masked secrets."""

    @cached_property
    def pieces(self) -> FactPieces:
        return FactPieces(facts=self.facts, marks=self.ledger.marks())

    @cached_property
    def names(self) -> Names:
        return recent_names(self.items, self.ledger.open_texts()[-LIMITS.open_messages :])


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """The input of a compaction, gathered once for all ways to make a summary."""

    segment: Segment
    parts: DraftParts
    budget_tokens: int
    """The budget for a digest."""
    written_tokens: int
    """The budget for a model's summary and the additions to it."""
    words_tokens: int
    """The part of either budget for the user's messages, which cannot be recovered otherwise."""
    open_tokens: int = 0
    """The part of either budget for the calls of the open turn. It is never reduced."""

    @property
    def ledger(self) -> DirectiveLedger:
        return self.parts.ledger

    def words(self, *, can_open: bool = True) -> ShownWords:
        return render_user_messages(self.ledger, self.words_tokens, can_open=can_open)

    def shrink(self, share: float, words_share: float = 1.0) -> "Material":
        return self._resize(int(self.words_tokens * words_share), share)

    def trim(self) -> "Material":
        """Return the material without the space for pasted text and finished requests."""
        return self._resize(min(self.words_tokens, trimmed_tokens(self.ledger)), 1.0)

    def _resize(self, words: int, share: float) -> "Material":
        fixed = self.words_tokens + self.open_tokens
        beside = max(0, self.budget_tokens - fixed)
        beside_written = max(0, self.written_tokens - fixed)
        return replace(
            self,
            budget_tokens=words + self.open_tokens + int(beside * share),
            written_tokens=words + self.open_tokens + int(beside_written * share),
            words_tokens=words,
        )


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
    most_old_words_tokens: int | None = None,
    most_tokens: int = 0,
    most_open_tokens: int = 0,
    pinned: frozenset[int] = frozenset(),
    fold: FactsFold | None = None,
) -> Material:
    """Gather the material of a segment. `fold` has the facts from earlier compactions.

    Messages in `pinned` are left out, because they are shown whole.
    """
    facts, ledger = (fold or FactsFold()).gather(history, segment.items)
    if pinned:
        facts, ledger = _without_words(facts, pinned), ledger.without_words(pinned, PINNED)
    words = min(words_tokens(ledger, most_old_words_tokens), most_words_tokens)
    words = min(words, bounded_tokens(ledger, int(segment_tokens * LIMITS.words_ratio)))
    beside = max(0, budget_for(segment_tokens, facts, words) - words)
    beside = min(beside, most_tokens) if most_tokens else beside
    parts = DraftParts(items=segment.items, ledger=ledger, facts=facts)
    calls = min(parts.pieces.open_tokens, most_open_tokens or parts.pieces.open_tokens)
    least = words + calls + LIMITS.least_added_tokens
    budget = max(words + beside, least)
    return Material(
        segment=segment,
        parts=parts,
        budget_tokens=budget,
        written_tokens=min(budget, max(int(segment_tokens * LIMITS.written_ratio), least)),
        words_tokens=words,
        open_tokens=calls,
    )


def _without_words(facts: Facts, pinned: frozenset[int]) -> Facts:
    turns = (
        replace(turn, words=replace(turn.words, text=PINNED))
        if turn.words and turn.words.id in pinned
        else turn
        for turn in facts.turns
    )
    return replace(facts, turns=tuple(turns))


def compose(material: Material, written: Written | None, manner: Manner) -> Composed:
    """Assemble the parts. Without a model's summary, use the digest instead."""
    tokens = material.budget_tokens if written is None else material.written_tokens
    beside_tokens = max(0, tokens - material.words_tokens - material.open_tokens)
    index_tokens = int(beside_tokens * LIMITS.index_ratio)
    if written is None:
        body = material.parts.pieces.digest(
            tokens - index_tokens,
            has_log=bool(manner.log),
            can_open=manner.has_history,
            words_tokens=material.words_tokens,
        )
    else:  # a model's summary has fewer names than a digest
        index_tokens = max(index_tokens, min(LIMITS.index_tokens, beside_tokens // 3))
        body = _write_beside(material, tokens - index_tokens, written, manner)
        left = tokens - estimate_tokens(body)
        index_tokens = max(int(beside_tokens * LIMITS.index_ratio), min(index_tokens, left))
    survival = check_survival(body, material.parts.names, index_tokens)
    parts = (prompt("lead"), body, mask_secrets(survival.index), *_end(material, manner))
    return Composed(text="\n\n".join(filter(None, parts)), survival=survival)


def _write_beside(material: Material, budget_tokens: int, written: Written, manner: Manner) -> str:
    words = material.words(can_open=manner.has_history).text
    judged = _TURN.sub(f"{BAR} ", mask_secrets(written.text))
    left = budget_tokens - estimate_tokens(words) - estimate_tokens(judged)
    least = LIMITS.least_added_tokens + material.open_tokens
    added = material.parts.pieces.engine_part(max(left, least), judged)
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
