"""Directories and allowed file names of memories.

Each project, identified by its git root, has one directory for all subdirectories and worktrees.
Names come from models and repositories and are not trusted. Team memories are in the repository.
"""

import re
import unicodedata
from pathlib import Path

from longhold.core.log.shared import MemoryBackend, SharedCommits, SharedRecords
from longhold.core.memory.memory import MemoryRefused
from longhold.core.settings import Settings
from longhold.core.settings.installation import make_plugins
from longhold.core.settings.project import project_root, slug

INDEX = "MEMORY.md"
NAME_CHARS = 100
"""A name must fit into an index line with a title and a description."""
NAME_PARTS = 3
"""Deeper directories make memories hard to find."""
TEAM = Path(".longhold") / "team"
_WORD = re.compile(r"[^\W\d_]+")
_CONFUSABLE = {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"}
"""Scripts with letters that look alike."""
_LIKE_LATIN = str.maketrans(
    "АВЕЅІЈКМНОРСТУХаеорсухіјѕһԁԛԝӏүΑΒΕΖΗΙΚΜΝΟΡΤΥΧαοριυνγօոսհցզ",
    "ABESIJKMHOPCTYXaeopcyxijshdqwlyABEZHIKMNOPTYXaopiuvyonuhgq",
)


def memory_directory(home: Path, directory: Path, chosen: str = "") -> Path:
    """Return the chosen directory, or by default the one next to the project's sessions."""
    if not chosen:
        return home / "projects" / slug(project_root(directory)) / "memory"
    path = Path(chosen).expanduser()
    if "\0" in chosen or not path.is_absolute() or len(path.parts) < 3:
        raise MemoryRefused(
            f"memory.directory is {chosen!r}; use an absolute path below a directory of your own"
        )
    return path


def find_memories(
    shared: SharedRecords, home: Path, directory: Path, settings: Settings
) -> tuple[MemoryBackend | None, Path]:
    """Return a project's shared commits, if any, and the memory directory on this machine."""
    chosen, project = settings.memory.directory, project_root(directory)
    for name, backend in make_plugins("memories", settings.plugins.use, project).items():
        return backend, home / "memories" / name / slug(project)
    commits = None if chosen else shared.memory
    return commits, commits.place if commits else memory_directory(home, directory, chosen)


def agents_home(commits: SharedCommits | None, home: Path) -> Path:
    """Return the parent directory of agents' memories. Each tenant of a database has one."""
    return commits.place.parents[1] if commits else home


def team_directory(directory: Path) -> Path:
    directory = directory.resolve()
    places = (directory, *directory.parents)
    return next((place for place in places if (place / ".git").exists()), directory) / TEAM


def check_memory_name(name: str) -> str:
    """Return the name if it is valid and stays inside the store. Otherwise raise an error."""
    if reason := _explain_wrong(name):
        raise MemoryRefused(
            f"{name[:NAME_CHARS]!r} cannot name a memory: {reason}; use a name like 'deploy-steps.md'"
        )
    return name


def check_new_name(name: str) -> None:
    """Raise if a word of the name mixes alphabets whose letters look alike."""
    for word in _WORD.findall(name):
        scripts = {unicodedata.name(char, "").partition(" ")[0] for char in word}
        if len(scripts & _CONFUSABLE) > 1:
            raise MemoryRefused(
                f"{word!r} in {name!r} mixes alphabets whose letters look alike; use one alphabet"
            )


def name_looks(name: str) -> set[str]:
    """Return the forms of a name that could be confused with another name."""
    return {name.casefold(), name.translate(_LIKE_LATIN).casefold()}


def check_place(root: Path, name: str) -> Path:
    """Return the path of a name below the root. Raise if the path contains a symlink."""
    place = root
    for part in check_memory_name(name).split("/"):
        place = place / part
        if place.is_symlink():
            raise MemoryRefused(f"{name!r} is behind a link; remove {place} and try again")
    if not place.resolve().is_relative_to(root.resolve()):
        raise MemoryRefused(f"{name!r} leads out of the memory directory; use another name")
    return place


def _explain_wrong(name: str) -> str:
    if not name or len(name) > NAME_CHARS:
        return f"it must have 1 to {NAME_CHARS} characters"
    if not name.isprintable() or unicodedata.normalize("NFKC", name) != name:
        return "it contains invisible or confusable characters"
    parts = name.split("/")
    if len(parts) > NAME_PARTS:
        return f"it has more than {NAME_PARTS} parts"
    for part in parts:
        if not part or part.startswith(".") or part.endswith("."):
            return "a part of it is empty, hidden or ends with a dot"
        if not all(char.isalnum() or char in "-_." for char in part):
            return "it may contain only letters, digits, '-', '_', '.' and '/'"
    if parts[0].casefold() == TEAM.name:
        return "names that begin with 'team' belong to the team's memories in the repository"
    if any(part.endswith(".md") for part in parts[:-1]):
        return "a directory in it is named like a memory"
    if not name.endswith(".md") or parts[-1] == ".md":
        return "it must end in .md"
    if parts[-1].casefold() == INDEX.casefold():
        return "the index is built from the memories; change a memory's description instead"
    return ""
