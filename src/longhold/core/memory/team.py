"""The team's memories: a directory in the repository, versioned with it.

Names, links and secrets are checked as strictly as in the private store. Memories about a person
are never written there.
"""

from dataclasses import replace
from pathlib import Path

from longhold.core.memory.checkout import markdown_below
from longhold.core.memory.memory import (
    Memory,
    MemoryConflict,
    MemoryKind,
    MemoryRefused,
    NoSuchMemory,
    make_index,
    parse,
)
from longhold.core.memory.paths import INDEX, check_place
from longhold.core.memory.store import FILE_BYTES
from longhold.core.messages.secrets import find_secrets
from longhold.core.settings.private_files import Overtaken, replace_content
from longhold.core.settings.project import UnusableFile, read_text

PREFIX = "team/"
"""Distinguishes a team memory from a private memory with the same name."""


def may_share(kind: MemoryKind, *, is_convention: bool = False) -> bool:
    match kind:
        case "user":
            return False
        case "feedback":
            return is_convention
        case "project" | "reference":
            return True


class TeamMemories:
    def __init__(self, root: Path) -> None:
        self.root = root

    def memories(self) -> list[Memory]:
        """Return all memories, except unreadable ones and those with forbidden names."""
        if self._has_link() or not self.root.is_dir():
            return []
        found = []
        for file, status in markdown_below(self.root):
            try:
                place = check_place(self.root, file)
                text = read_text(place, FILE_BYTES, within=self.root.resolve())
            except (MemoryRefused, UnusableFile, OSError):
                continue
            # Sources are dropped. Checking them would read files that the repository chooses.
            found.append(replace(parse(file, text, at=status.st_mtime), sources={}))
        return sorted(found, key=lambda memory: memory.file)

    def index(self) -> str:
        return make_index(self.memories())

    def write(
        self, memory: Memory, *, is_convention: bool = False, expected: str | None = None
    ) -> Path:
        """Write a memory and the index. `expected` is the text that the memory replaces."""
        if not may_share(memory.type, is_convention=is_convention):
            raise MemoryRefused(
                f"{memory.file} has the private type {memory.type}; keep it in your own store"
            )
        for found in find_secrets(memory.text):
            raise MemoryRefused(
                f"{memory.file} contains a secret ({found.rule}); the whole team would read it"
            )
        place = self._place(memory.file)
        if (place.read_text(encoding="utf-8") if place.exists() else None) != expected:
            raise MemoryConflict(f"{memory.file} was changed since it was read; read it again")
        self._put(place, memory.text)
        self._put(self.root / INDEX, self.index())
        return place

    def remove(self, file: str) -> None:
        """Remove a memory. The repository's version history keeps it."""
        place = self._place(file)
        if not place.exists():
            raise NoSuchMemory(f"there is no team memory {file!r}")
        place.unlink()
        self._put(self.root / INDEX, self.index())

    def _has_link(self) -> bool:
        return self.root.is_symlink() or self.root.parent.is_symlink()

    def _place(self, file: str) -> Path:
        if self._has_link():
            raise MemoryRefused(f"{self.root} is behind a link; remove it and try again")
        return check_place(self.root, file)

    def _put(self, place: Path, text: str) -> None:
        """Replace a file atomically, keeping its mode."""
        if place.is_symlink():
            place.unlink()
        try:
            replace_content(place, text.encode(), place.stat() if place.exists() else None)
        except Overtaken:
            raise MemoryConflict(f"{place.name} was changed meanwhile; read it again") from None
