"""An agent's own memory: one store per agent definition and scope.

`user` is for all projects, `project` is in the repository, `local` is this project on this machine.
Writing follows the rules of the project's memory (consent, provenance). The project scope may not
be behind a symlink of the repository. Its history is in the home directory.
"""

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from longhold.agent.subagents.definition import Definition
from longhold.agent.subagents.names import check_agent_name
from longhold.core.log.entries import Said
from longhold.core.memory.inbox import ConsentedMemories
from longhold.core.memory.memory import BUSY_SECONDS, LOOP_SECONDS, NoSuchMemory
from longhold.core.memory.memory_tool import MemoryPlace, ViewedMemories, memory_tool
from longhold.core.memory.paths import team_directory
from longhold.core.memory.provenance import Provenance
from longhold.core.memory.recall import TEAM_LEAD
from longhold.core.memory.session_memory import memory_text
from longhold.core.memory.store import MemoryStore
from longhold.core.settings import MemorySettings
from longhold.core.settings.project import project_root, slug
from longhold.core.tools.protocol import Tool
from longhold.core.turn.engine import Engine
from longhold.errors import LongholdError, StoreError

Scope: TypeAlias = Literal["project", "local", "user"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
OWN = "agent-memory"


def directory_for(name: str, scope: Scope, root: Path, home: Path) -> Path:
    match scope:
        case "user":
            return home / OWN / name
        case "project":
            return _resolve_inside(project_root(root), name)
        case "local":
            return _find_project_place(root, home) / OWN / name


def _find_project_place(root: Path, home: Path) -> Path:
    return home / "projects" / slug(project_root(root))


def _resolve_inside(project: Path, name: str) -> Path:
    project = project.resolve()
    place = project / ".longhold" / OWN / name
    if place.resolve() != place:
        raise StoreError(
            f"{place} is a link or behind one; an agent's memory must be a plain directory"
        )
    return place


def open_store(
    name: str,
    scope: Scope,
    root: Path,
    home: Path,
    limits: MemorySettings,
    *,
    wait_seconds: float = BUSY_SECONDS,
) -> MemoryStore:
    place = directory_for(name, scope, root, home)
    if scope != "project":
        return MemoryStore(place, limits, wait_seconds=wait_seconds)
    history = _find_project_place(root, home) / "agent-history" / f"{name}.db"
    return MemoryStore(place, limits, history=history, wait_seconds=wait_seconds)


def open_scope(
    definition: Definition, root: Path, home: Path, limits: MemorySettings
) -> MemoryStore | None:
    if not definition.memory or not limits.on:
        return None
    scope = definition.memory
    store = open_store(definition.name, scope, root, home, limits, wait_seconds=LOOP_SECONDS)
    if scope == "project":
        store.adopt(by="repository", why="came with the repository")
    else:
        store.adopt()
    return store


def scopes_of(name: str, root: Path, home: Path) -> list[Scope]:
    check_agent_name(name, "an agent")
    found = [scope for scope in SCOPES if directory_for(name, scope, root, home).is_dir()]
    if not found:
        raise NoSuchMemory(f"agents named {name!r} have no memories here")
    return found


def agents_with_memories(root: Path, home: Path) -> Iterator[tuple[str, Scope]]:
    for scope in SCOPES:
        above = directory_for("x", scope, root, home).parent
        for place in sorted(above.iterdir()) if above.is_dir() else ():
            if place.is_dir() and not place.is_symlink():
                yield place.name, scope


class OwnMemory:
    def __init__(
        self,
        store: MemoryStore,
        definition: Definition,
        *,
        session: str,
        is_outside: Callable[[], bool],
    ) -> None:
        self.store = store
        self._name = definition.name
        self._is_shared = definition.memory == "project"
        self._session = session
        self._is_outside = is_outside
        self._claim: Callable[[], object] = lambda: None
        """Stores files that the agent wrote directly to the directory."""

    def tool(self, engine: Engine, root: Path) -> Tool:
        viewed = ViewedMemories(MemoryPlace(store=self.store.root, root=root))

        def provenance() -> Provenance:
            said = (entry.n for entry in reversed(engine.view.history) if isinstance(entry, Said))
            return Provenance(
                session=f"{self._session}/{engine.log.header.session}",
                message=next(said, 0),
                repository=team_directory(root).parent.parent,
            )

        def claim() -> MemoryStore:
            viewed.follow(engine.view.history).hand_over(partial(memories.take_written, self.store))
            return self.store

        memories = ConsentedMemories(
            open=claim,
            by="agent",
            provenance=provenance,
            is_outside=self._is_outside,
            command=f"longhold memory --agent {self._name}",
        )
        self._claim = claim
        return memory_tool(memories)

    def describe(self) -> str:
        """Return the section of the agent's prompt about its memories."""
        index = self.store.index()
        return memory_text(f"{TEAM_LEAD}\n\n{index}" if index and self._is_shared else index)

    def close(self) -> None:
        with closing(self.store), suppress(LongholdError):  # because the agent's log still has it
            self._claim()
