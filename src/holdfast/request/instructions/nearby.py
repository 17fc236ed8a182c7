"""Brings in instructions that lie near a file, once that file is touched.

Tools tell which files they touched; what the log says was brought already is not brought
again, until a compaction has taken it out of the view. So a resumed session knows what an
unbroken one would know. Looking at the disk is done by `gather`; saying it is left to the
caller.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from holdfast.log.entries import AnyEntry, Compacted, Framed, Said
from holdfast.request.instructions.gathering import Gathered, gather
from holdfast.request.instructions.places import Ground, near


@dataclass(slots=True, kw_only=True)
class Nearby:
    """Which instructions of a project are before the model, and which are due."""

    ground: Ground
    trusted: frozenset[str] = frozenset()
    _brought: set[Path] = field(default_factory=set)
    _framed: set[Path] = field(default_factory=set)
    _waiting: dict[Path, None] = field(default_factory=dict)
    _looked_at: set[Path] = field(default_factory=set)
    _told: set[str] = field(default_factory=set)
    _read_to: int = 0

    def touch(self, path: Path) -> None:
        """Take note that a tool read or wrote a file."""
        self._waiting.setdefault(path)

    def follow(self, history: Sequence[AnyEntry]) -> None:
        """Learn from the log what stands before the model."""
        for entry in history[self._read_to :]:
            match entry:
                case Framed(sources=sources):
                    self._framed = {Path(source.file) for source in sources}
                case Said(sources=sources) if sources:
                    self._brought.update(Path(source.file) for source in sources)
                case Compacted():
                    self._brought.clear()
                    self._looked_at.clear()
        self._read_to = len(history)

    def due(self) -> list[tuple[Path, Gathered]]:
        """Give what the files touched since the last time bring in, file by file."""
        touched, self._waiting = list(self._waiting), {}
        if not self.ground.settings.on or not self.ground.settings.nested:
            return []
        found: list[tuple[Path, Gathered]] = []
        known = self._framed | self._brought
        for path in (
            Path(os.path.realpath(path)) for path in touched
        ):  # a loop of links is no error
            if path in self._looked_at:
                continue
            self._looked_at.add(path)
            gathered = gather(
                near(self.ground, path),
                self.ground,
                trusted=self.trusted,
                known=frozenset(known),
                touched=path,
            )
            known.update(part.path for part in gathered.parts)
            gathered = replace(gathered, notices=self._untold(gathered.notices))
            if gathered.parts or gathered.notices:
                found.append((path, gathered))
        return found

    def _untold(self, notices: tuple[str, ...]) -> tuple[str, ...]:
        """Leave out what the user was told for another file."""
        fresh = tuple(notice for notice in notices if notice not in self._told)
        self._told.update(fresh)
        return fresh
