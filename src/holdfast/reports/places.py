"""Where sessions lie: other agents', ours, and in any directory that is named.

A sub-agent's transcript beside its session is part of that session, not one of its own.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import HoldfastError
from holdfast.log.store import FileStore
from holdfast.settings import home
from holdfast.settings.project import project_root
from holdfast.transcripts.claude_code.agents import SUFFIXES, agent_files, session_name
from holdfast.transcripts.formats import open_transcript

OURS = "holdfast"
"""The agent whose sessions are our own logs."""
LOOKED_AT = 200
"""How many of the newest sessions are asked which project they belong to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFile:
    path: Path
    stamp: str
    """Sizes and times of the file and of what belongs to it: another one means it was written to."""
    bytes: int
    modified: float


def agent_roots() -> dict[str, list[Path]]:
    """Return where each agent keeps its sessions; their own variables move them."""
    user = Path.home()
    claude = _moved("CLAUDE_CONFIG_DIR") or [user / ".claude", user / ".config" / "claude"]
    codex = _moved("CODEX_HOME") or [user / ".codex"]
    pi = _moved("PI_CODING_AGENT_DIR") or [user / ".pi" / "agent"]
    return {
        "claude-code": [place / "projects" for place in claude],
        "codex": [place / name for place in codex for name in ("sessions", "archived_sessions")],
        "pi": [place / "sessions" for place in pi],
        OURS: [home() / "projects"],
    }


def _moved(variable: str) -> list[Path]:
    value = os.environ.get(variable, "")
    return [Path(place.strip()).expanduser() for place in value.split(",") if place.strip()]


def default_roots() -> list[Path]:
    return [root for roots in agent_roots().values() for root in roots]


def find_sessions(roots: Iterable[Path]) -> list[SessionFile]:
    """List the sessions in directories, and the files that are named themselves."""
    places = (Path(os.path.realpath(root)) for root in roots)
    paths = {_real(path): None for place in places for path in _transcripts(place)}
    found = [_session_file(path) for path in paths]
    return [session for session in found if session is not None]


def _real(path: Path) -> Path:
    """Resolve a link; of a path below a real place only the name can be one."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def newest_session(directory: Path) -> Path | None:
    """Find the session of a project that was written to last, ours or another agent's."""
    here = {str(directory.resolve()), str(project_root(directory))}
    ours = FileStore().sessions(directory)
    least = ours[0].modified if ours else 0.0
    recent = sorted(_modified_since(least), reverse=True)[:LOOKED_AT]
    for _, path in recent:
        with suppress(HoldfastError), open_transcript(path) as transcript:
            if transcript.directory in here:
                return path
    return ours[0].path if ours else None


def _modified_since(least: float) -> Iterator[tuple[float, Path]]:
    roots = [root for agent, found in agent_roots().items() if agent != OURS for root in found]
    for root in roots:
        for path in _transcripts(root):
            with suppress(OSError):
                if (modified := path.stat().st_mtime) > least:
                    yield modified, path


def _transcripts(root: Path) -> Iterator[Path]:
    if root.is_file():
        yield root
        return
    for folder, folders, names in os.walk(root):
        place = Path(folder)
        files = [name for name in names if name.endswith(SUFFIXES)]
        yield from (place / name for name in files)
        sessions = {session_name(Path(name)) for name in files}
        folders[:] = sorted(name for name in folders if name not in sessions)


def _session_file(path: Path) -> SessionFile | None:
    """Describe a file as it is; None for one that vanished."""
    try:
        stats = [part.stat() for part in (path, *agent_files(path))]
    except OSError:
        return None
    return SessionFile(
        path=path,
        stamp=" ".join(f"{stat.st_size}:{stat.st_mtime_ns}" for stat in stats),
        bytes=sum(stat.st_size for stat in stats),
        modified=max(stat.st_mtime for stat in stats),
    )
