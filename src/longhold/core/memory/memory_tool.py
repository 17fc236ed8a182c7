"""The `memory` tool: the six standard commands of memory tools, and a search.

Paths begin with `/memories` and refer to files of the store, not to files on disk. The tool works
on the store or on a branch (`Pages`).
"""

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, Protocol, Self, TypeVar

from msgspec import Meta

from longhold.core.log.cursor import LogCursor
from longhold.core.log.entries import AnyEntry, Ran, Recalled, Replied
from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.memory import (
    Memory,
    MemoryBusy,
    MemoryConflict,
    MemoryRefused,
    NoSuchMemory,
    parse,
    retry_while_busy,
)
from longhold.core.memory.paths import INDEX, check_memory_name
from longhold.core.messages import JsonObject, ToolUse
from longhold.core.messages.text import one_line
from longhold.core.tools.context import ToolContext
from longhold.core.tools.describe import MEMORY, description_of
from longhold.core.tools.protocol import Input, Outcome, Refused, Tool, make_tool
from longhold.core.turn.fork.asking import Permit
from longhold.core.turn.round import Allowed, Denied
from longhold.core.view import View

ROOT = "/memories"
FOUND = 10
READS = frozenset({"view", "search"})
NO_REASON = "deleted without a reason"

READERS = {"Read": "read", "Grep": "search", "Glob": "search"}
"""The reading tools, each with the kind that it must have."""
SHELL = "Bash"
REFUSAL = (
    "Not possible here. You may look at files and sessions, and change memories with the memory"
    " tool; nothing else."
)
WRITES = "Not possible here: this command is not known to change nothing. Use a simpler one."


class Pages(Protocol):
    """The store or a branch, as the memory tool uses it."""

    def versions(self) -> dict[str, str]: ...
    def read(self, file: str) -> str: ...
    def search(self, query: str, limit: int) -> Mapping[str, str]:
        """Return the matching files, best first, with descriptions."""
        ...

    def change(self, changes: Sequence[MemoryChange], *, why: str) -> str:
        """Make changes, and return a remark for the model or ''."""
        ...


class MemoryInput(Input, frozen=True, kw_only=True):
    command: Literal["view", "search", "create", "str_replace", "insert", "delete", "rename"]
    path: Annotated[str, Meta(description="Of a file or directory, from /memories on.")] = ""
    view_range: Annotated[
        tuple[int, int] | None, Meta(description="First and last line to view; -1 is the end.")
    ] = None
    query: Annotated[str, Meta(description="The words that search looks for.")] = ""
    file_text: Annotated[str, Meta(description="What create writes.")] = ""
    old_str: Annotated[str, Meta(description="What str_replace looks for.")] = ""
    new_str: Annotated[str, Meta(description="The text that replaces it.")] = ""
    insert_line: Annotated[
        int, Meta(description="The line after which to insert; 0 is the top.")
    ] = 0
    insert_text: Annotated[str, Meta(description="What to insert.")] = ""
    old_path: Annotated[str, Meta(description="What to rename.")] = ""
    new_path: Annotated[str, Meta(description="Its new path.")] = ""
    why: Annotated[str, Meta(description="For delete: why it goes, in a sentence.")] = ""


def memory_tool(pages: Pages, clock: Callable[[], float] = time.time) -> Tool:
    """Make the tool for a store or branch. It waits while another process writes to the store."""
    commands = _Commands(pages, clock)

    async def run(given: MemoryInput, _tool_context: ToolContext) -> Outcome:
        command = partial(getattr(commands, given.command), given)
        try:
            said = await retry_while_busy(command)
        except (MemoryRefused, MemoryConflict, MemoryBusy, NoSuchMemory) as error:
            raise Refused(f"{error}.") from None
        return Outcome(content=said, note=said.partition("\n")[0])

    return make_tool(
        MEMORY, MemoryInput, run, kind="other", is_read_only=lambda given: given.command in READS
    )


