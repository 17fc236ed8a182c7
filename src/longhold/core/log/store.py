"""Store sessions: one directory per project, one log per session.

A session id is unique in a store. Only interactive commands accept the beginning of an id. `Store`
is the interface for other backends.
"""

import os
import re
import shutil
import stat
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from longhold.core.log import Header, Loaded, Log, OpenLog, branch_log, load, load_header, write_log
from longhold.core.log.cursor import earliest_now
from longhold.core.log.entries import AnyEntry, Ran, Replied, Swept
from longhold.core.log.erasing import TOMBSTONE, redact, remove_indexes, with_branches
from longhold.core.log.log import AGENTS, agent_logs
from longhold.core.log.results import DAY_SECONDS, DIRECTORY, Results, file_name, plan_sweep
from longhold.core.log.shared import FileRecords, SharedRecords
from longhold.core.log.titles import NOTES, title_of
from longhold.core.messages import ToolUse
from longhold.core.settings import SpillSettings, home
from longhold.core.settings.private_files import private_directory, write_private
from longhold.core.settings.project import project_root, slug
from longhold.errors import SessionExists, SessionNotFound, StoreError, TranscriptError

_ID = re.compile(r"\w[\w.-]*")
LONGEST_ID = 200
"""The limit in bytes. With its suffix, an id must fit into a file name of 255 bytes."""
NOTHING: Mapping[str, bytes] = {}
NONE_HERE = "this project has no session; `longhold sessions --all` lists every project's"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    """A session in a store. Only its header has been read."""

    id: str
    modified: float
    bytes: int
    header: Header


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSession(StoredSession):
    path: Path

    @property
    def directory(self) -> Path:
        return self.path.with_suffix("")


class Store(Protocol):
    """Interface of a session store. Methods expect complete ids.

    `find` and the reading methods also accept SESSION/AGENT for the log of an agent.
    """

    def create(self, *, directory: Path, session: str | None = None) -> OpenLog:
        """Create a session. Raises `SessionExists` if the id is taken."""

    def open(self, session: str) -> OpenLog:
        """Become a session's writer. Raises `LogLocked` if another process is its writer."""

    def load(self, session: str, *, after: int = 0) -> Loaded:
        """Read a session's entries after number `after` without becoming its writer."""

    def branch(self, session: str, *, upto: int | None = None) -> OpenLog:
        """Copy a session and its files under a new id, up to and including entry `upto`."""

    def add(
        self,
        header: Header,
        entries: Iterable[AnyEntry],
        beside: Mapping[str, bytes] = NOTHING,
        *,
        agent: str = "",
    ) -> str:
        """Write a complete session with the files of its log, and return its id.

        For the log of an agent, `agent` is SESSION/AGENT, and the session must exist.
        """

    def beside(self, session: str) -> dict[str, bytes]:
        """Read the result bodies and notes of a log, which every machine needs."""

    def results(self, session: str) -> Results:
        """Return a session's result bodies, for reading."""

    def agents(self, session: str) -> list[str]:
        """List the agents of a session by the names that `find` accepts."""

    def find(self, session: str, *, by_prefix: bool = False) -> StoredSession:
        """Find a session by its id.

        With `by_prefix`, `session` may also be the beginning of an id, or `newest` for the newest
        session of the current directory.
        """

    def sessions(
        self, directory: Path | None = None, *, limit: int = 0, prefix: str = ""
    ) -> Sequence[StoredSession]:
        """List the sessions of one or all projects, newest first. `prefix` filters the ids."""

    def shared(self, directory: Path) -> SharedRecords:
        """Return the records shared by the sessions of a directory's project."""

    def title(self, found: StoredSession) -> str: ...
    def files(self, session: str = "") -> "FileStore":
        """Return a file store with all sessions or only one, copied from a database if needed."""

    def delete(self, session: str) -> None:
        """Delete the session with exactly this id, including everything that belongs to it."""

    def erase(
        self, *sessions: str, directory: Path | None = None, everything: bool = False
    ) -> list[str]:
        """Erase sessions with their branches, and all copies and indexes on this machine.

        `directory` selects its sessions and memories. `everything` selects all data of the tenant.
        Return the erased ids. Raises `LogLocked` if a process is writing one of the sessions.
        """

    def redact(self, session: str, text: str) -> int:
        """Replace a text with a tombstone everywhere in a session and its branches.

        Return the number of changed entries and files.
        """

    def close(self) -> None: ...


