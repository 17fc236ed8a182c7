"""Dreaming with a model: a fork reorganises memories on a branch, which is merged whole or not.

The prompt carries the index, the location of the session logs and the limits. The fork may read,
and change memories on the branch only. Its work is then tidied and checked like a dream without a
model, and becomes one commit. A fork that fails, is stopped or runs out of turns leaves nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from string import Template

from holdfast.errors import HoldfastError
from holdfast.memory.branch import Branch
from holdfast.memory.commits import MemoryChange
from holdfast.memory.dream_offline import DreamReport, Steps, concluded, tidy
from holdfast.memory.memory import stamp
from holdfast.memory.paths import INDEX
from holdfast.memory.permissions import MEMORY
from holdfast.memory.store import MemoryStore
from holdfast.memory.tidy import most_removed
from holdfast.memory.tool import memory_tool
from holdfast.messages import ToolUse, Usage, text_of
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
class Dreamer:
    ask: AskFork
    permit: Permit
    logs: Path
    """The directory of the project's session logs."""
    prefix: Prefix | None = None
    """The prefix to fork from; None is the conversation as it is now."""


async def dream_with(
    dreamer: Dreamer,
    store: MemoryStore,
    settings: DreamSettings,
    *,
    repository: Path,
    since: float = 0.0,
    touched: int = 0,
    steps: Steps | None = None,
    is_trial: bool = False,
) -> DreamReport:
    """Let a model put memories in order as one commit; a trial only reports what it would do."""
    steps = steps or Steps(most=settings.steps_shown)
    branch = Branch(store)
    reply = await dreamer.ask(
        ForkRequest(
            say=dream_prompt(branch, settings, dreamer.logs, since=since, touched=touched),
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
    changes = branch.changes()
    report = _with_model(
        tidy(branch, settings, repository=repository, steps=steps), changes, reply.usage
    )
    return concluded(branch, report, settings, repository, steps, is_trial=is_trial)


def dream_prompt(
    branch: Branch, settings: DreamSettings, logs: Path, *, since: float, touched: int
) -> str:
    text = (files("holdfast.memory") / "prompts" / "dream.md").read_text(encoding="utf-8")
    return Template(text).substitute(
        today=stamp(branch.store.clock())[:10],
        since=stamp(since)[:10] if since else "the beginning",
        touched=touched,
        logs=logs,
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
                steps.add(phase, _brief(use))
            case Finished(reply=reply) if said := " ".join(text_of(reply.content).split()):
                steps.add(steps.phase, said[:STEP_CHARS])
            case _:
                pass

    return observe


def _brief(use: ToolUse) -> str:
    given = " ".join(str(value) for value in use.input.values())
    return f"{use.name} {' '.join(given.split())}"[:STEP_CHARS]


def _with_model(report: DreamReport, changes: Sequence[MemoryChange], usage: Usage) -> DreamReport:
    """Add the model's own changes to the report on the tidying that followed."""
    gone = {change.file: "" for change in changes if change.text is None}
    written = sum(change.text is not None for change in changes)
    return replace(report, merged=gone | report.merged, rewritten=written, usage=usage)
