"""The layers of a session and the order in which they run. A disabled layer does nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from longhold.core.policy.decide import SpaceDecision
from longhold.core.settings.installation import make_plugins
from longhold.core.stages.clear.clear import Clearing
from longhold.core.stages.compact.owner import CompactionHooks, CompactionStage
from longhold.core.stages.notes.notes import Notes
from longhold.core.stages.snip import Snip
from longhold.core.stages.space import Part, free_space
from longhold.core.stages.spill.spill import Spill
from longhold.core.tools.describe import Describe, description_of
from longhold.core.turn.background import Background
from longhold.core.turn.engine import AfterTurn, Engine, Stage
from longhold.core.turn.fork.asking import AskFork


@dataclass(frozen=True, slots=True)
class Collapsing(Part):
    steps = ("collapse", "lines")
    ask: AskFork | None = None

    def facts(self, engine: Engine) -> dict[str, Any]:
        return {"can_write": self.ask is not None}

    async def carry_out(self, engine: Engine, decision: SpaceDecision) -> None:
        # This is imported here because it is off by default.
        from longhold.core.stages.collapse import commit_counted, write_lines

        if decision.step == "collapse":
            commit_counted(engine)
        elif self.ask is not None:
            await write_lines(engine, self.ask)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    spill: Spill
    snip: Snip
    clear: Clearing
    collapse: Collapsing
    compact: CompactionStage
    notes: Notes
    plugins: tuple[Stage, ...] = ()
    recall: Stage | None = None
    learn: AfterTurn | None = None
    telemetry: AfterTurn | None = None

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages before each call. Each makes a later, more expensive stage less likely."""
        return (*((self.recall,) if self.recall else ()), *self.plugins, self.free_space)

    @property
    def parts(self) -> tuple[Part, ...]:
        return (self.spill, self.snip, self.clear, self.collapse, self.compact)

    async def free_space(self, engine: Engine) -> None:
        await free_space(engine, self.parts)

    @property
    def after_turn(self) -> tuple[AfterTurn, ...]:
        return (self.notes.after_turn, *filter(None, (self.learn, self.telemetry)))

    def close(self, engine: Engine) -> None:
        self.notes.close(engine)
        if self.telemetry is not None:
            self.telemetry(engine)


def build_layers(
    spill: Spill,
    *,
    ask: AskFork | None = None,
    hooks: CompactionHooks | None = None,
    background: Background | None = None,
    describe: Describe = description_of,
    on_cleared: Callable[[str], None] = lambda _: None,
    notify: Callable[[str], None] = lambda _: None,
    recall: Stage | None = None,
    learn: AfterTurn | None = None,
    telemetry: AfterTurn | None = None,
    is_main: bool = True,
    edits_notes: bool = False,
    use: str = "",
) -> Layers:
    """Build a session's layers. The engine must already pass results to `spill`.

    Without `ask`, no model is called. `on_cleared` receives each path whose text the model no
    longer sees. `recall` and `learn` are the memory jobs. Only the main agent (`is_main`) edits the
    provider's cache. `edits_notes` lets a fork write the notes with the session's own tools. `use`
    names plug-ins (`plugins.use`).
    """
    clear = Clearing(describe=describe, forget=on_cleared, tell=notify, is_main=is_main)
    notes = Notes(ask=ask, can_edit=edits_notes, background=background)
    compact = CompactionStage(
        ask=ask,
        hooks=hooks or CompactionHooks(tell=notify),
        notes=notes,
        summariser=next(iter(make_plugins("summarisers", use).values()), None),
    )
    return Layers(
        spill=spill,
        snip=Snip(),
        clear=clear,
        collapse=Collapsing(ask),
        compact=compact,
        notes=notes,
        plugins=tuple(make_plugins("stages", use).values()),
        recall=recall,
        learn=learn,
        telemetry=telemetry,
    )
