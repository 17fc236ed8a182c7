"""Dreaming with a model: a fork in four phases over a branch of the store, merged whole or not.

What it is asked goes out with the index, the place of the session logs and the limits; the fork
looks and changes memories on the branch only. Then the safe tidying is done over its work, all of
it is checked, and it becomes one commit; a fork that failed, was stopped or ran out of turns
leaves nothing behind. Whoever looks on sees its last steps.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from string import Template

from holdfast.errors import HoldfastError
from holdfast.memory.branch import Branch
from holdfast.memory.commits import MemoryChange
from holdfast.memory.dream import DreamReport, Steps, merged, tidy, tried
from holdfast.memory.memory import stamp
from holdfast.memory.paths import INDEX
from holdfast.memory.permit import MEMORY
from holdfast.memory.store import MemoryStore
from holdfast.memory.tool import memory_tool
from holdfast.messages import ToolUse, Usage, text_of
from holdfast.models.protocol import Finished
from holdfast.settings import DreamSettings
from holdfast.turn.fork import AskFork, ForkRequest, Permit, Prefix
from holdfast.turn.round import RoundEvent, ToolBegan

SOURCE = "dream"
STEP_CHARS = 160
"""A line of what it does; whoever wants more reads the diff."""


class NotDreamt(HoldfastError):
    """A model's dream did not come to its end; nothing was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dreamer:
    """What a model needs to dream."""

    ask: AskFork
    permit: Permit
    logs: Path
    """Where the project's sessions lie."""
    prefix: Prefix | None = None
    """Dream on this; None is the conversation as it stands."""


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
    """Let a model put memories in order as one commit; a trial only says what it would do."""
    steps = steps or Steps(most=settings.steps_shown)
    branch = Branch(store)
    reply = await dreamer.ask(
        ForkRequest(
            say=words(branch, settings, dreamer.logs, since=since, touched=touched),
            source=SOURCE,
            turns=settings.turns,
            permit=dreamer.permit,
            instead={MEMORY: memory_tool(branch, store.clock)},
            writes_cache=True,
            on_event=watching(steps),
            prefix=dreamer.prefix,
        )
    )
    if reply.reason != "completed":
        raise NotDreamt(f"nothing was changed: the dream ended as {reply.reason}")
    changes = branch.changes()
    report = _with_model(
        tidy(branch, settings, repository=repository, steps=steps), changes, reply.usage
    )
    if is_trial:
        return tried(branch, report, settings, repository)
    return merged(branch, report, settings, repository, steps)


def words(
    branch: Branch, settings: DreamSettings, logs: Path, *, since: float, touched: int
) -> str:
    """Write what the fork is asked."""
    text = (files("holdfast.memory") / "prompts" / "dream.md").read_text(encoding="utf-8")
    most = max(settings.removed_floor, int(len(branch.base) * settings.removed_share))
    return Template(text).substitute(
        today=stamp(branch.store.clock())[:10],
        since=stamp(since)[:10] if since else "the beginning",
        touched=touched,
        logs=logs,
        most=most,
        index=branch.read(INDEX).strip() or "It is empty.",
    )


def watching(steps: Steps) -> Callable[[RoundEvent], None]:
    """Note what a fork does, a line for each answer and each tool."""

    def see(event: RoundEvent) -> None:
        match event:
            case ToolBegan(use=use):
                is_writing = use.name == MEMORY and use.input.get("command") != "view"
                phase = "updating" if is_writing or steps.phase == "updating" else "gathering"
                steps.say(phase, _brief(use))
            case Finished(reply=reply) if said := " ".join(text_of(reply.content).split()):
                steps.say(steps.phase, said[:STEP_CHARS])
            case _:
                pass

    return see


def _brief(use: ToolUse) -> str:
    given = " ".join(str(value) for value in use.input.values())
    return f"{use.name} {' '.join(given.split())}"[:STEP_CHARS]


def _with_model(report: DreamReport, changes: Sequence[MemoryChange], usage: Usage) -> DreamReport:
    """Add what the model did to what the tidying did after it."""
    gone = {change.file: "" for change in changes if change.text is None}
    written = sum(change.text is not None for change in changes)
    return replace(report, merged=gone | report.merged, rewritten=written, usage=usage)
