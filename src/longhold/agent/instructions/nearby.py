"""Adds the instructions near a file once a tool touches the file.

Instructions that are in the view according to the log are not added again, so a resumed session
behaves like an uninterrupted one.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from typing import Literal, TypeAlias
from xml.sax.saxutils import quoteattr

from msgspec import structs

from longhold.agent.instructions.gathering import (
    Gathered,
    Ground,
    InstructionPart,
    SourceKind,
    gather,
    list_near,
)
from longhold.core.log.cursor import LogCursor
from longhold.core.log.entries import AnyEntry, Compacted, Framed, Said, Source
from longhold.core.messages import JsonObject
from longhold.core.messages.measure import NOTHING, measure_text
from longhold.core.messages.text import escape_frames

LoadReason: TypeAlias = Literal["startup", "nested", "compact", "changed"]

_LOAD_REASONS: dict[LoadReason, str] = {
    "startup": "session_start",
    "nested": "nested_traversal",
    "compact": "compact",
    "changed": "session_start",
}
"""The names that hooks for other programs expect."""

_FROM: dict[SourceKind, str] = {
    "user": "the user, for every project",
    "project": "the project",
    "local": "the user, for this project",
}


def render_instructions(
    parts: tuple[InstructionPart, ...],
    when: Literal["start", "nested", "changed"],
    gone: Sequence[str] = (),
) -> str:
    """Return a message with these instructions and the names of deleted files, or ""."""
    if not parts and not gone:
        return ""
    intro = (files("longhold.agent.instructions") / "prompts" / f"{when}.md").read_text(
        encoding="utf-8"
    )
    missing = (f"{_escape_path(file)} is gone: its instructions no longer hold." for file in gone)
    inner = "\n\n".join((intro.strip(), *map(_wrap_in_tag, parts), *missing))
    return f"<reminder>\n{inner}\n</reminder>"


def sources(parts: tuple[InstructionPart, ...]) -> tuple[Source, ...]:
    return tuple(map(_source_of, parts))


def _source_of(part: InstructionPart) -> Source:
    text = _wrap_in_tag(part)
    return Source(
        file=str(part.path),
        kind=part.kind,
        measure=measure_text(text),
        digest=blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest(),
    )


def build_hook_fields(
    part: InstructionPart, reason: LoadReason, touched: Path | None = None
) -> JsonObject:
    how = _LOAD_REASONS[reason]
    if reason != "compact" and part.imported_by:
        how = "include"
    elif part.is_for_paths:
        how = "path_glob_match"
    return {
        "reason": reason,
        "load_reason": how,
        "file_path": str(part.path),
        "memory_type": part.kind.capitalize(),
        "trigger_file_path": str(touched or ""),
        "parent_file_path": str(part.imported_by or ""),
    }


def _wrap_in_tag(part: InstructionPart) -> str:
    """Wrap a file in its tag. Tags in its text are escaped, so it cannot imitate another file."""
    text = escape_frames(part.text)
    name = quoteattr(_escape_path(str(part.path)))
    return f"<instructions file={name} from={quoteattr(_FROM[part.kind])}>\n{text}\n</instructions>"


def _escape_path(path: str) -> str:
    return path.encode("utf-8", "backslashreplace").decode()


GONE = "gone"


def instruction_changes(
    told: Mapping[str, Source], now: Gathered
) -> tuple[tuple[InstructionPart, ...], list[Source]]:
    """Return the changed files, and the announced files that are gone. Old logs have no digests."""
    sources = {part.path: _source_of(part) for part in now.parts}
    known = {file: source.digest or source.measure for file, source in told.items()}
    parts = tuple(
        part
        for part in now.parts
        if known.get(str(part.path)) not in (sources[part.path].digest, sources[part.path].measure)
    )
    gone = [
        structs.replace(source, digest=GONE, measure=NOTHING)
        for file, source in told.items()
        if source.digest != GONE and Path(file) not in sources and not Path(file).exists()
    ]
    return parts, gone


@dataclass(slots=True, kw_only=True)
class Nearby:
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
        touched, self._touched = list(self._touched), {}
        if not self.ground.settings.on or not self.ground.settings.nested:
            return []
        found: list[tuple[Path, Gathered]] = []
        known = self._framed | self._added
        for path in map(Path, map(os.path.realpath, touched)):  # does not raise on loops
            if path in self._checked:
                continue
            self._checked.add(path)
            gathered = gather(
                list_near(self.ground, path),
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
