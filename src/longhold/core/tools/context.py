"""The state that the tools of one session share. A fork works on a copy.

The state lists the files that the model has read. The model may write a file that has not changed
since. Reading an unchanged file again returns one line. Symlinks to a file count as that file.
"""

import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from msgspec import Struct

from longhold.core.models.capabilities import PLAIN_WINDOW_TOKENS
from longhold.core.tools.environment import shell_variables
from longhold.core.view.tokens import CLAUDE, estimate_tokens

MAX_FILES = 100
"""A session works on fewer files at a time. A dropped file must be read again."""
FILE_BYTES = 64 << 20
"""Larger files are neither read nor edited. A command's output file has the same limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    size: int
    modified_ns: int
    inode: int
    sha256: str = ""

    def same_content(self, other: "Stamp") -> bool:
        if self.sha256 and other.sha256:
            return self.sha256 == other.sha256
        return replace(self, sha256="") == replace(other, sha256="")


def stamp_of(status: os.stat_result, content: bytes | None) -> Stamp:
    digest = hashlib.sha256(content).hexdigest() if content is not None else ""
    return Stamp(
        size=status.st_size, modified_ns=status.st_mtime_ns, inode=status.st_ino, sha256=digest
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenFile:
    path: Path
    stamp: Stamp
    ranges: tuple[range, ...] = ()
    """Line ranges, counted from 1, that are still in the model's view. A write clears them."""

    def shows(self, lines: range) -> bool:
        return any(lines.start >= shown.start and lines.stop <= shown.stop for shown in self.ranges)


class Files:
    def __init__(self, seen: Iterable[SeenFile] = (), *, max_files: int = MAX_FILES) -> None:
        self.max_files = max_files
        self._seen = OrderedDict((each.path, each) for each in seen)

    def __len__(self) -> int:
        return len(self._seen)

    def record(self, seen: SeenFile) -> None:
        """Record a file's current state. Line ranges are kept if its content is the same."""
        seen = replace(seen, path=_real(seen.path))
        before = self._seen.pop(seen.path, None)
        if before and before.stamp.same_content(seen.stamp):
            seen = replace(seen, ranges=tuple(dict.fromkeys((*before.ranges, *seen.ranges))))
        self._seen[seen.path] = seen
        if len(self._seen) > self.max_files:
            self._seen.popitem(last=False)

    def of(self, path: Path) -> SeenFile | None:
        path = _real(path)
        if path not in self._seen:
            return None
        self._seen.move_to_end(path)
        return self._seen[path]

    def disarm(self, path: Path) -> None:
        """Record that a file's text is no longer in the model's view."""
        path = _real(path)
        if path in self._seen:
            self._seen[path] = replace(self._seen[path], ranges=())

    def list_newest(self) -> tuple[SeenFile, ...]:
        return tuple(reversed(self._seen.values()))

    def copy(self) -> "Files":
        return Files(self._seen.values(), max_files=self.max_files)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


class Todo(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    content: str
    status: Literal["pending", "in_progress", "completed"]
    activeForm: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanMode:
    is_on: bool = False
    file: Path | None = None


JUDGED: ContextVar[Mapping[Path, Path]] = ContextVar("judged")
"""The targets of the running call's paths when permissions were checked. Tools open only these,
because a symlink can change while the user is asked."""


class Commands(Protocol):
    """The running commands of a session. The agent's shell tool provides them."""

    background: dict[str, Any]

    async def stop_all(self) -> None: ...


class NoCommands:
    def __init__(self) -> None:
        self.background: dict[str, Any] = {}

    async def stop_all(self) -> None:
        return


@dataclass(slots=True, kw_only=True)
class ToolContext:
    root: Path
    """The session's start directory. Commands return here if their directory is deleted."""
    home: Path
    """Longhold's directory, which contains plans and the user's skills."""
    scratch: Path
    """Directory for tool output. It is created on demand and private to the user."""
    session: str = "session"
    directory: Path = field(default_factory=Path)
    """The base of relative paths and the working directory of commands."""
    more_roots: tuple[Path, ...] = ()
    files: Files = field(default_factory=Files)
    todos: tuple[Todo, ...] = ()
    plan: PlanMode = field(default_factory=PlanMode)
    shells: Commands = field(default_factory=NoCommands)
    variables: Mapping[str, str] = field(default_factory=lambda: shell_variables(os.environ))
    """The environment of commands, without model API keys."""
    report: Callable[[str], None] = lambda _line: None
    """Receives one line of progress while a tool runs."""
    count_tokens: Callable[[str], int] = lambda text: estimate_tokens(text, CLAUDE)
    window_tokens: Callable[[], int] = lambda: PLAIN_WINDOW_TOKENS
    """The model's window, which determines the size of a page of a file."""
    is_hidden: Callable[[Path], bool] = lambda _path: False
    """Whether a deny rule covers a file, so that searches omit it."""
    is_fork: bool = False

    def __post_init__(self) -> None:
        self.root = self.root.resolve()
        if self.directory == Path():
            self.directory = self.root

    @property
    def roots(self) -> tuple[Path, ...]:
        return (self.root, *self.more_roots)

    def resolve(self, path: str) -> Path:
        """Make a path absolute. Symlinks are not followed."""
        given = os.path.expanduser(path)  # noqa: PTH111 - unlike Path, this accepts `~nobody`
        return Path(os.path.normpath(self.directory / given))

    def resolve_links(self, path: Path) -> Path:
        """Follow the symlinks of a path, as they were when permissions were checked."""
        return JUDGED.get({}).get(path) or _real(path)

    def show_path(self, path: Path) -> str:
        is_below = path != self.directory and path.is_relative_to(self.directory)
        return str(path.relative_to(self.directory) if is_below else path)

    def is_within(self, path: Path) -> bool:
        """Return whether a path with resolved symlinks is in a root or the scratch directory."""
        real = path.resolve()
        return any(real.is_relative_to(root.resolve()) for root in (*self.roots, self.scratch))

    def fork(self) -> "ToolContext":
        """Return an independent copy that knows the same files but owns no commands."""
        return replace(self, files=self.files.copy(), shells=NoCommands(), is_fork=True)

    def move_to(self, directory: Path) -> None:
        self.directory = directory

    def set_files(self, files: Files) -> None:
        self.files = files

    def set_todos(self, todos: tuple[Todo, ...]) -> None:
        self.todos = todos

    def set_shells(self, shells: Commands) -> None:
        self.shells = shells

    def set_plan(self, plan: PlanMode) -> None:
        self.plan = plan

    async def close(self) -> None:
        await self.shells.stop_all()