class _Commands:
    def __init__(self, pages: Pages, clock: Callable[[], float]) -> None:
        self._pages = pages
        self._clock = clock

    def view(self, given: MemoryInput) -> str:
        name = _strip_root(given.path)
        below = self._below(name)
        if not name or (below and name not in below):
            return self._listing(name, below)
        lines = self._pages.read(name).splitlines()
        first, last = given.view_range or (1, -1)
        last = len(lines) if last == -1 else last
        if not 1 <= first <= max(1, last) or last > max(1, len(lines)):
            raise Refused(f"{given.path} has {len(lines)} lines; the range is outside.")
        numbered = [f"{n:6}\t{lines[n - 1]}" for n in range(first, min(last, len(lines)) + 1)]
        return "\n".join([f"{given.path} with line numbers:", *numbered])

    def search(self, given: MemoryInput) -> str:
        if not given.query.strip():
            raise Refused("search needs a query: a few words that the memory would contain.")
        found = self._pages.search(given.query, FOUND)
        lines = [f"{ROOT}/{file}: {description}" for file, description in found.items()]
        return "\n".join([f"{len(lines)} memories match, best first:", *lines])

    def create(self, given: MemoryInput) -> str:
        name = _file(given.path)
        if name in self._pages.versions():
            raise Refused(f"{given.path} exists already; change it with str_replace or insert.")
        return self._put(name, given.file_text, "created") or f"{given.path} was created."

    def str_replace(self, given: MemoryInput) -> str:
        name = _file(given.path)
        text = self._pages.read(name)
        count = text.count(given.old_str) if given.old_str else 0
        if count != 1:
            found = "is not" if not count else f"is {count} times"
            raise Refused(f"old_str {found} in {given.path}; it must be there exactly once.")
        changed = text.replace(given.old_str, given.new_str)
        return self._put(name, changed, "changed") or f"{given.path} was changed."

    def insert(self, given: MemoryInput) -> str:
        name = _file(given.path)
        lines = self._pages.read(name).splitlines(keepends=True)
        if not 0 <= given.insert_line <= len(lines):
            raise Refused(f"insert_line must be 0 to {len(lines)}, the lines of {given.path}.")
        ending = "" if given.insert_text.endswith("\n") else "\n"
        lines.insert(given.insert_line, f"{given.insert_text}{ending}")
        said = f"Text was inserted into {given.path} after line {given.insert_line}."
        return self._put(name, "".join(lines), "added to") or said

    def delete(self, given: MemoryInput) -> str:
        """Remove a file or all files of a directory. Tombstones remain."""
        name = _strip_root(given.path)
        doomed = self._below(name) if name else {}
        if not doomed:
            raise NoSuchMemory(f"there is nothing at {given.path}")
        reason = one_line(given.why) or NO_REASON
        removals = [
            MemoryChange(file=file, text=None, expected=version, reason=reason)
            for file, version in doomed.items()
        ]
        return self._pages.change(removals, why=f"{name} deleted") or f"{given.path} was deleted."

    def rename(self, given: MemoryInput) -> str:
        old, new = _strip_root(given.old_path), _strip_root(given.new_path)
        moved = self._below(old) if old else {}
        if not moved:
            raise NoSuchMemory(f"there is nothing at {given.old_path}")
        known = self._pages.versions()
        targets = [check_memory_name(f"{new}{file[len(old) :]}") for file in moved]
        if taken := [to for to in targets if to in known]:
            raise Refused(f"{ROOT}/{taken[0]} exists already; choose another name.")
        changes = [
            MemoryChange(file=file, text=None, expected=version, reason=f"renamed to {to}")
            for to, (file, version) in zip(targets, moved.items(), strict=True)
        ]
        changes += [
            MemoryChange(file=to, text=self._pages.read(file), expected="")
            for to, file in zip(targets, moved, strict=True)
        ]
        said = f"{given.old_path} is now {given.new_path}."
        return self._pages.change(changes, why=f"{old} renamed to {new}") or said

    def _put(self, name: str, text: str, how: str) -> str:
        now = self._clock()
        memory = parse(name, text, at=now)
        dated = replace(memory, modified=now, created=memory.created or now)
        version = self._pages.versions().get(name, "")
        change = MemoryChange(file=name, text=dated.text, expected=version)
        return self._pages.change([change], why=f"{name} {how}")

    def _below(self, name: str) -> dict[str, str]:
        return {
            file: version
            for file, version in self._pages.versions().items()
            if not name or file == name or file.startswith(f"{name}/")
        }

    def _listing(self, name: str, files: Collection[str]) -> str:
        sizes = [f"{len(self._pages.read(file).encode()):>7}  {ROOT}/{file}" for file in files]
        where = f"{ROOT}/{name}" if name else ROOT
        return "\n".join([f"{where} holds {len(files)} files (bytes, path):", *sizes])


def _strip_root(path: str) -> str:
    if path.rstrip("/") == ROOT:
        return ""
    if not path.startswith(f"{ROOT}/") or ".." in path.split("/"):
        raise Refused(f"{path!r} is not below {ROOT}; memory paths begin with {ROOT}/.")
    return path.removeprefix(f"{ROOT}/").rstrip("/")


def _file(path: str) -> str:
    return check_memory_name(_strip_root(path))


def usable_tools(tools: Iterable[JsonObject], *, can_look: bool = True) -> str:
    """Describe the tools that a memory fork may use, or return '' without the memory tool."""
    there = {str(tool.get("name")) for tool in tools}
    if MEMORY not in there:
        return ""
    there = there if can_look else {MEMORY}
    readers = ", ".join(name for name in READERS if name in there)
    looks = [readers] if readers else []
    looks += ["commands that only read"] if SHELL in there else []
    looking = f"; to look at other things, {' and '.join(looks)}" if looks else ""
    return f"You have the `{MEMORY}` tool for `{ROOT}`{looking}. Everything else is refused."


