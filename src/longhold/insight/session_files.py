"""Finds the session files of all agents, and the command that resumes a session. The transcript of
a sub-agent next to its session is part of that session.
"""

import os
import re
import shlex
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from operator import attrgetter
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, TypeVar

from longhold.core.log.cursor import clamp_time
from longhold.core.log.stores import default_store
from longhold.core.settings import home
from longhold.core.settings.project import project_root
from longhold.core.settings.reading import user_home
from longhold.errors import LongholdError
from longhold.insight.transcripts.claude_code.agents import agent_files, session_name
from longhold.insight.transcripts.formats import open_transcript

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor


OURS = "longhold"
ID_CHARS = 8  # how much of another agent's session id lists show. Commands accept such a prefix.
LEAST_ID_CHARS = 4  # a shorter prefix of an id could be any word
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
LOOKED_AT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFile:
    path: Path
    stamp: str
    """Sizes and times of the file and its parts. The stamp changes when one of them is written."""
    bytes: int
    modified: float


def index_path(path: Path) -> str:
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def agent_roots() -> dict[str, list[Path]]:
    """Return where each agent stores its sessions. The agents' variables take precedence."""
    user = user_home()
    claude = _read_roots("CLAUDE_CONFIG_DIR") or [user / ".claude", user / ".config" / "claude"]
    codex = _read_roots("CODEX_HOME") or [user / ".codex"]
    pi = _read_roots("PI_CODING_AGENT_DIR") or [user / ".pi" / "agent"]
    return {
        "claude-code": [place / "projects" for place in claude],
        "codex": [place / name for place in codex for name in ("sessions", "archived_sessions")],
        "pi": [place / "sessions" for place in pi],
        OURS: [home() / "projects"],
    }


def _read_roots(variable: str) -> list[Path]:
    value = os.environ.get(variable, "")
    return [Path(place.strip()).expanduser() for place in value.split(",") if place.strip()]


def default_roots(agent: str = "") -> list[Path]:
    """Return where sessions are stored. Sessions in a database are copied to local files first."""
    places = agent_roots()
    if agent in ("", OURS):
        places[OURS] = [default_store().files().root / "projects"]
    return [root for name, roots in places.items() if agent in ("", name) for root in roots]


def find_sessions(roots: Iterable[Path]) -> list[SessionFile]:
    places = (Path(os.path.realpath(root)) for root in roots)
    found = {file.path: file for place in places for file in _transcripts(place)}
    return list(found.values())


def newest_session(directory: Path) -> Path | None:
    here = {str(directory.resolve()), str(project_root(directory))}
    store = default_store()
    ours = store.sessions(directory, limit=1)
    least = ours[0].modified if ours else 0.0
    theirs = (root for agent, roots in agent_roots().items() if agent != OURS for root in roots)
    files = (file for root in theirs for file in _transcripts(root) if file.modified > least)
    recent = sorted(((file.modified, file.path) for file in files), reverse=True)
    for _, path in recent[:LOOKED_AT]:
        with suppress(LongholdError), open_transcript(path) as transcript:
            if transcript.directory in here:
                return path
    return store.files(ours[0].id).find(ours[0].id).path if ours else None


def find_by_id(id: str) -> list[Path]:
    """Find other agents' sessions by the beginning of an id, which is in the file's name."""
    if len(id) < LEAST_ID_CHARS:
        return []
    places = (root for agent, roots in agent_roots().items() if agent != OURS for root in roots)
    files = (file.path for root in places for file in _transcripts(root))
    found = [(path, [path.stem, *_UUID.findall(path.stem)]) for path in files]
    exact = [path for path, ids in found if id in ids]
    return exact or [path for path, ids in found if any(each.startswith(id) for each in ids)]


def _transcripts(root: Path) -> Iterator[SessionFile]:
    if not root.is_dir():
        yield from _session_file(root)
        return
    waiting = [str(root)]
    while waiting:
        folder = waiting.pop()
        with suppress(OSError):
            entries = sorted(os.scandir(folder), key=attrgetter("name"))
            folders = {entry.name for entry in entries if entry.is_dir(follow_symlinks=False)}
            files = {entry: session_name(entry.name) for entry in entries}
            sessions = {name for entry, name in files.items() if name != entry.name}
            for entry, name in files.items():
                if name != entry.name and entry.name not in folders:
                    is_link = entry.is_symlink()
                    path = Path(os.path.realpath(entry.path) if is_link else entry.path)
                    yield from _session_file(path, has_folder=is_link or name in folders)
            waiting += (f"{folder}/{name}" for name in sorted(folders - sessions, reverse=True))


