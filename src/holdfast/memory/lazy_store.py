"""A session's memories: the private store, opened when first needed, and the team's.

A session that neither reads nor writes a memory creates no files.
"""

from pathlib import Path

from holdfast.memory.paths import TEAM
from holdfast.memory.store import MemoryStore
from holdfast.memory.team import TeamMemories
from holdfast.settings import MemorySettings


class LazyStore:
    """The private store, created on first use, and the team's memories if `memory.team` is on."""

    def __init__(self, place: Path, team: Path, limits: MemorySettings) -> None:
        self.place = place
        self._limits = limits
        self._store: MemoryStore | None = None
        self.team = TeamMemories(team, limits) if limits.team != "off" else None

    @property
    def exists(self) -> bool:
        return self._store is not None or self.place.is_dir()

    @property
    def has_any(self) -> bool:
        """Whether there may be something to recall."""
        return self.exists or (self.team is not None and self.team.root.is_dir())

    def store(self) -> MemoryStore:
        """Return the store, with edits made by hand adopted."""
        if self._store is None:
            self._store = MemoryStore(self.place, self._limits)
            self._store.adopt()
        return self._store

    def index(self) -> str:
        own = self.store().index().strip() if self.exists else ""
        shared = self.team.index().strip() if self.team is not None and self.has_any else ""
        if not shared:
            return own
        lead = f"The team's, in the repository under `{TEAM.as_posix()}/` (read them with Read):"
        return f"{own}\n\n{lead}\n\n{shared}".strip()

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None
