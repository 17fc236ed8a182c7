"""An agent's own memory: one store for each sort of agent, in one of three places.

A scope and a name come in; the directory goes out: `user` for all projects, `project` in the
repository for everybody who works there, `local` for this project on this machine. Store, limits
and tool are those of `memory`. What came with a repository is read like any other memory: as data.
A repository may also bring links, so a project's memory with a link on the way to it is refused.
"""

from pathlib import Path

from holdfast.agent.subagents.definition import Definition
from holdfast.errors import StoreError
from holdfast.memory.branch import Direct
from holdfast.memory.store import MemoryStore
from holdfast.memory.tool import memory_tool
from holdfast.request.prompt.sections import memory_text
from holdfast.settings import MemorySettings
from holdfast.settings.project import project_root, slug
from holdfast.tools.protocol import Tool


def directory_for(definition: Definition, root: Path, home: Path) -> Path | None:
    """Say where the memory of a sort of agent lies; nothing if it has none."""
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
    """Give a place that really lies in the project: nothing on the way to it is a link."""
    project = project.resolve()
    place = project / ".holdfast" / "agent-memory" / name
    if place.resolve() != place:
        raise StoreError(f"{place} is a link or behind one; an agent's memory is a plain directory")
    return place


def open_scope(
    definition: Definition, root: Path, home: Path, limits: MemorySettings
) -> MemoryStore | None:
    """Open the memory of a sort of agent; nothing if it has none or memory is off."""
    place = directory_for(definition, root, home)
    return MemoryStore(place, limits) if place is not None and limits.on else None


def tool_over(store: MemoryStore) -> Tool:
    """Make the memory tool of an agent."""
    return memory_tool(Direct(store=store, by="agent"))


def section_over(store: MemoryStore) -> str:
    """Write what an agent is told of its memory."""
    return memory_text(store.index())
