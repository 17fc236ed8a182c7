"""One tool call, looked at: which paths, which command, which address.

A tool's description and a model's input come in, a `ToolCall` goes out with everything a
decision needs, so that the decision can be pure. The disk is looked at here, through
`places` and `reach`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from holdfast.messages import Json, JsonObject
from holdfast.tools.permissions.danger import Danger, find_danger
from holdfast.tools.permissions.inner import is_opaque
from holdfast.tools.permissions.places import (
    Located,
    Places,
    locate,
    locate_glob,
    looks_like_bare_repository,
)
from holdfast.tools.permissions.reach import CommandReach, find_reach
from holdfast.tools.permissions.readonly import is_read_only_script
from holdfast.tools.permissions.script import Script
from holdfast.tools.permissions.shell import read_script

AccessKind: TypeAlias = Literal["read", "search", "shell", "fetch", "write", "ask", "other"]


class CallDescription(Protocol):
    """What must be known about a tool to judge a call of it."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> AccessKind: ...
    @property
    def path_inputs(self) -> tuple[str, ...]: ...
    @property
    def command_input(self) -> str: ...
    @property
    def is_read_only(self) -> Callable[[JsonObject], bool]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellCall:
    """What a command line would do, as far as it can be read."""

    text: str
    script: Script
    reach: CommandReach
    danger: Danger | None
    is_read_only: bool
    is_opaque: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One tool call with everything a decision needs."""

    tool: str
    kind: AccessKind
    paths: tuple[Located, ...] = ()
    shell: ShellCall | None = None
    has_command: bool = False
    """Whether the tool takes a command line, given or not."""
    url: str = ""
    to: str = ""
    """Whom a message is for."""
    is_read_only: bool = False


def examine(tool: CallDescription, given: JsonObject, places: Places) -> ToolCall:
    """Look at a call and at the disk, and write down what matters."""
    paths = tuple(_paths(tool, given, places))
    command = given.get(tool.command_input) if tool.command_input else None
    return ToolCall(
        tool=tool.name,
        kind=tool.kind,
        paths=paths,
        shell=_examine_shell(command, places) if isinstance(command, str) else None,
        has_command=bool(tool.command_input),
        url=str(given.get("url", "")),
        to=str(given.get("to", "")),
        is_read_only=tool.is_read_only(given),
    )


def _paths(tool: CallDescription, given: JsonObject, places: Places) -> Iterator[Located]:
    named = [given[key] for key in tool.path_inputs if given.get(key) not in (None, "")]
    for value in named:
        for text in value if isinstance(value, list) else [value]:
            yield locate(text, places) if isinstance(text, str) else _no_path(text)
    if tool.kind == "search" and not named:
        yield locate(".", places)
    pattern = given.get("pattern")
    if tool.name == "Glob" and isinstance(pattern, str) and _leaves(pattern):
        yield from locate_glob(pattern, places)


def _no_path(value: Json) -> Located:
    return Located(text=str(value), where="unclear")


def _leaves(pattern: str) -> bool:
    return pattern.startswith(("/", "~")) or ".." in pattern


_TRAP = Danger(level="risk", reason="git would take its settings from a directory in the project")


def _examine_shell(text: str, places: Places) -> ShellCall:
    script = read_script(text)
    reach = find_reach(script, places)
    runs_git = any(command.name == "git" for command in script.commands)
    is_trapped = runs_git and any(looks_like_bare_repository(b, places) for b in reach.bases)
    return ShellCall(
        text=text,
        script=script,
        reach=reach,
        danger=find_danger(script, text) or (_TRAP if is_trapped else None),
        is_read_only=is_read_only_script(script) and not is_trapped,
        is_opaque=is_opaque(script),
    )
