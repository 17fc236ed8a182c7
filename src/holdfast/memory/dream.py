"""Dreaming: memories are put in order on a branch, which is merged whole or not.

Without a model, duplicates are merged, contradicted memories marked, dead links unlinked, changed
sources noted and the index rebuilt by use. With one, a fork first reorganises the memories on the
branch; if it fails, is stopped or runs out of turns, nothing is left. Either becomes one commit that
`undo` reverts, after the same checks: index within limits, no dead links, a reason for each removal,
a bounded number of removals, and no evidence lost.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from string import Template

from holdfast.errors import HoldfastError
from holdfast.memory.branch import Branch
from holdfast.memory.commits import Commit
from holdfast.memory.index import IndexLine, loaded, make_index
from holdfast.memory.memory import parse, stamp
from holdfast.memory.paths import INDEX
from holdfast.memory.store import MemoryStore
from holdfast.memory.tidy import TidyPlan, dangling_links, most_removed, plan_tidying
from holdfast.memory.tool import MEMORY, memory_tool
from holdfast.messages import Usage, text_of
from holdfast.models.protocol import Finished
from holdfast.settings import DreamSettings
from holdfast.turn.fork import AskFork, ForkRequest, Permit, Prefix
from holdfast.turn.round import RoundEvent, ToolBegan

SOURCE = "dream"
STEP_CHARS = 160
"""One line per step; the diff has the details."""


class NotDreamt(HoldfastError):
    """A model's dream was not completed; nothing was changed."""


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


class Steps:
    def __init__(self, *, most: int) -> None:
        self.phase = "starting"
        self.done: deque[str] = deque(maxlen=most)

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
    return finish(Branch(store), settings, repository=repository, steps=steps, is_trial=is_trial)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dreamer:
    ask: AskFork
    permit: Permit
    logs: Path
    """The directory of the project's session logs."""
    since: float = 0.0
    """When the last dream was; 0 if never."""
    touched: int = 0
    """How many sessions changed since."""
    prefix: Prefix | None = None
    """The prefix to fork from; None is the conversation as it is now."""


async def dream_with(
    dreamer: Dreamer,
    store: MemoryStore,
    settings: DreamSettings,
    *,
    repository: Path,
    steps: Steps | None = None,
    is_trial: bool = False,
) -> DreamReport:
    """Let a model put memories in order, then do the same as `dream`."""
    steps = steps or Steps(most=settings.steps_shown)
    branch = Branch(store)
    reply = await dreamer.ask(
        ForkRequest(
            say=dream_prompt(branch, settings, dreamer),
            source=SOURCE,
            turns=settings.turns,
            permit=dreamer.permit,
            instead={MEMORY: memory_tool(branch, store.clock)},
            writes_cache=True,
            on_event=observer(steps),
            prefix=dreamer.prefix,
        )
    )
    if reply.reason != "completed":
        raise NotDreamt(f"nothing was changed: the dream ended as {reply.reason}")
    return finish(
        *(branch, settings),
        repository=repository,
        steps=steps,
        usage=reply.usage,
        is_trial=is_trial,
    )


def dream_prompt(branch: Branch, settings: DreamSettings, dreamer: Dreamer) -> str:
    text = (files("holdfast.memory") / "prompts" / "dream.md").read_text(encoding="utf-8")
    return Template(text).substitute(
        today=stamp(branch.store.clock())[:10],
        since=stamp(dreamer.since)[:10] if dreamer.since else "the beginning",
        touched=dreamer.touched,
        logs=dreamer.logs,
        most=most_removed(len(branch.base), settings),
        index=branch.read(INDEX).strip() or "It is empty.",
    )


def observer(steps: Steps) -> Callable[[RoundEvent], None]:
    """Make a callback that adds a step for each answer and each tool call of a fork."""

    def observe(event: RoundEvent) -> None:
        match event:
            case ToolBegan(use=use):
                is_writing = use.name == MEMORY and use.input.get("command") != "view"
                phase = "updating" if is_writing or steps.phase == "updating" else "gathering"
                given = " ".join(map(str, use.input.values()))
                steps.add(phase, f"{use.name} {' '.join(given.split())}"[:STEP_CHARS])
            case Finished(reply=reply) if said := " ".join(text_of(reply.content).split()):
                steps.add(steps.phase, said[:STEP_CHARS])
            case _:
                pass

    return observe


def finish(
    branch: Branch,
    settings: DreamSettings,
    *,
    repository: Path,
    steps: Steps,
    usage: Usage | None = None,
    is_trial: bool = False,
) -> DreamReport:
    """Tidy a branch, on which a model may have worked, and merge it if it passes the checks."""
    by_model = branch.changes()
    memories = branch.memories()
    steps.add("orient", f"{len(memories)} memories")
    plan = plan_tidying(memories, settings, repository, leave=branch.store.history.vetoed("dream"))
    steps.add("consolidate", f"{len(plan.gone)} to merge, {len(plan.superseded)} to mark")
    _apply(plan, branch, steps)
    merged = {change.file: "" for change in by_model if change.text is None}
    report = DreamReport(
        commit=None,
        merged=merged | {file: kept for file, (kept, _) in plan.gone.items()},
        superseded=dict(plan.superseded),
        unlinked=tuple(plan.unlinked),
        unmarked=tuple(plan.unmarked),
        stale=tuple(plan.stale),
        diff=branch.diff(),
        rewritten=sum(change.text is not None for change in by_model),
        usage=usage,
    )
    check = partial(wrong_with, settings=settings, repository=repository)
    if is_trial:
        return replace(report, wrong=tuple(check(branch)))
    commit = branch.merge(by="dream", why=f"a dream: {report.line}", check=check)
    if commit:
        uses = branch.store.uses()  # those of a merged memory count for its replacement
        replaced = {file: kept for file, kept in report.merged.items() if kept}
        branch.store.count_uses({kept: uses.get(file, 0) for file, kept in replaced.items()})
    steps.add("index", "the index was rebuilt" if commit else "nothing changed")
    return replace(report, commit=commit)


def _apply(plan: TidyPlan, branch: Branch, steps: Steps) -> None:
    for file, (kept, reason) in plan.gone.items():
        branch.remove(file, reason)
        steps.add("consolidate", f"{file} is merged into {kept}")
    for file, memory in plan.memories.items():
        if memory != branch.memory(file):
            branch.put(memory)
            steps.add("consolidate", f"{file} is brought up to date")


def wrong_with(branch: Branch, settings: DreamSettings, repository: Path) -> list[str]:
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
            for link in dangling_links(memory, files, repository)
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
