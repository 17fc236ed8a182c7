"""Where memories lie, and which names may lead there.

A directory per project, that of the git root: subdirectories and worktrees share it. Names
come from models and repositories and are not trusted: whatever could lead outside, hide, or
read like another name is refused with the reason. Team memories lie in the repository itself.
"""

import re
import unicodedata
from pathlib import Path

from holdfast.memory.refusals import MemoryRefused
from holdfast.settings.project import project_root, slug

INDEX = "MEMORY.md"
NAME_CHARS = 100
"""A name must fit an index line, with its title and some of its description."""
NAME_PARTS = 3
"""Directories in directories help nobody find a memory."""
TEAM = Path(".holdfast") / "team"


def memory_directory(home: Path, directory: Path, chosen: str = "") -> Path:
    """Find the directory of a project's memories: the chosen one, else beside its sessions."""
    if chosen:
        return _checked_directory(chosen)
    return home / "projects" / slug(project_root(directory)) / "memory"


def team_directory(directory: Path) -> Path:
    """Find where a repository keeps its team's memories: in this very worktree."""
    directory = directory.resolve()
    for place in (directory, *directory.parents):
        if (place / ".git").exists():
            return place / TEAM
    return directory / TEAM


def checked_name(name: str) -> str:
    """Return a name that can only mean one file inside the store, or refuse."""
    if reason := _wrong_with(name):
        raise MemoryRefused(
            f"{name[:NAME_CHARS]!r} cannot name a memory: {reason}; use a name like 'deploy-steps.md'"
        )
    return name


def checked_place(root: Path, name: str) -> Path:
    """Return where a name lies below the root, no link on the way."""
    place = root
    for part in checked_name(name).split("/"):
        place = place / part
        if place.is_symlink():
            raise MemoryRefused(f"{name!r} lies behind a link; remove {place} and try again")
    if not place.resolve().is_relative_to(root.resolve()):
        raise MemoryRefused(f"{name!r} leads out of the memory directory; use another name")
    return place


def file_name(title: str) -> str:
    """Make a file name of a title."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:60].strip("-")
    is_free = name and f"{name}.md" != INDEX.casefold()
    return f"{name}.md" if is_free else "remembered.md"


def _checked_directory(chosen: str) -> Path:
    path = Path(chosen).expanduser()
    if "\0" in chosen or not path.is_absolute() or len(path.parts) < 3:
        raise MemoryRefused(
            f"memory.directory is {chosen!r}; give a whole path below a directory of your own"
        )
    return path


def _wrong_with(name: str) -> str:
    """Say what is wrong with a name, or nothing."""
    if not name or len(name) > NAME_CHARS:
        return f"it must have 1 to {NAME_CHARS} characters"
    if not name.isprintable() or unicodedata.normalize("NFKC", name) != name:
        return "it holds characters that cannot be seen or can be mistaken for others"
    parts = name.split("/")
    if len(parts) > NAME_PARTS:
        return f"it has more than {NAME_PARTS} parts"
    for part in parts:
        if not part or part.startswith(".") or part.endswith("."):
            return "a part of it is empty, hidden or leads elsewhere"
        if not all(char.isalnum() or char in "-_." for char in part):
            return "only letters, digits, '-', '_', '.' and '/' may be in it"
    if parts[0].casefold() == TEAM.name:
        return "what begins with 'team' is the team's, in the repository"
    if any(part.endswith(".md") for part in parts[:-1]):
        return "a directory in it is named like a memory"
    if not name.endswith(".md") or parts[-1] == ".md":
        return "it must end in .md"
    if parts[-1].casefold() == INDEX.casefold():
        return "the index is made from the memories; change a memory's description instead"
    return ""
