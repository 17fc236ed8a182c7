"""A project's memories as a session holds them: opened when they are first needed.

A session that neither finds nor writes a memory leaves no trace of having looked. What it reads
of them goes out as text, the team's beside the private ones, each cut to its limits.
"""

from pathlib import Path

from holdfast.memory.paths import TEAM
from holdfast.memory.store import MemoryStore
from holdfast.memory.team import TeamMemories
from holdfast.settings import MemorySettings


class LazyStore:
    """The private store, made when it is needed, and the team's memories if they are read."""

    def __init__(self, place: Path, team: Path, limits: MemorySettings) -> None:
        self._place = place
        self._limits = limits
        self._store: MemoryStore | None = None
        self.team = TeamMemories(team, limits) if limits.team != "off" else None

    @property
    def exists(self) -> bool:
        """Say whether there is a store to look into."""
        return self._store is not None or self._place.is_dir()

    @property
    def has_any(self) -> bool:
        """Say whether there could be something to recall."""
        return self.exists or (self.team is not None and self.team.root.is_dir())

    @property
    def place(self) -> Path:
        """Where the private memories lie."""
        return self._place

    def store(self) -> MemoryStore:
        """Give the store, with what was changed by hand taken in."""
        if self._store is None:
            self._store = MemoryStore(self._place, self._limits)
            self._store.adopt()
        return self._store

    def index(self) -> str:
        """Give the indexes as a session takes them in."""
        own = self.store().index().strip() if self.exists else ""
        shared = self.team.index().strip() if self.team is not None and self.has_any else ""
        if not shared:
            return own
        lead = f"The team's, in the repository under `{TEAM.as_posix()}/` (read them with Read):"
        return f"{own}\n\n{lead}\n\n{shared}".strip()

    def close(self) -> None:
        """Let the store go."""
        if self._store is not None:
            self._store.close()
            self._store = None
