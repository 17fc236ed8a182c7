"""The team's memories: a directory in the repository, versioned with it, beside the private store.

Files and an index like the private ones, without a history of their own: the repository keeps
that. What the whole team reads is checked as strictly: names, links, secrets. What somebody
is like or prefers never goes there.
"""

from pathlib import Path

from holdfast.log.secrets import find_secrets
from holdfast.memory.files import markdown_below, read_unlinked
from holdfast.memory.index import listed, loaded, make_index
from holdfast.memory.memory import Memory, MemoryKind, parse
from holdfast.memory.paths import INDEX, checked_name, checked_place
from holdfast.memory.refusals import MemoryConflict, MemoryRefused, NoSuchMemory
from holdfast.settings import MemorySettings

PREFIX = "team/"
"""How a team's memory is told from a private one of the same name."""


def may_share(kind: MemoryKind, *, is_convention: bool = False) -> bool:
    """Tell whether a memory of this type may go to the team."""
    match kind:
        case "user":
            return False
        case "feedback":
            return is_convention
        case "project" | "reference":
            return True


class TeamMemories:
    """The memories a repository carries."""

    def __init__(self, root: Path, limits: MemorySettings | None = None) -> None:
        self.root = root
        self.limits = limits or MemorySettings()

    def memories(self) -> list[Memory]:
        """Give all of them, by file; what cannot be read, or is named as none may be, is left out."""
        if self._has_link() or not self.root.is_dir():
            return []
        found = []
        for file, status in markdown_below(self.root):
            try:
                text = self._read(checked_name(file))
            except (MemoryRefused, UnicodeDecodeError, OSError):
                continue
            found.append(parse(file, text, at=status.st_mtime))
        return sorted(found, key=lambda memory: memory.file)

    def index(self) -> str:
        """Give the index as a session takes it in: made from the memories, whatever a file says."""
        return loaded(self._made_index(), self.limits, name=f"{PREFIX}{INDEX}")

    def write(
        self, memory: Memory, *, is_convention: bool = False, expected: str | None = None
    ) -> Path:
        """Write a memory for the team, and the index; `expected` is the text it was made from."""
        if not may_share(memory.type, is_convention=is_convention):
            raise MemoryRefused(
                f"{memory.file} is of type {memory.type}, which stays private; keep it in your own store"
            )
        for found in find_secrets(memory.text):
            raise MemoryRefused(
                f"{memory.file} holds a secret ({found.rule}); the whole team would read it"
            )
        place = self._place(memory.file)
        if (place.read_text(encoding="utf-8") if place.exists() else None) != expected:
            raise MemoryConflict(f"{memory.file} was changed since it was read; read it again")
        self._put(place, memory.text)
        self._put(self.root / INDEX, self._made_index())
        return place

    def remove(self, file: str) -> None:
        """Remove a memory; the repository's history has it."""
        place = self._place(file)
        if not place.exists():
            raise NoSuchMemory(f"there is no team memory {file!r}")
        place.unlink()
        self._put(self.root / INDEX, self._made_index())

    def _has_link(self) -> bool:
        """Say whether the directory itself, in its repository, is reached by a link."""
        return self.root.is_symlink() or self.root.parent.is_symlink()

    def _read(self, file: str) -> str:
        """Read a file of the repository that is its own, and no longer than a memory may be."""
        above, within = self.root.parent.parent, f"{self.root.parent.name}/{self.root.name}"
        return read_unlinked(above, f"{within}/{file}", self.limits.file_bytes).decode()

    def _place(self, file: str) -> Path:
        if self._has_link():
            raise MemoryRefused(f"{self.root} lies behind a link; remove it and try again")
        return checked_place(self.root, file)

    def _made_index(self) -> str:
        return make_index((listed(memory) for memory in self.memories()), self.limits)

    def _put(self, place: Path, text: str) -> None:
        """Write a file of the repository: readable as its others are, whole or not at all."""
        place.parent.mkdir(parents=True, exist_ok=True)
        unfinished = place.with_name(f".{place.name}.unfinished")
        unfinished.unlink(missing_ok=True)
        with unfinished.open("x", encoding="utf-8") as file:  # made anew: no link is followed
            file.write(text)
        unfinished.replace(place)