_Found = TypeVar("_Found", bound=StoredSession)


def only_one(session: str, matches: Sequence[_Found]) -> _Found:
    """Return the only match. Raises an error if several sessions match."""
    if len(matches) == 1:
        return matches[0]
    some = ", ".join(one.id for one in matches[:4])
    raise SessionNotFound(f"{session!r} matches several sessions: {some}; give more of it")


class FileStore:
    def __init__(self, root: str | Path | None = None) -> None:
        self.root = Path(root or home())

    def create(self, *, directory: Path, session: str | None = None) -> Log:
        id = session or new_id()
        header = Header(session=id, created=time.time(), directory=str(directory))
        with self._naming(id if session else ""):
            return Log.create(self._path(directory, id), header)

    @contextmanager
    def _naming(self, id: str) -> Iterator[None]:
        """Raise if any project has this id, and lock the id while the block runs."""
        if not id:
            yield
            return
        from filelock import FileLock  # slow to import, and readers do not lock

        private_directory(self.root)
        with FileLock(self.root / "names.lock"):
            taken = [one for one in self._projects() if (one / f"{check_id(id)}.jsonl").exists()]
            if taken:
                raise SessionExists(
                    f"session {id} exists already and is never overwritten; choose another id"
                )
            yield

    def open(self, session: str) -> Log:
        found = self.find(session)
        return Log.open(found.path, found.path.stem)

    def load(self, session: str, *, after: int = 0) -> Loaded:
        found = self.find(session)
        loaded = load(found.path).use_session(found.path.stem)
        return replace(loaded, entries=[one for one in loaded.entries if one.n > after])

    def branch(self, session: str, *, upto: int | None = None) -> Log:
        source = self.find(session).path
        id = new_id()
        path = source.with_name(f"{id}.jsonl")
        branch_log(source, path, id, upto=upto)
        log = Log.open(path)
        beside, copied = source.with_suffix(""), path.with_suffix("")
        if upto is not None:
            _copy_upto(beside, copied, log.entries)
        elif beside.is_dir():
            shutil.copytree(beside, copied, symlinks=True, ignore=_sockets)
        return log

    def add(
        self,
        header: Header,
        entries: Iterable[AnyEntry],
        beside: Mapping[str, bytes] = NOTHING,
        *,
        agent: str = "",
    ) -> str:
        path = (
            self._agent_path(agent) if agent else self._path(Path(header.directory), header.session)
        )
        if beside and path.exists():
            raise SessionExists(f"{path}: it exists already and is never overwritten")
        for name, data in beside.items():
            write_private(path.with_suffix("") / check_file_name(name), data)
        write_log(path, header, entries)
        return header.session

    def beside(self, session: str) -> dict[str, bytes]:
        directory = self.find(session).directory
        return {
            f"{place}{path.name}": path.read_bytes()
            for place, paths in (
                (f"{DIRECTORY}/", sorted((directory / DIRECTORY).glob("*"))),
                ("", [directory / NOTES]),
            )
            for path in paths
            if path.is_file() and not path.is_symlink()
        }

    def results(self, session: str) -> Results:
        return Results(self.find(session).directory)

    def agents(self, session: str) -> list[str]:
        found = self.find(session)
        below = (path.relative_to(found.directory) for path in agent_logs(found.directory))
        return [
            "/".join((found.id, *(p for p in path.with_suffix("").parts if p != AGENTS)))
            for path in below
        ]

    def shared(self, directory: Path) -> FileRecords:
        return FileRecords(self._project(directory))

    def title(self, found: StoredSession) -> str:
        return title_of(self.find(found.id).path)

    def files(self, session: str = "") -> "FileStore":
        return self

    def close(self) -> None:
        """A store of files has nothing to release."""

    def sessions(
        self, directory: Path | None = None, *, limit: int = 0, prefix: str = ""
    ) -> list[FoundSession]:
        projects = [self._project(directory)] if directory else self._projects()
        found = [one for project in projects for one in _sessions_in(project, prefix)]
        found.sort(key=lambda session: session.modified, reverse=True)
        return found[:limit] if limit else found

    def find(self, session: str, *, by_prefix: bool = False) -> FoundSession:
        if "/" in session:
            found = list(_read_session(self._agent_path(session, by_prefix=by_prefix)))
            if not found:
                raise SessionNotFound(
                    f"there is no agent {session!r}; `longhold explain SESSION` names them"
                )
            return replace(found[0], id=session)
        if (named := self._find_by_id(session)) is not None:
            return named
        if by_prefix:
            return self._find_by_prefix(session)
        raise self._explain_missing(session)

    def _find_by_prefix(self, session: str) -> FoundSession:
        if session == "newest":
            if here := self.sessions(Path.cwd()):
                return here[0]
            raise SessionNotFound(NONE_HERE)
        matches = self.sessions(prefix=session) if session else []
        if not matches:
            raise self._explain_missing(session)
        return only_one(session, matches)

    def _explain_missing(self, session: str) -> SessionNotFound:
        for project in self._projects() if is_id(session) else ():
            with suppress(PermissionError):
                if (project / f"{session}.jsonl").exists():
                    load_header(project / f"{session}.jsonl")  # raises an error with the reason
        skipped = "".join(f"; {line}" for line in self.unreadable())
        return SessionNotFound(
            f"there is no session {session!r}; `longhold sessions --all` lists them{skipped}"
        )

    def _find_by_id(self, session: str) -> FoundSession | None:
        """Look up a complete id without listing other sessions.

        Stores of version 0.1 may have an id in two projects. The newer log counts.
        """
        if not is_id(session):
            return None
        paths = [project / f"{session}.jsonl" for project in self._projects()]
        found = [one for path in paths if os.access(path, os.R_OK) for one in _read_session(path)]
        return max(found, key=lambda one: one.modified, default=None)

    def unreadable(self) -> list[str]:
        return [
            f"{project} cannot be read and is skipped; check its permissions"
            for project in self._projects()
            if not os.access(project, os.R_OK | os.X_OK)
        ]

    def delete(self, session: str) -> None:
        found = self.find(session)
        if not is_id(session):
            raise SessionNotFound(f"there is no session {session!r}; give a complete id")
        with Log.open(found.path):  # raises if a process is writing it, and locks out others
            shutil.rmtree(found.directory, ignore_errors=True)
            for path in (found.path, found.path.with_suffix(".lock")):
                path.unlink(missing_ok=True)

    def erase(
        self, *sessions: str, directory: Path | None = None, everything: bool = False
    ) -> list[str]:
        listed = self.sessions(directory) if directory or everything else []
        gone = with_branches(self, [*sessions, *(one.id for one in listed)])
        for id in gone:
            with suppress(SessionNotFound):
                while True:  # stores of version 0.1 may have the id twice
                    self.delete(id)
            shutil.rmtree(self.root / "teams" / id, ignore_errors=True)
        places = {directory} if directory else {Path(one.header.directory) for one in listed}
        for place in places:  # memories are in the home directory, wherever the store is
            project = slug(project_root(place))
            for root in (self.root, home()):
                shutil.rmtree(root / "projects" / project / "memory", ignore_errors=True)
            shutil.rmtree(self._project(place), ignore_errors=True)
        if everything:  # include the memories that agents have in all projects
            shutil.rmtree(self.root / "agent-memory", ignore_errors=True)
        remove_indexes(self.root)
        return gone

    def redact(self, session: str, text: str) -> int:
        count = 0
        for id in with_branches(self, [session]):
            found = self.find(id)
            with Log.open(found.path):  # raises if a process is writing it
                for path in (found.path, *_files(found.directory)):
                    if path.match("history.sqlite*"):
                        path.unlink()
                        continue
                    data = path.read_bytes()
                    kept = redact(data, text)
                    if kept != data:
                        write_private(path, kept)
                        count += kept.count(TOMBSTONE) - data.count(TOMBSTONE)
        remove_indexes(self.root)
        return count

    def _path(self, directory: Path, id: str) -> Path:
        return self._project(directory) / f"{check_id(id)}.jsonl"

    def _agent_path(self, name: str, *, by_prefix: bool = False) -> Path:
        session, _, agent = name.rpartition("/")
        return (
            self.find(session, by_prefix=by_prefix).directory / AGENTS / f"{check_id(agent)}.jsonl"
        )

    def _project(self, directory: Path) -> Path:
        return self.root / "projects" / slug(project_root(directory))

    def _projects(self) -> list[Path]:
        try:
            with os.scandir(self.root / "projects") as listing:
                return sorted(Path(entry.path) for entry in listing if entry.is_dir())
        except OSError:
            return []