def permit_memories(judge: Permit) -> Permit:
    """Make the permit of a memory fork, which may read and use the memory tool.

    `judge` decides which reads the session allows. A shell command must provably change nothing,
    before and after hooks edit it. Every other tool is denied, even if its server declares it
    harmless.
    """

    async def permit(use: ToolUse, tool: Tool) -> Allowed | Denied:
        if use.name != tool.name or not _is_usable(tool):
            return Denied(reason=REFUSAL)
        if tool.name == MEMORY:
            return Allowed(input=use.input)
        if not _is_harmless(tool, use.input):
            return Denied(reason=WRITES)
        verdict = await judge(use, tool)
        if isinstance(verdict, Denied):
            return Denied(reason=verdict.reason)  # does not end the fork
        if not _is_harmless(tool, verdict.input):  # a hook may have changed the input
            return Denied(reason=WRITES)
        return verdict

    return permit


def _is_usable(tool: Tool) -> bool:
    if tool.name == SHELL:
        return tool.kind == "shell" and tool.command_input == "command"
    return tool.name == MEMORY or READERS.get(tool.name) == tool.kind


def _is_harmless(tool: Tool, given: JsonObject) -> bool:
    """Return whether a shell call provably changes nothing and ends before the fork does."""
    if tool.name != SHELL:
        return True
    is_awaited = given.get("run_in_background") in (None, False)
    is_command = isinstance(given.get("command"), str)
    return is_awaited and is_command and tool.is_read_only(given)


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCall:
    name: str
    is_change: bool
    is_by_file: bool = False
    """The agent used a file tool instead of the memory tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlace:
    store: Path
    root: Path

    def name_of(self, path: str) -> str:
        place = os.path.normpath(self.root / Path(path).expanduser())
        for store in (self.store, self.store.resolve()):
            if Path(place).is_relative_to(store) and place.endswith(".md"):
                return Path(place).relative_to(store).as_posix()
        return ""


def memory_call(use: ToolUse, place: MemoryPlace | None = None) -> MemoryCall | None:
    if use.name == MEMORY:
        path = use.input.get("path") or use.input.get("new_path")
        name = path.removeprefix(f"{ROOT}/") if isinstance(path, str) else ""
        is_change = use.input.get("command") not in READS
        return MemoryCall(name=name, is_change=is_change) if name else None
    known = description_of(use.name)
    if place is None or known.kind not in ("read", "write"):
        return None
    names = (place.name_of(path) for path in known.paths_in(use.input))
    name = next((name for name in names if name and name != INDEX), "")
    if not name:
        return None
    return MemoryCall(name=name, is_change=known.kind == "write", is_by_file=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The memories in the view, and the number of bytes that may still be shown."""

    names: frozenset[str] = frozenset()
    messages: frozenset[str] = frozenset()
    """Messages in the view, written as `session#message`."""
    room_bytes: int

    def covers(self, name: str, memory: Memory) -> bool:
        return name in self.names or (
            bool(memory.evidence) and self.messages.issuperset(memory.evidence)
        )


@dataclass(slots=True)
class ViewedMemories:
    place: MemoryPlace | None = None
    _position: LogCursor = field(default_factory=LogCursor)
    _recalled: list[Recalled] = field(default_factory=list)
    _calls: dict[str, MemoryCall] = field(default_factory=dict)
    _written: dict[str, float] = field(default_factory=dict)
    """Files that file tools wrote but that are not yet stored, with the time."""

    def follow(self, history: Sequence[AnyEntry]) -> Self:
        for entry in self._position.advance(history):
            match entry:
                case Recalled():
                    self._recalled.append(entry)
                case Replied(content=content):
                    uses = [block for block in content if isinstance(block, ToolUse)]
                    calls = {use.id: memory_call(use, self.place) for use in uses}
                    self._calls |= {id: call for id, call in calls.items() if call}
                case Ran(tool_use_id=id, is_error=is_error, at=at) if call := self._calls.get(id):
                    if is_error:
                        del self._calls[id]
                    elif call.is_change and call.is_by_file:
                        self._written[call.name] = at
                case _:
                    pass
        return self

    @property
    def has_written(self) -> bool:
        return bool(self._written)

    def hand_over(self, take: Callable[[Mapping[str, float]], T]) -> T:
        written, self._written = self._written, {}
        try:
            return take(written)
        except MemoryBusy:
            self._written = written
            raise

    def find_shown(self, view: View, session: str, most_bytes: int) -> Shown:
        """Return the memories that the view shows now."""
        recalled = [one for one in self._recalled if view.item_of(one.said) is not None]
        touched = [call.name for id, call in self._calls.items() if _is_visible(view, id)]
        names = {name for one in recalled for name in one.names} | set(touched)
        return Shown(
            names=frozenset(names),
            messages=frozenset(f"{session}#{item.id}" for item in view.items),
            room_bytes=most_bytes - sum(one.bytes for one in recalled),
        )


def _is_visible(view: View, tool_use_id: str) -> bool:
    found = view.round_of(tool_use_id)
    result = found.result_of(tool_use_id) if found else None
    return result is not None and result.placeholder("seen") is None
