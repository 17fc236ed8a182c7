"""Dreaming without a model: memories are put in order, on a branch, and merged at once or not.

The store comes in, an account of what was done goes out. Duplicates are merged, contradicted
memories marked, dead links and changed sources told, the index made anew by use. It is one
commit, checked as a whole, that `undo` takes back. A model's dream (`dreaming`) works on the
same branch under the same checks, and ends with the same tidying.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from holdfast.memory.branch import Branch
from holdfast.memory.checks import wrong_with
from holdfast.memory.commits import Commit
from holdfast.memory.lock import DreamLock, LockState
from holdfast.memory.sources import changed_sources
from holdfast.memory.store import MemoryStore
from holdfast.memory.tidy import TidyPlan, plan_tidying
from holdfast.messages import Usage
from holdfast.settings import DreamSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamReport:
    """What a dream did, or would do."""

    commit: Commit | None
    """None if it was only tried, or found nothing to do."""
    merged: dict[str, str]
    """Removed files, each with the one that stands for it."""
    superseded: dict[str, str]
    """Marked files, each with the one that contradicts it."""
    unlinked: tuple[str, ...]
    stale: tuple[str, ...]
    diff: str
    unmarked: tuple[str, ...] = ()
    """Files whose marks named memories that are not there, and were dropped."""
    rewritten: int = 0
    """Memories a model wrote or changed; what it removed is among the merged."""
    wrong: tuple[str, ...] = ()
    """What would forbid it, of a dream that is only tried."""
    usage: Usage | None = None
    """What a model took; None without one."""

    @property
    def line(self) -> str:
        """Say it in one line."""
        counts = (
            (self.rewritten, "written by the model"),
            (len(self.merged), "merged" if self.usage is None else "merged or removed"),
            (len(self.superseded), "marked as superseded"),
            (len(self.unlinked), "links mended"),
            (len(self.unmarked), "marks that led nowhere dropped"),
            (len(self.stale), "sources checked anew"),
        )
        told = ", ".join(f"{count} {what}" for count, what in counts if count)
        return told or "nothing to put in order"


@dataclass(slots=True, kw_only=True)
class Steps:
    """The last steps of a dream, for whoever looks on."""

    most: int
    phase: str = "starting"
    done: deque[str] = field(init=False)

    def __post_init__(self) -> None:
        self.done = deque(maxlen=self.most)

    def say(self, phase: str, step: str) -> None:
        """Note one step."""
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
    """Put memories in order as one commit; a trial only says what it would do."""
    steps = steps or Steps(most=settings.steps_shown)
    branch = Branch(store)
    report = tidy(branch, settings, repository=repository, steps=steps)
    if is_trial:
        return tried(branch, report, settings, repository)
    return merged(branch, report, settings, repository, steps)


def tidy(branch: Branch, settings: DreamSettings, *, repository: Path, steps: Steps) -> DreamReport:
    """Do on a branch what is safe without a model."""
    memories = branch.memories()
    steps.say("orient", f"{len(memories)} memories")
    plan = plan_tidying(
        memories,
        settings,
        changed=lambda one: changed_sources(one, repository),
        exists=in_repository(repository),
        leave=branch.store.history.vetoed("dream"),
    )
    steps.say("consolidate", f"{len(plan.gone)} to merge, {len(plan.superseded)} to mark")
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


def tried(
    branch: Branch, report: DreamReport, settings: DreamSettings, repository: Path
) -> DreamReport:
    """Say what would forbid a branch to become true."""
    return replace(
        report, wrong=tuple(wrong_with(branch, settings, exists=in_repository(repository)))
    )


def merged(
    branch: Branch, report: DreamReport, settings: DreamSettings, repository: Path, steps: Steps
) -> DreamReport:
    """Let a branch become true as one commit, if nothing is wrong with it."""
    exists = in_repository(repository)
    commit = branch.merge(
        by="dream",
        why=f"a dream: {report.line}",
        check=lambda one: wrong_with(one, settings, exists=exists),
    )
    if commit:
        _carry_uses(branch.store, report.merged)
    steps.say("index", "the index was made anew" if commit else "nothing changed")
    return replace(report, commit=commit)


def dream_alone(
    store: MemoryStore,
    settings: DreamSettings,
    lock: DreamLock,
    *,
    repository: Path,
    seen: LockState | None = None,
    steps: Steps | None = None,
    is_by_hand: bool = False,
) -> DreamReport:
    """Dream while holding the lock; a failure puts the lock's time back."""
    with lock.hold(seen, is_by_hand=is_by_hand):
        return dream(store, settings, repository=repository, steps=steps)


def in_repository(repository: Path) -> Callable[[str], bool]:
    """Make the question whether a link leads to a file of the repository."""

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
        steps.say("consolidate", f"{file} is merged into {kept}")
    for file, memory in plan.memories.items():
        if memory != branch.memory(file):
            branch.put(memory)
            steps.say("consolidate", f"{file} is brought up to date")


def _carry_uses(store: MemoryStore, merged: dict[str, str]) -> None:
    """Count what was used under a merged memory's name for the one that stands for it."""
    uses = store.uses()
    store.count_uses({kept: uses.get(gone, 0) for gone, kept in merged.items() if kept})
