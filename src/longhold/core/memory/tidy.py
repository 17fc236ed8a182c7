"""Plan how to tidy memories without a model. Planning changes nothing.

A memory is removed only if another covers all of it. A contradicted memory is marked. Dead links
become text, and changed sources are named in the front matter.
"""

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path

from longhold.core.memory.memory import Memory
from longhold.core.memory.provenance import changed_sources, find_in_repository
from longhold.core.messages.words import STOP_WORDS
from longhold.core.settings import DreamSettings
from longhold.core.settings.front_matter import FieldValue

SHINGLE_WORDS = 3
"""Word order matters within three words: "a depends on b" differs from "b depends on a"."""
LEAST_SHINGLES = 4
"""A shorter text is a duplicate only if it has exactly the same words."""
CROWDED = 50
"""A phrase in more memories is common and does not indicate duplicates."""
VALUE_WORDS = 3
"""A longer value is a description, and two descriptions may both be true."""
ENDED_SHARE = 0.5
"""Share of a memory's words that a newer "no longer" statement must repeat to replace it."""

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
"""Kinds of values of which a subject may have several."""
ALIKE_SHARE = 0.9
"""Share of a memory's shingles that its replacement must contain."""


def words(text: str) -> list[str]:
    return _WORD.findall(text)


def _negations(text: str) -> Counter[str]:
    return Counter(word.lower().replace("’", "'") for word in _NEGATION.findall(text))


def covers(kept: Memory, gone: Memory) -> bool:
    """Return whether `gone` can be removed because `kept` covers all of it."""
    if kept.type != gone.type:
        return False
    ours, theirs = _content(kept), _content(gone)
    if _lower(ours) == _lower(theirs):
        return True
    mine, others = _shingles(ours), _shingles(theirs)
    if len(others) < LEAST_SHINGLES or len(mine & others) < ALIKE_SHARE * len(others):
        return False
    is_covered = set(_lower(theirs)) - STOP_WORDS <= set(_lower(ours))
    return is_covered and _negations(ours) == _negations(theirs)


def _candidate_pairs(memories: Sequence[Memory]) -> Iterator[tuple[Memory, Memory]]:
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
    """A description split into its parts. Missing parts are empty."""

    subject: tuple[str, ...]
    value: tuple[str, ...]
    kind: tuple[str, ...]
    """The kind of the value and the words before it. Two values of one kind exclude each other."""
    detail: tuple[str, ...]
    is_single: bool
    """The value is the whole statement, and a subject has only one such value at a time."""
    is_one_of_many: bool
    """The subject uses the value and may use others."""
    is_change: bool
    is_end: bool
    words: frozenset[str]
    is_negation: bool


def read_statement(description: str) -> Statement:
    match = _STATEMENT.match(description)
    subject, value = (match["subject"], match["value"]) if match else ("", "")
    kind, detail = _kind_and_detail(value)
    has_verb = match is not None and match["verb"] is not None
    return Statement(
        subject=_drop_filler(subject),
        value=_drop_filler(value),
        kind=kind,
        detail=detail,
        is_single=has_verb
        and _DATUM.search(value) is not None
        and len(_drop_filler(value)) <= VALUE_WORDS,
        is_one_of_many=match is not None and match["uses"] is not None,
        is_change=_CHANGE.search(description) is not None,
        is_end=_END.search(description) is not None,
        words=frozenset(_drop_filler(description)) - {*_END_WORDS.split()},
        is_negation=bool(_negations(description)),
    )


def contradicts(new: Statement, old: Statement) -> bool:
    """Return whether a newer statement makes an older one wrong. In doubt, it does not."""
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
    """Return the kind of a value word, or '' if it is only descriptive."""
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


def _drop_filler(text: str) -> tuple[str, ...]:
    return tuple(word for word in _lower(text) if word not in _FILLER.split())


_LINK = re.compile(r"\[([^\[\]\n]*)\]\(([^()\s#]+\.md)(#[^()\s]*)?\)")
STALE = "stale"


@dataclass(slots=True, kw_only=True)
class TidyPlan:
    memories: dict[str, Memory]
    gone: dict[str, str] = field(default_factory=dict)
    """Maps files to remove to the reasons."""
    replaced: dict[str, str] = field(default_factory=dict)
    """Maps files removed now or earlier to the files that replace them."""
    superseded: dict[str, str] = field(default_factory=dict)
    repaired: list[str] = field(default_factory=list)


def most_removed(memories: int, settings: DreamSettings) -> int:
    """Return how many memories one dream or search may remove. It never empties a small store."""
    floor = max(0, min(settings.removed_floor, memories - 1))
    return max(floor, int(memories * settings.removed_share))


