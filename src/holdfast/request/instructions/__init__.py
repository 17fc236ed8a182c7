"""Instruction files: what the user and the project have written down for an agent.

`load` reads what a session begins with; `Nearby` brings in what lies near a file once it is
touched; `said` writes either as a hidden message. They never enter the system prompt, which
is the same for everybody.
"""

from holdfast.request.instructions.gathering import Gathered, InstructionPart, Waiting, gather
from holdfast.request.instructions.nearby import Nearby
from holdfast.request.instructions.places import Ground, at_start, everywhere, ground, near
from holdfast.request.instructions.saying import LoadReason, loaded_fields, said, sources

__all__ = [
    "Gathered",
    "Ground",
    "InstructionPart",
    "LoadReason",
    "Nearby",
    "Waiting",
    "gather",
    "ground",
    "imports_waiting",
    "load",
    "loaded_fields",
    "near",
    "said",
    "sources",
]


def load(ground: Ground, *, trusted: frozenset[str] = frozenset()) -> Gathered:
    """Read what a session begins with."""
    if not ground.settings.on:
        return Gathered()
    return gather(at_start(ground), ground, trusted=trusted)


def imports_waiting(
    ground: Ground, *, trusted: frozenset[str] = frozenset()
) -> tuple[Waiting, ...]:
    """List every import of the project that leads out of it and waits for the user's word."""
    found = gather(everywhere(ground), ground, trusted=trusted, whatever_paths=True)
    return found.waiting
