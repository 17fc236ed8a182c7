"""Which memories can be put in order without a model: a plan that changes nothing itself.

Only what is safe is planned. A memory is removed when another says all of it. A contradicted one
stays and is marked with the memory that contradicts it. Dead links become plain text, and sources
that changed are named in the front matter.
"""

import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from holdfast.memory.compare import candidate_pairs, contradicts, covers, read_statement
from holdfast.memory.memory import Memory
from holdfast.memory.provenance import changed_sources, in_repository
from holdfast.settings import DreamSettings
from holdfast.tools.front_matter import FieldValue

_LINK = re.compile(r"\[([^\[\]\n]*)\]\(([^()\s#]+\.md)(#[^()\s]*)?\)")
STALE = "stale"
"""The front matter key that names the sources that changed since."""


@dataclass(slots=True, kw_only=True)
class TidyPlan:
    """The memories as they would be, and what was done to get there."""

    memories: dict[str, Memory]
    gone: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Files to remove, each with the file that replaces it and the reason."""
    replaced: dict[str, str] = field(default_factory=dict)
    """Removed files, each with the file that replaces it: those to remove, and those gone before."""
    superseded: dict[str, str] = field(default_factory=dict)
    """Files that a newer one contradicts, each with that one."""
    unlinked: list[str] = field(default_factory=list)
    unmarked: list[str] = field(default_factory=list)
    """Files whose marks named missing memories."""
    stale: list[str] = field(default_factory=list)


def most_removed(memories: int, settings: DreamSettings) -> int:
    """Return how many of a number of memories one dream may remove."""
    return max(settings.removed_floor, int(memories * settings.removed_share))


def plan_tidying(
    memories: Sequence[Memory],
    settings: DreamSettings,
    repository: Path,
    *,
    leave: frozenset[str],
    replaced: Mapping[str, str] | None = None,
    most: int | None = None,
) -> TidyPlan:
    """Decide what to merge, mark, unlink and doubt; `leave` is neither merged nor marked.

    `replaced` names files that are gone already, each with the one that stands for it; `most` is
    how many more may go.
    """
    plan = TidyPlan(memories={memory.file: memory for memory in memories})
    plan.replaced.update({file: kept for file, kept in (replaced or {}).items() if kept})
    room = most_removed(len(plan.memories), settings) if most is None else most
    _merge_duplicates(plan, settings, leave, room)
    _mark_superseded(plan, leave)
    for file, memory in plan.memories.items():
        relinked = _with_live_marks(_with_live_links(memory, plan, repository), plan)
        plan.memories[file] = _with_stale_sources(relinked, plan, repository)
    return plan


def _merge_duplicates(
    plan: TidyPlan, settings: DreamSettings, leave: frozenset[str], most: int
) -> None:
    candidates = [m for m in plan.memories.values() if not m.superseded_by and m.file not in leave]
    for first, second in candidate_pairs(candidates):
        if len(plan.gone) >= most:
            return
        a, b = plan.memories.get(first.file), plan.memories.get(second.file)
        if a is None or b is None:  # merged before
            continue
        older, newer = sorted((a, b), key=lambda memory: (memory.created, memory.file))
        for kept, gone in ((older, newer), (newer, older)):
            if covers(kept, gone, settings.alike_share):
                plan.gone[gone.file] = (kept.file, f"{kept.file} says all of it")
                plan.replaced[gone.file] = kept.file
                plan.memories[kept.file] = _merged(kept, gone)
                del plan.memories[gone.file]
                break


def _merged(kept: Memory, gone: Memory) -> Memory:
    """Let the memory that stays inherit the times and evidence of the one it replaces."""
    return replace(
        kept,
        created=min(kept.created, gone.created),
        modified=max(kept.modified, gone.modified),
        evidence=tuple(dict.fromkeys((*kept.evidence, *gone.evidence))),
        sources={**gone.sources, **kept.sources},
        supersedes=tuple(dict.fromkeys((*kept.supersedes, *gone.supersedes))),
    )


def _mark_superseded(plan: TidyPlan, leave: frozenset[str]) -> None:
    """Mark what a newer memory names or contradicts; the newest such memory wins."""
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
    """Redirect links to merged memories; turn dead links into text."""

    def follow(link: re.Match[str]) -> str:
        text, written, anchor = link[1], link[2], link[3] or ""
        target = _target(memory.file, written, {*plan.memories, *plan.replaced})
        if target in plan.replaced:
            kept = _replacement(target, plan)
            # The anchor belonged to the other page, so the link leads to the page as a whole.
            return f"[{text}]({posixpath.relpath(kept, posixpath.dirname(memory.file) or '.')})"
        if target or in_repository(repository, written) or "://" in written:
            return link[0]
        return f"{text} ({written}{anchor} is gone)"

    body = _LINK.sub(follow, memory.body)
    if body != memory.body:
        plan.unlinked.append(memory.file)
    return replace(memory, body=body)


def _with_live_marks(memory: Memory, plan: TidyPlan) -> Memory:
    """Redirect marks to what replaced a merged memory; drop those that name a missing one."""
    by = _replacement(memory.superseded_by, plan)
    is_there = by in plan.memories and by != memory.file
    supersedes = tuple(file for file in memory.supersedes if file in plan.memories)
    is_dropped = bool(by) and not is_there
    if is_dropped or not set(memory.supersedes) <= {*plan.memories, *plan.replaced}:
        plan.unmarked.append(memory.file)
    return replace(memory, superseded_by=by if is_there else "", supersedes=supersedes)


def _replacement(file: str, plan: TidyPlan) -> str:
    """Follow merges to the memory that is left."""
    for _ in plan.replaced:
        if file not in plan.replaced:
            break
        file = plan.replaced[file]
    return file


def _with_stale_sources(memory: Memory, plan: TidyPlan, repository: Path) -> Memory:
    files = list(changed_sources(memory, repository))
    if files != memory.more.get(STALE, []):
        plan.stale.append(memory.file)
    more: dict[str, FieldValue] = {key: value for key, value in memory.more.items() if key != STALE}
    return replace(memory, more={**more, STALE: files} if files else more)


def dangling_links(memory: Memory, files: frozenset[str], repository: Path) -> list[str]:
    """Return the links of a memory that lead neither to a memory nor into the repository."""
    links = (link[2] for link in _LINK.finditer(memory.body))
    return [
        link
        for link in links
        if not (_target(memory.file, link, files) or in_repository(repository, link))
        and "://" not in link
    ]


def _target(file: str, link: str, known: Collection[str]) -> str:
    """Resolve a link relative to its file or to the store's root; '' if it names no memory."""
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(file), link))
    return next((name for name in (beside, link) if name in known), "")
