"""The provenance of a memory: its message and the files it names, recorded on writing.

A source that changed or was removed makes the memory doubtful, not wrong. Paths that lead out of
the repository are ignored, because memories are untrusted data.
"""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.memory import FILE, SOURCES, Memory, parse

HASH_CHARS = 16
"""64 bits distinguish the versions of one file and keep memories short."""
SOURCE_BYTES = 4 << 20
"""A larger file is data, and its changes do not affect memories."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    session: str
    message: int
    repository: Path

    def on(self, change: MemoryChange) -> MemoryChange:
        if change.text is None:
            return change
        memory = parse(change.file, change.text)
        evidence = dict.fromkeys((*memory.evidence, f"{self.session}#{self.message}"))
        sources = sources_of(memory, self.repository)
        return replace(change, text=replace(memory, evidence=tuple(evidence), sources=sources).text)


def sources_of(memory: Memory, repository: Path) -> dict[str, str]:
    named = dict.fromkeys(FILE.findall(f"{memory.description}\n{memory.body}"))
    hashes = {path: source_hash(repository, path) for path in named}
    return dict([(path, found) for path, found in hashes.items() if found][:SOURCES])


def find_in_repository(repository: Path, path: str) -> Path | None:
    try:
        place = (repository / path).resolve()
        return place if place.is_relative_to(repository.resolve()) and place.is_file() else None
    except (OSError, ValueError):
        return None


def source_hash(repository: Path, path: str) -> str:
    """Hash a file of the repository, or return '' if it is missing or too large."""
    place = find_in_repository(repository, path)
    try:
        if place is None or place.stat().st_size > SOURCE_BYTES:
            return ""
        return hashlib.sha256(place.read_bytes()).hexdigest()[:HASH_CHARS]
    except OSError:
        return ""


def changed_sources(memory: Memory, repository: Path) -> tuple[str, ...]:
    return tuple(
        path for path, then in memory.sources.items() if source_hash(repository, path) != then
    )
