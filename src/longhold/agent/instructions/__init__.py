"""Instruction files that the user and the project have written for an agent.

`load` reads those for a session's start; `Nearby` adds those near a file once it is touched;
`said` renders either as a hidden message. They never enter the system prompt, which all sessions
share.
"""

from longhold.agent.instructions.gathering import Gathered, InstructionPart, Waiting, gather
from longhold.agent.instructions.nearby import (
    InstructionChanges,
    LoadReason,
    Nearby,
    instruction_changes,
    loaded_fields,
    said,
    sources,
)
from longhold.agent.instructions.places import Ground, at_start, everywhere, ground

__all__ = [
    "Gathered",
    "Ground",
    "InstructionChanges",
    "InstructionPart",
    "LoadReason",
    "Nearby",
    "Waiting",
    "gather",
    "ground",
    "imports_waiting",
    "instruction_changes",
    "load",
    "loaded_fields",
    "said",
    "sources",
]


def load(ground: Ground, *, trusted: frozenset[str] = frozenset()) -> Gathered:
    if not ground.settings.on:
        return Gathered()
    return gather(at_start(ground), ground, trusted=trusted)


def imports_waiting(
    ground: Ground, *, trusted: frozenset[str] = frozenset()
) -> tuple[Waiting, ...]:
    found = gather(everywhere(ground), ground, trusted=trusted, ignore_paths=True)
    return found.waiting
