"""Dreaming without a model: memories are put in order on a branch, which is merged whole or not.

Duplicates are merged, contradicted memories marked, dead links unlinked, changed sources noted and
the index rebuilt by use, all as one commit that `undo` reverts. A model's dream (`dream_model`)
works on the same kind of branch, ends with the same tidying and passes the same checks: index
within limits, no dead links, a reason for each removal, a bounded number of removals, and no
evidence lost.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from holdfast.memory.branch import Branch
from holdfast.memory.commits import Commit
from holdfast.memory.index import IndexLine, loaded, make_index
from holdfast.memory.lock import DreamLock
from holdfast.memory.memory import parse
from holdfast.memory.provenance import changed_sources
from holdfast.memory.store import MemoryStore
from holdfast.memory.tidy import TidyPlan, dangling_links, most_removed, plan_tidying
from holdfast.messages import Usage
from holdfast.settings import DreamSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamReport:
    commit: Commit | None
    """None for a trial, or if there was nothing to do."""
    merged: dict[str, str]
    """Removed files, each with the file that replaces it; '' if a model removed it."""
    superseded: dict[str, str]
    """Marked files, each with the file that contradicts it."""
    unlinked: tuple[str, ...]
    stale: tuple[str, ...]
    diff: str
    unmarked: tuple[str, ...] = ()
    """Files whose marks named missing memories and were dropped."""
    rewritten: int = 0
    """Memories that a model wrote or changed."""
    wrong: tuple[str, ...] = ()
    """Why a trial's changes could not be merged."""
    usage: Usage | None = None
    """What the model used; None without one."""

    @property
    def line(self) -> str:
        counts = (
            (self.rewritten, "written by the model"),
            (len(self.merged), "merged" if self.usage is None else "merged or removed"),
            (len(self.superseded), "marked as superseded"),
            (len(self.unlinked), "links mended"),
            (len(self.unmarked), "marks that led nowhere dropped"),
            (len(self.stale), "sources checked anew"),
        )
        summary = ", ".join(f"{count} {what}" for count, what in counts if count)
        return summary or "nothing to put in order"


@dataclass(slots=True, kw_only=True)
class Steps:
    most: int
    phase: str = "starting"
    done: deque[str] = field(init=False)

    def __post_init__(self) -> None:
        self.done = deque(maxlen=self.most)

    def add(self, phase: str, step: str) -> None:
        self.phase = phase
        self.done.append(step)


def dream(
    store: MemoryStore,
    settings: DreamSettings,
    *,
    repository: Path,
    steps: Steps | None = None,
    is_trial: bool = False,
) -> DreamReport:
    """Put memories in order as one commit; a trial only reports what it would do."""
    steps = steps or Steps(most=settings.steps_shown)
    branch = Branch(store)
    report = tidy(branch, settings, repository=repository, steps=steps)
    return concluded(branch, report, settings, repository, steps, is_trial=is_trial)


def dream_alone(
    store: MemoryStore,
    settings: DreamSettings,
    lock: DreamLock,
    *,
    repository: Path,
    steps: Steps | None = None,
    is_by_hand: bool = False,
) -> DreamReport:
    """Dream while holding the lock; a failure restores the lock's time."""
    with lock.hold(is_by_hand=is_by_hand):
        return dream(store, settings, repository=repository, steps=steps)


def tidy(branch: Branch, settings: DreamSettings, *, repository: Path, steps: Steps) -> DreamReport:
    """Make all changes on a branch that are safe without a model."""
    memories = branch.memories()
    steps.add("orient", f"{len(memories)} memories")
    plan = plan_tidying(
        memories,
        settings,
        changed=lambda one: changed_sources(one, repository),
        exists=in_repository(repository),
        leave=branch.store.history.vetoed("dream"),
    )
    steps.add("consolidate", f"{len(plan.gone)} to merge, {len(plan.superseded)} to mark")
    _apply(plan, branch, steps)
    return DreamReport(
        commit=None,
        merged={file: kept for file, (kept, _) in plan.gone.items()},
        superseded=dict(plan.superseded),
        unlinked=tuple(plan.unlinked),
        unmarked=tuple(plan.unmarked),
        stale=tuple(plan.stale),
        diff=branch.diff(),
    )


def concluded(
    branch: Branch,
    report: DreamReport,
    settings: DreamSettings,
    repository: Path,
    steps: Steps,
    *,
    is_trial: bool,
) -> DreamReport:
    """Merge a branch as one commit if it passes the checks; a trial only reports on them."""
    check = partial(wrong_with, settings=settings, exists=in_repository(repository))
    if is_trial:
        return replace(report, wrong=tuple(check(branch)))
    commit = branch.merge(by="dream", why=f"a dream: {report.line}", check=check)
    if commit:
        _carry_uses(branch.store, report.merged)
    steps.add("index", "the index was rebuilt" if commit else "nothing changed")
    return replace(report, commit=commit)


def in_repository(repository: Path) -> Callable[[str], bool]:
    """Make a predicate: whether a link leads to a file of the repository."""

    def exists(file: str) -> bool:
        try:
            place = (repository / file).resolve()
            return place.is_relative_to(repository.resolve()) and place.is_file()
        except (OSError, ValueError):
            return False

    return exists


def _apply(plan: TidyPlan, branch: Branch, steps: Steps) -> None:
    for file, (kept, reason) in plan.gone.items():
        branch.remove(file, reason)
        steps.add("consolidate", f"{file} is merged into {kept}")
    for file, memory in plan.memories.items():
        if memory != branch.memory(file):
            branch.put(memory)
            steps.add("consolidate", f"{file} is brought up to date")


def _carry_uses(store: MemoryStore, merged: dict[str, str]) -> None:
    """Credit the uses of a merged memory to the one that replaces it."""
    uses = store.uses()
    store.count_uses({kept: uses.get(gone, 0) for gone, kept in merged.items() if kept})


def wrong_with(
    branch: Branch, settings: DreamSettings, *, exists: Callable[[str], bool]
) -> list[str]:
    """List the reasons why a branch may not be merged."""
    memories = branch.memories()
    files = frozenset(memory.file for memory in memories)
    limits = branch.store.limits
    wrong: list[str] = []
    index = make_index(map(IndexLine.of, memories), limits)
    if loaded(index, limits) != index:
        wrong.append("the index is over its limits")
    for memory in memories:
        wrong += [
            f"{memory.file} links to {link}, which does not exist"
            for link in dangling_links(memory, files, exists)
        ]
        if memory.superseded_by and memory.superseded_by not in files:
            wrong.append(
                f"{memory.file} is superseded by {memory.superseded_by}, which does not exist"
            )
    return wrong + _wrong_removals(branch, settings) + _lost_evidence(branch)


def _wrong_removals(branch: Branch, settings: DreamSettings) -> list[str]:
    removed = [change for change in branch.changes() if change.text is None]
    wrong = [f"{one.file} is removed without a reason" for one in removed if not one.reason]
    most = most_removed(len(branch.base), settings)
    if len(removed) > most:
        wrong.append(
            f"{len(removed)} of {len(branch.base)} memories are removed, more than {most}"
            " (dream.removed_share)"
        )
    return wrong


def _lost_evidence(branch: Branch) -> list[str]:
    kept = {one for memory in branch.memories() for one in memory.evidence}
    lost = [
        one
        for file, version in branch.base.items()
        for one in parse(file, branch.store.history.text(version)).evidence
        if one not in kept
    ]
    return [f"evidence is lost: {', '.join(dict.fromkeys(lost))}"] if lost else []
