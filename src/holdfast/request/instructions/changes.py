"""Instruction files that changed since the model was shown them.

The frame keeps the text it was made with, so that the prompt does not move; a change is said in a
message. Only the files of a session's start, with their imports, are looked at again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from holdfast.log.entries import Source
from holdfast.messages.measure import NOTHING
from holdfast.request.instructions.gathering import Gathered, InstructionPart
from holdfast.request.instructions.rendering import said, source_of

GONE = "gone"
"""The digest of a file that the model was told no longer exists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionChanges:
    text: str
    sources: tuple[Source, ...]
    parts: tuple[InstructionPart, ...]
    """The files that are new or different."""


def instruction_changes(told: Mapping[str, Source], now: Gathered) -> InstructionChanges | None:
    """Compare what the model was told with what the files say; None if it is the same."""
    sources = {part.path: source_of(part) for part in now.parts}
    parts = tuple(
        part for part in now.parts if _differs(told.get(str(part.path)), sources[part.path])
    )
    gone = [
        structs.replace(source, digest=GONE, measure=NOTHING)
        for file, source in told.items()
        if source.digest != GONE and Path(file) not in sources and not Path(file).exists()
    ]
    if not parts and not gone:
        return None
    return InstructionChanges(
        text=said(parts, "changed", gone=[source.file for source in gone]),
        sources=(*(sources[part.path] for part in parts), *gone),
        parts=parts,
    )


def _differs(told: Source | None, now: Source) -> bool:
    """Compare digests; a log from before there were any has only sizes."""
    if told is None or not told.digest:
        return told is None or told.measure != now.measure
    return told.digest != now.digest