def plan_tidying(
    memories: Sequence[Memory],
    settings: DreamSettings,
    repository: Path,
    *,
    leave: frozenset[str],
    replaced: Mapping[str, str] | None = None,
    most: int | None = None,
) -> TidyPlan:
    """Plan the tidying. Files in `leave` are neither merged nor marked.

    `replaced` maps files that are already removed to their replacements. `most` limits the number
    of further removals.
    """
    plan = TidyPlan(memories={memory.file: memory for memory in memories})
    plan.replaced.update({file: kept for file, kept in (replaced or {}).items() if kept})
    room = most_removed(len(plan.memories), settings) if most is None else most
    _merge_duplicates(plan, leave, room)
    _mark_superseded(plan, leave)
    for file, memory in plan.memories.items():
        linked = _with_live_links(_with_live_marks(memory, plan), plan, repository)
        plan.memories[file] = _with_stale_sources(linked, repository)
        if plan.memories[file] != memory:
            plan.repaired.append(file)
    return plan


def _merge_duplicates(plan: TidyPlan, leave: frozenset[str], most: int) -> None:
    candidates = [m for m in plan.memories.values() if not m.superseded_by and m.file not in leave]
    for first, second in _candidate_pairs(candidates):
        if len(plan.gone) >= most:
            return
        a, b = plan.memories.get(first.file), plan.memories.get(second.file)
        if a is None or b is None:  # already merged
            continue
        older, newer = sorted((a, b), key=lambda memory: (memory.created, memory.file))
        for kept, gone in ((older, newer), (newer, older)):
            if covers(kept, gone):
                plan.gone[gone.file] = f"{kept.file} contains all of it"
                plan.replaced[gone.file] = kept.file
                plan.memories[kept.file] = _inherit(kept, gone)
                del plan.memories[gone.file]
                break


def _inherit(kept: Memory, gone: Memory) -> Memory:
    return replace(
        kept,
        created=min(kept.created, gone.created),
        modified=max(kept.modified, gone.modified),
        evidence=tuple(dict.fromkeys((*kept.evidence, *gone.evidence))),
        sources={**gone.sources, **kept.sources},
        supersedes=tuple(dict.fromkeys((*kept.supersedes, *gone.supersedes))),
    )


def _mark_superseded(plan: TidyPlan, leave: frozenset[str]) -> None:
    """Mark memories that a newer memory names or contradicts. The newest such memory is named."""
    by_age = sorted(plan.memories.values(), key=lambda memory: (memory.modified, memory.file))
    statements = {memory.file: read_statement(memory.description) for memory in by_age}
    about: dict[tuple[str, ...], list[Memory]] = defaultdict(list)
    for new in by_age:
        statement = statements[new.file]
        named = [plan.memories[file] for file in new.supersedes if file in plan.memories]
        candidates = by_age if statement.is_end else about[statement.subject]
        for old in (*named, *candidates):
            if old.type != new.type or old.modified >= new.modified or old.file in leave:
                continue
            if old in named or contradicts(statement, statements[old.file]):
                plan.superseded[old.file] = new.file
        if statement.subject:
            about[statement.subject].append(new)
    for file, by in list(plan.superseded.items()):
        old, new = plan.memories[file], plan.memories[by]
        if old.superseded_by == by:
            del plan.superseded[file]
        plan.memories[file] = replace(old, superseded_by=by)
        if file not in new.supersedes:
            plan.memories[by] = replace(new, supersedes=(*new.supersedes, file))


def _with_live_links(memory: Memory, plan: TidyPlan, repository: Path) -> Memory:
    def follow(link: re.Match[str]) -> str:
        text, written, anchor = link[1], link[2], link[3] or ""
        target = _target(memory.file, written, {*plan.memories, *plan.replaced})
        if target in plan.replaced:
            kept = _replacement(target, plan)
            # The anchor belonged to the removed memory.
            return f"[{text}]({posixpath.relpath(kept, posixpath.dirname(memory.file) or '.')})"
        if target or find_in_repository(repository, written) or "://" in written:
            return link[0]
        return f"{text} ({written}{anchor} is gone)"

    return replace(memory, body=_LINK.sub(follow, memory.body))


def _with_live_marks(memory: Memory, plan: TidyPlan) -> Memory:
    """Redirect marks to the replacements of merged memories. Drop marks that name missing ones."""
    by = _replacement(memory.superseded_by, plan)
    is_there = by in plan.memories and by != memory.file
    supersedes = tuple(file for file in memory.supersedes if file in plan.memories)
    return replace(memory, superseded_by=by if is_there else "", supersedes=supersedes)


def _replacement(file: str, plan: TidyPlan) -> str:
    for _ in plan.replaced:
        if file not in plan.replaced:
            break
        file = plan.replaced[file]
    return file


def _with_stale_sources(memory: Memory, repository: Path) -> Memory:
    files = list(changed_sources(memory, repository))
    more: dict[str, FieldValue] = {key: value for key, value in memory.more.items() if key != STALE}
    return replace(memory, more={**more, STALE: files} if files else more)


def dangling_links(memory: Memory, files: frozenset[str], repository: Path) -> list[str]:
    """Return the links that lead neither to a memory nor into the repository."""
    links = (link[2] for link in _LINK.finditer(memory.body))
    return [
        link
        for link in links
        if not (_target(memory.file, link, files) or find_in_repository(repository, link))
        and "://" not in link
    ]


def _target(file: str, link: str, known: Collection[str]) -> str:
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(file), link))
    return next((name for name in (beside, link) if name in known), "")
