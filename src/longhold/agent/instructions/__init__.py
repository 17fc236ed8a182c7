"""Instruction files written by the user and the project.

They are sent as hidden messages, because all sessions share the system prompt. `load` reads them at
session start and `Nearby` adds those near a touched file.
"""

from longhold.agent.instructions.gathering import Gathered, InstructionPart, Waiting, gather
from longhold.agent.instructions.instruction_files import (
    Ground,
    ground,
    list_at_start,
    list_everywhere,
)
from longhold.agent.instructions.nearby import (
    InstructionChanges,
    LoadReason,
    Nearby,
    build_hook_fields,
    instruction_changes,
    render_instructions,
    sources,
)

__all__ = [
    "Gathered",
    "Ground",
    "InstructionChanges",
    "InstructionPart",
    "LoadReason",
    "Nearby",
    "Waiting",
    "build_hook_fields",
    "gather",
    "ground",
    "instruction_changes",
    "list_waiting_imports",
    "load",
    "render_instructions",
    "sources",
]


def load(ground: Ground, *, trusted: frozenset[str] = frozenset()) -> Gathered:
    if not ground.settings.on:
        return Gathered()
    return gather(list_at_start(ground), ground, trusted=trusted)


def list_waiting_imports(
    ground: Ground, *, trusted: frozenset[str] = frozenset()
) -> tuple[Waiting, ...]:
    found = gather(list_everywhere(ground), ground, trusted=trusted, ignore_paths=True)
    return found.waiting