def list_expired(
    store: Store, retention_days: int, *, now: float | None = None
) -> list[StoredSession]:
    oldest = (now or earliest_now()) - retention_days * DAY_SECONDS
    return [found for found in store.sessions() if retention_days and found.modified < oldest]


def _sessions_in(project: Path, prefix: str) -> Iterator[FoundSession]:
    try:
        with os.scandir(project) as listing:
            named = (entry for entry in listing if entry.name.startswith(prefix))
            logs = sorted(entry.path for entry in named if entry.name.endswith(".jsonl"))
    except OSError:
        return  # `unreadable` lists this file
    for name in logs:
        yield from _read_session(Path(name))


def _read_session(path: Path) -> Iterator[FoundSession]:
    try:
        header, stat = load_header(path), path.stat()
    except (TranscriptError, OSError):
        return  # not a log; `find` reports why
    yield FoundSession(
        id=path.stem, path=path, modified=stat.st_mtime, bytes=stat.st_size, header=header
    )


def is_id(id: str) -> bool:
    """Return whether a session id is valid. It must be a plain name without path separators."""
    return _ID.fullmatch(id) is not None and len(os.fsencode(id)) <= LONGEST_ID


def check_id(id: str) -> str:
    if not is_id(id):
        raise StoreError(
            f"{id!r} is not a session id; use at most {LONGEST_ID} letters, digits, dots and dashes"
        )
    return id


