"""An agent's own memory: one store per kind of agent, in one of three places.

`user` is for all projects, `project` in the repository for everyone who works there, `local` for
this project on this machine. A repository may contain links, so a project's memory behind a link
is refused.
"""

from pathlib import Path

from holdfast.agent.subagents.definition import Definition
from holdfast.errors import StoreError
from holdfast.memory.store import MemoryStore
from holdfast.settings import MemorySettings
from holdfast.settings.project import project_root, slug


def directory_for(definition: Definition, root: Path, home: Path) -> Path | None:
    """Return the memory directory of a kind of agent; None if it has no memory."""
    match definition.memory:
        case "user":
            return home / "agent-memory" / definition.name
        case "project":
            return _within(project_root(root), definition.name)
        case "local":
            projects = home / "projects" / slug(project_root(root))
            return projects / "agent-memory" / definition.name
        case "":
            return None


def _within(project: Path, name: str) -> Path:
    """Return a path in the project; raise if there is a link on the way."""
    project = project.resolve()
    place = project / ".holdfast" / "agent-memory" / name
    if place.resolve() != place:
        raise StoreError(
            f"{place} is a link or behind one; an agent's memory must be a plain directory"
        )
    return place


def open_scope(
    definition: Definition, root: Path, home: Path, limits: MemorySettings
) -> MemoryStore | None:
    """Open the memory of a kind of agent; None if it has none or memory is off."""
    place = directory_for(definition, root, home)
    return MemoryStore(place, limits) if place is not None and limits.on else None
