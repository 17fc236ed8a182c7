"""Builds what a program's session is made of: engine, layers, memory, and the side it shows the program."""

from collections.abc import Callable
from dataclasses import dataclass

from holdfast.log import OpenLog
from holdfast.log.entries import Framed
from holdfast.request.cache.advice import window_at_cost
from holdfast.request.lifetime import latched
from holdfast.request.server_side import declared
from holdfast.session.clients import forks_over
from holdfast.session.long_memory import memory_over
from holdfast.session.program import Program
from holdfast.session.tool_definitions import ToolRegistry
from holdfast.settings import Settings
from holdfast.stages.compact.hooks import CompactionHooks
from holdfast.stages.spill.spill import Spill
from holdfast.stages.standard import Layers, build_layers
from holdfast.turn.background import background_of
from holdfast.turn.engine import Engine
from holdfast.turn.fork import AskFork
from holdfast.turn.telemetry import Telemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionParts:
    engine: Engine
    layers: Layers
    ask: AskFork | None
    program: Program


def build_parts(
    log: OpenLog,
    settings: Settings,
    *,
    client: object,
    memory: bool | None,
    hooks: Callable[[Engine], CompactionHooks] | None,
    notify: Callable[[str], None],
    clock: Callable[[], float],
) -> SessionParts:
    """Build over a log that is open; `memory` None leaves it as the session was set up."""
    spill = Spill()
    engine = Engine(log, settings, on_result=spill.arrive, clock=clock)
    before = engine.view.configured
    registry = ToolRegistry(before.tools if before else {})
    ask = forks_over(engine, client).ask if client is not None else None
    background = background_of(engine)
    wants_memory = memory if memory is not None else bool(before and before.memory)
    has_memory = wants_memory and settings.memory.on
    jobs = memory_over(engine, ask, background, notify, clock) if has_memory else None
    layers = build_layers(
        spill,
        ask=ask,
        hooks=hooks(engine) if hooks is not None else None,
        background=background,
        describe=registry.describe,
        notify=notify,
        recall=jobs.stage if jobs else None,
        learn=jobs.after_turn if jobs else None,
        telemetry=Telemetry(engine),
    )
    program = Program(engine, registry, client, jobs)
    return SessionParts(engine=engine, layers=layers, ask=ask, program=program)


def first_frame(frame: Framed, model: str, source: str, settings: Settings) -> Framed:
    """Complete a frame with what stays as it is for the whole session."""
    kept = latched(frame, model, settings.cache, source)
    window = window_at_cost(model, settings.window, settings.cost, kept)
    return declared(kept, model, settings.clear, window)
