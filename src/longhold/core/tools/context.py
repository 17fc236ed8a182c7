"""The state that the tools of one session share. A fork works on a copy."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from msgspec import Struct

from longhold.core.tools.environment import shell_variables
from longhold.core.tools.seen_files import Files
from longhold.core.view.tokens import CLAUDE, estimate_tokens


class Todo(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    content: str
    status: Literal["pending", "in_progress", "completed"]
    activeForm: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanMode:
    is_on: bool = False
    file: Path | None = None


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
    """The session's start directory. `cd` returns here if the current directory is deleted."""
    home: Path
    """Longhold's directory, with plans and the user's skills."""
    scratch: Path
    """Directory for tool output: created on demand, private to the user."""
    session: str = "session"
    directory: Path = field(default_factory=Path)
    """Base of relative paths and working directory of commands; the root until a `cd`."""
    more_roots: tuple[Path, ...] = ()
    files: Files = field(default_factory=Files)
    todos: tuple[Todo, ...] = ()
    plan: PlanMode = field(default_factory=PlanMode)
    shells: Commands = field(default_factory=NoCommands)
    variables: Mapping[str, str] = field(default_factory=lambda: shell_variables(os.environ))
    """The environment of commands, without model API keys."""
    report: Callable[[str], None] = lambda _line: None
    """Called with one line of progress while a tool runs."""
    count_tokens: Callable[[str], int] = lambda text: estimate_tokens(text, CLAUDE)
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
        given = os.path.expanduser(path)  # noqa: PTH111 - leaves `~nobody` alone, where Path raises
        return Path(os.path.normpath(self.directory / given))

    def shown(self, path: Path) -> str:
        is_below = path != self.directory and path.is_relative_to(self.directory)
        return str(path.relative_to(self.directory) if is_below else path)

    def is_within(self, path: Path) -> bool:
        """Return whether a path, symlinks resolved, is in a root or the scratch directory."""
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
