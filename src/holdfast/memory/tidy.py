"""What can be put in order among memories without a model: a plan, pure, nothing touched.

Memories come in, new versions of some and removals of others go out. Only what is safe: a
memory goes when another says all it says; what a newer one contradicts stays, marked with
what contradicts it; links that lead nowhere become words; files that changed are named.
"""

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from holdfast.memory.contradiction import contradicts, read_statement
from holdfast.memory.memory import Memory
from holdfast.memory.similarity import candidate_pairs, covers
from holdfast.settings import DreamSettings
from holdfast.tools.front_matter import FieldValue

_LINK = re.compile(r"\[([^\]\n]*)\]\(([^()\s#]+\.md)(#[^()\s]*)?\)")
STALE = "stale"
"""Names, in a memory's head, the files it speaks of that changed since."""


@dataclass(slots=True, kw_only=True)
class TidyPlan:
    """What is to be done, and the memories as they would be."""

    memories: dict[str, Memory]
    gone: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Removed files, each with the file that stands for it and the reason."""
    superseded: dict[str, str] = field(default_factory=dict)
    """Files that a newer one contradicts, each with that one."""
    unlinked: list[str] = field(default_factory=list)
    unmarked: list[str] = field(default_factory=list)
    """Files whose marks named memories that are not there."""
    stale: list[str] = field(default_factory=list)


def plan_tidying(
    memories: Sequence[Memory],
    settings: DreamSettings,
    *,
    changed: Callable[[Memory], Sequence[str]],
    exists: Callable[[str], bool],
    leave: frozenset[str] = frozenset(),
) -> TidyPlan:
    """Decide what to merge, mark, unlink and doubt.

    `changed` names a memory's sources that changed, `exists` says whether a linked file is in
    the repository; what stands in `leave` somebody wants as it is.
    """
    plan = TidyPlan(memories={memory.file: memory for memory in memories})
    _merge_alike(plan, settings, leave)
    _mark_superseded(plan, leave)
    for file, memory in plan.memories.items():
        linked = _marked(_linked(memory, plan, exists), plan)
        plan.memories[file] = _doubted(linked, plan, changed)
    return plan


def _merge_alike(plan: TidyPlan, settings: DreamSettings, leave: frozenset[str]) -> None:
    """Let one memory stand for those that say no more than it does, up to the allowed number."""
    most = max(settings.removed_floor, int(len(plan.memories) * settings.removed_share))
    open_ones = [m for m in plan.memories.values() if not m.superseded_by and m.file not in leave]
    for first, second in candidate_pairs(open_ones):
        if len(plan.gone) >= most:
            return
        kept, gone = _older_first(plan.memories.get(first.file), plan.memories.get(second.file))
        if kept is None or gone is None:
            continue
        if not covers(kept, gone, settings.alike_share):
            kept, gone = gone, kept
            if not covers(kept, gone, settings.alike_share):
                continue
        plan.gone[gone.file] = (kept.file, f"{kept.file} says all of it")
        plan.memories[kept.file] = merged(kept, gone)
        del plan.memories[gone.file]


def _older_first(a: Memory | None, b: Memory | None) -> tuple[Memory | None, Memory | None]:
    if a is None or b is None:
        return None, None
    return (a, b) if (a.created, a.file) <= (b.created, b.file) else (b, a)


def merged(kept: Memory, gone: Memory) -> Memory:
    """Give one memory what another rests on."""
    return replace(
        kept,
        created=min(kept.created, gone.created),
        modified=max(kept.modified, gone.modified),
        evidence=tuple(dict.fromkeys((*kept.evidence, *gone.evidence))),
        sources={**gone.sources, **kept.sources},
        supersedes=tuple(dict.fromkeys((*kept.supersedes, *gone.supersedes))),
    )


def _mark_superseded(plan: TidyPlan, leave: frozenset[str]) -> None:
    """Mark what a newer memory names or contradicts; where several do, with the newest."""
    newest = sorted(plan.memories.values(), key=lambda memory: (memory.modified, memory.file))
    said = {memory.file: read_statement(memory.description) for memory in newest}
    about: dict[tuple[str, ...], list[Memory]] = defaultdict(list)
    for new in newest:
        ours = said[new.file]
        named = [plan.memories[file] for file in new.supersedes if file in plan.memories]
        alike = newest if ours.is_end else about[ours.subject]
        for old in (*named, *alike):
            if not _is_older(old, new) or old.file in leave:
                continue
            if old in named or contradicts(ours, said[old.file]):
                plan.superseded[old.file] = new.file
        if ours.subject:
            about[ours.subject].append(new)
    for file, by in list(plan.superseded.items()):
        old, new = plan.memories[file], plan.memories[by]
        if old.superseded_by == by:
            del plan.superseded[file]
        plan.memories[file] = replace(old, superseded_by=by)
        if file not in new.supersedes:
            plan.memories[by] = replace(new, supersedes=(*new.supersedes, file))


def _is_older(old: Memory, new: Memory) -> bool:
    return old.type == new.type and old.modified < new.modified


def _linked(memory: Memory, plan: TidyPlan, exists: Callable[[str], bool]) -> Memory:
    """Point links at what stands for a merged memory; make words of those that lead nowhere."""

    def follow(link: re.Match[str]) -> str:
        text, told, part = link[1], link[2], link[3] or ""
        known = {*plan.memories, *plan.gone}
        target = _target(memory.file, told, known)
        if target in plan.gone:
            kept = _standing_for(target, plan)
            # Its parts were another page's: a link to one of them leads to the page as a whole.
            return f"[{text}]({_from(memory.file, kept)})"
        if target or exists(told) or "://" in told:
            return link[0]
        return f"{text} ({told}{part} is gone)"

    body = _LINK.sub(follow, memory.body)
    if body != memory.body:
        plan.unlinked.append(memory.file)
    return replace(memory, body=body)


def _marked(memory: Memory, plan: TidyPlan) -> Memory:
    """Point marks at what stands for a merged memory; drop those that lead nowhere, and count it."""
    by = _standing_for(memory.superseded_by, plan)
    is_there = by in plan.memories and by != memory.file
    supersedes = tuple(file for file in memory.supersedes if file in plan.memories)
    is_dropped = bool(by) and not is_there
    if is_dropped or not set(memory.supersedes) <= {*plan.memories, *plan.gone}:
        plan.unmarked.append(memory.file)
    return replace(memory, superseded_by=by if is_there else "", supersedes=supersedes)


def _standing_for(file: str, plan: TidyPlan) -> str:
    """Follow merges to the memory that is left."""
    for _ in plan.gone:
        if file not in plan.gone:
            break
        file = plan.gone[file][0]
    return file


def _doubted(memory: Memory, plan: TidyPlan, changed: Callable[[Memory], Sequence[str]]) -> Memory:
    """Name the sources that changed, and no longer those that are as they were."""
    files = list(changed(memory)) if memory.sources else []
    if files != memory.more.get(STALE, []):
        plan.stale.append(memory.file)
    more: dict[str, FieldValue] = {key: value for key, value in memory.more.items() if key != STALE}
    return replace(memory, more={**more, STALE: files} if files else more)


def dangling_links(
    memory: Memory, files: frozenset[str], exists: Callable[[str], bool]
) -> list[str]:
    """List links of a memory that lead neither to another nor into the repository."""
    found = (link[2] for link in _LINK.finditer(memory.body))
    return [
        told
        for told in found
        if not _target(memory.file, told, files) and not exists(told) and "://" not in told
    ]


def _target(file: str, told: str, known: Collection[str]) -> str:
    """Find the memory a link means, from the directory of its file or from the store's; '' is none."""
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(file), told))
    return next((name for name in (beside, told) if name in known), "")


def _from(file: str, target: str) -> str:
    return posixpath.relpath(target, posixpath.dirname(file) or ".")
