"""Adds the instructions near a file once a tool touches it.

Instructions already in the view according to the log are not added again until a compaction
removes them, so a resumed session behaves like an uninterrupted one. Recording the message is
left to the caller.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from msgspec import structs

from holdfast.log.cursor import LogCursor
from holdfast.log.entries import AnyEntry, Compacted, Framed, Said, Source
from holdfast.messages.measure import NOTHING
from holdfast.request.instructions.gathering import Gathered, InstructionPart, gather
from holdfast.request.instructions.places import Ground, near
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


@dataclass(slots=True, kw_only=True)
class Nearby:
    """Which of a project's instructions the model has seen, and which are due."""

    ground: Ground
    trusted: frozenset[str] = frozenset()
    _added: set[Path] = field(default_factory=set)
    _framed: set[Path] = field(default_factory=set)
    _touched: dict[Path, None] = field(default_factory=dict)
    _checked: set[Path] = field(default_factory=set)
    _reported: set[str] = field(default_factory=set)
    _cursor: LogCursor = field(default_factory=LogCursor)

    def touch(self, path: Path) -> None:
        self._touched.setdefault(path)

    def follow(self, history: Sequence[AnyEntry]) -> None:
        """Read from the log which instructions are in the view."""
        for entry in self._cursor.advance(history):
            match entry:
                case Framed(sources=sources):
                    self._framed = {Path(source.file) for source in sources}
                case Said(sources=sources) if sources:
                    self._added.update(Path(source.file) for source in sources)
                case Compacted():
                    self._added.clear()
                    self._checked.clear()

    def due(self) -> list[tuple[Path, Gathered]]:
        """Return the instructions for files touched since the last call, file by file."""
        touched, self._touched = list(self._touched), {}
        if not self.ground.settings.on or not self.ground.settings.nested:
            return []
        found: list[tuple[Path, Gathered]] = []
        known = self._framed | self._added
        for path in map(Path, map(os.path.realpath, touched)):  # a loop of links is no error
            if path in self._checked:
                continue
            self._checked.add(path)
            gathered = gather(
                near(self.ground, path),
                self.ground,
                trusted=self.trusted,
                known=frozenset(known),
                touched=path,
            )
            known.update(part.path for part in gathered.parts)
            notices = tuple(line for line in gathered.notices if line not in self._reported)
            self._reported.update(notices)
            if gathered.parts or notices:
                found.append((path, replace(gathered, notices=notices)))
        return found