def _session_file(path: Path, *, has_folder: bool = True) -> Iterator[SessionFile]:
    """Describe a regular file. Yield nothing for a pipe, a device or a deleted file."""
    with suppress(OSError):
        parts = agent_files(path) if has_folder else ()
        stats = [part.stat() for part in (path, *parts)]
        if S_ISREG(stats[0].st_mode):
            yield SessionFile(
                path=path,
                stamp=" ".join(f"{stat.st_size}:{stat.st_mtime_ns}" for stat in stats),
                bytes=sum(stat.st_size for stat in stats),
                modified=max(stat.st_mtime for stat in stats),
            )


Job = TypeVar("Job")

ALONE_BYTES = 24 << 20  # smaller amounts are read faster than another process starts
AHEAD = 3  # submitted jobs per process, enough to keep it busy and few enough to limit memory

SAFE_PATH = "PYTHONSAFEPATH"
Advance = Callable[[int], None]  # called with the bytes read since the last call


def processes_for(files: Sequence[SessionFile]) -> int:
    return 1 if sum(file.bytes for file in files) < ALONE_BYTES else os.cpu_count() or 1


@contextmanager
def worker_processes(count: int | None = None) -> Iterator["ProcessPoolExecutor"]:
    """Yield a pool of processes that import nothing from the current directory.

    They are spawned, because a fork of a process with threads can deadlock. Python spawns them with
    `-c`, which would import the modules of a cloned repository before the standard library's.
    """
    # Imported here because loading multiprocessing takes longer than a search.
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"  # set while the pool exists, because it starts processes late
    try:
        with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
            yield pool
    finally:
        if before is None:
            os.environ.pop(SAFE_PATH, None)
        else:
            os.environ[SAFE_PATH] = before


def each_in_processes(
    work: Callable[[Job], bytes], jobs: Iterable[Job], processes: int
) -> Iterator[tuple[Job, bytes]]:
    """Run all jobs and yield each with its result. With `processes=1`, run them in this process."""
    if processes < 2:
        yield from ((job, work(job)) for job in jobs)
        return
    from concurrent.futures import FIRST_COMPLETED, wait

    waiting = iter(jobs)
    running: dict[Future[bytes], Job] = {}
    with worker_processes(processes) as pool:
        while True:
            for job in islice(waiting, AHEAD * processes - len(running)):
                running[pool.submit(work, job)] = job
            if not running:
                return
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(done), done.result()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSession:
    id: str
    directory: str
    """The client resumes the session only from this directory."""
    path: Path
    command: str


def client_session(agent: str, directory: str, *, id: str = "") -> ClientSession:
    """Choose the path and id of a client's new session, by default in the current directory."""
    place = directory if directory and Path(directory).is_dir() else str(Path.cwd())
    place, id = os.path.realpath(place), id or str(uuid.uuid4())
    root, at = agent_roots()[agent][0], time.time()
    path, words = {"claude-code": _claude, "codex": _codex, "pi": _pi}[agent](root, place, id, at)
    command = f"cd {shlex.quote(place)} && {words}"
    return ClientSession(id=id, directory=place, path=path, command=command)


def _claude(root: Path, directory: str, id: str, at: float) -> tuple[Path, str]:
    project = re.sub(r"[^A-Za-z0-9]", "-", directory)
    return root / project / f"{id}.jsonl", f"claude --resume {id}"


def _codex(root: Path, directory: str, id: str, at: float) -> tuple[Path, str]:
    day = datetime.fromtimestamp(clamp_time(at))
    name = f"rollout-{day:%Y-%m-%dT%H-%M-%S}-{id}.jsonl"
    return root / f"{day:%Y}" / f"{day:%m}" / f"{day:%d}" / name, f"codex resume {id}"


def _pi(root: Path, directory: str, id: str, at: float) -> tuple[Path, str]:
    project = f"--{re.sub(r'[/:]', '-', directory.lstrip('/'))}--"
    name = f"{datetime.fromtimestamp(clamp_time(at), UTC):%Y-%m-%dT%H-%M-%S-000Z}_{id}.jsonl"
    return root / project / name, f"pi --session {id}"