def check_file_name(name: str) -> str:
    """Validate a name from `beside`: the notes, or a file in the results directory."""
    place, _, file = name.rpartition("/")
    if place not in ("", DIRECTORY) or not file or file in (".", "..") or "\0" in file:
        raise StoreError(f"{name!r} is not the name of a file that belongs to a log")
    return name


def new_id() -> str:
    """Return a new id. Sorting ids sorts them by creation time."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{uuid.uuid4().hex[:8]}"


class _Timed(msgspec.Struct):
    at: float = 0.0
    created: float = 0.0


_decoder = msgspec.json.Decoder(_Timed)


def _copy_upto(source: Path, target: Path, entries: Sequence[AnyEntry]) -> None:
    """Copy a session's files as they were when the last of these entries was written.

    Ledgers and agents' logs are copied up to the time of the branch. Results are copied if the
    branch contains their call. Other files are copied if they are not newer than the branch.
    """
    until, results = (entries[-1].at if entries else 0.0), result_names(entries)
    for path in _files(source):
        place = target / path.relative_to(source)
        if path.suffix == ".jsonl":
            if kept := _lines_until(path, until):
                write_private(place, kept)
        elif (
            path.stem in results
            if path.parent.name == DIRECTORY
            else path.lstat().st_mtime <= until
        ):
            private_directory(place.parent)
            shutil.copy2(path, place, follow_symlinks=False)


def _sockets(directory: str, names: list[str]) -> list[str]:
    return [one for one in names if stat.S_ISSOCK(Path(directory, one).lstat().st_mode)]


def _files(source: Path) -> Iterator[Path]:
    for directory, _, names in os.walk(source):
        for name in sorted(names):
            path = Path(directory, name)
            if stat.S_ISREG(path.lstat().st_mode):
                yield path


def result_names(entries: Iterable[AnyEntry]) -> set[str]:
    ids = {entry.tool_use_id for entry in entries if isinstance(entry, Ran)}
    for entry in entries:
        if isinstance(entry, Replied):
            ids |= {block.id for block in entry.content if isinstance(block, ToolUse)}
    return set(map(file_name, ids))


def _lines_until(path: Path, until: float) -> bytes:
    kept: list[bytes] = []
    for line in path.read_bytes().splitlines(keepends=True):
        try:
            timed = _decoder.decode(line)
        except (msgspec.DecodeError, RecursionError):
            timed = _Timed()
        if max(timed.at, timed.created) > until:
            break
        kept.append(line)
    return b"".join(kept)


def sweep_session(log: Path, settings: SpillSettings, *, now: float | None = None) -> list[Swept]:
    """Sweep a session that is not open, and log the removals. The log keeps its mtime."""
    results = Results(log.with_suffix(""))
    if not any(plan_sweep(results.list_stored(), settings, now or earliest_now())):
        return []
    before = log.stat()
    with Log.open(log) as opened:
        swept = results.sweep(settings, now=now)
        for entry in swept:
            opened.append(entry)
    os.utime(log, ns=(before.st_atime_ns, before.st_mtime_ns))
    return swept
