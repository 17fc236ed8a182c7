"""The `memory` tool: the six commands that models know and a search, and forks that use little else.

Paths begin with `/memories` and mean files of the store, never files on disk. The tool works on
any `Pages`: the store, where each change is a commit, or a branch that is merged later.
"""

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import partial
from typing import Annotated, Literal

from msgspec import Meta

from holdfast.memory.branch import Pages
from holdfast.memory.commits import MemoryChange
from holdfast.memory.errors import MemoryBusy, MemoryConflict, MemoryRefused, NoSuchMemory
from holdfast.memory.memory import parse
from holdfast.memory.paths import checked_name
from holdfast.memory.waiting import when_free
from holdfast.messages import JsonObject, ToolUse
from holdfast.settings import MemorySettings
from holdfast.tools.context import ToolContext
from holdfast.tools.permissions import is_read_only_command
from holdfast.tools.protocol import Input, Outcome, Refused, Tool, make_tool
from holdfast.turn.fork import Permit
from holdfast.turn.round import Allowed, Denied

MEMORY = "memory"
ROOT = "/memories"
FOUND = 10
"""Files that a search lists; one page of descriptions to choose from."""
READS = frozenset({"view", "search"})
"""Commands that change nothing."""
NO_REASON = "deleted without a reason"

READERS = {"Read": "read", "Grep": "search", "Glob": "search"}
"""The tools that read, each with the kind it must have."""
SHELL = "Bash"
REFUSAL = (
    "Not possible here. You may look at files and sessions, and change memories with the memory"
    " tool; nothing else."
)
WRITES = "Not possible here: this command is not known to change nothing. Use a simpler one."


class MemoryInput(Input, frozen=True, kw_only=True):
    """Input of the memory tool; which fields apply depends on the command."""

    command: Literal["view", "search", "create", "str_replace", "insert", "delete", "rename"]
    path: Annotated[str, Meta(description="Of a file or directory, from /memories on.")] = ""
    view_range: Annotated[
        tuple[int, int] | None, Meta(description="First and last line to view; -1 is the end.")
    ] = None
    query: Annotated[str, Meta(description="The words that search looks for.")] = ""
    file_text: Annotated[str, Meta(description="What create writes.")] = ""
    old_str: Annotated[str, Meta(description="What str_replace looks for.")] = ""
    new_str: Annotated[str, Meta(description="What stands there afterwards.")] = ""
    insert_line: Annotated[
        int, Meta(description="The line after which to insert; 0 is the top.")
    ] = 0
    insert_text: Annotated[str, Meta(description="What to insert.")] = ""
    old_path: Annotated[str, Meta(description="What to rename.")] = ""
    new_path: Annotated[str, Meta(description="Its new path.")] = ""
    why: Annotated[str, Meta(description="For delete: why it goes, in a sentence.")] = ""


def memory_tool(
    pages: Pages,
    clock: Callable[[], float] = time.time,
    *,
    busy_seconds: float = MemorySettings().busy_seconds,
) -> Tool:
    """Make the tool over pages; a store that another process writes is waited for."""
    commands = _Commands(pages, clock)

    async def run(given: MemoryInput, _tool_context: ToolContext) -> Outcome:
        command = partial(getattr(commands, given.command), given)
        try:
            said = await when_free(command, busy_seconds)
        except (MemoryRefused, MemoryConflict, MemoryBusy, NoSuchMemory) as error:
            raise Refused(f"{error}.") from None
        return Outcome(content=said, note=said.partition("\n")[0])

    return make_tool(
        MEMORY,
        MemoryInput,
        run,
        kind="other",
        is_read_only=lambda given: given.command in READS,
    )


class _Commands:
    """One method per command; each returns what the model reads."""

    def __init__(self, pages: Pages, clock: Callable[[], float]) -> None:
        self._pages = pages
        self._clock = clock

    def view(self, given: MemoryInput) -> str:
        name = _below(given.path)
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
            raise Refused(f"old_str {found} in {given.path}; it must be there once, as it stands.")
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
        """Remove a file or all files of a directory; tombstones remain."""
        name = _below(given.path)
        doomed = self._below(name) if name else {}
        if not doomed:
            raise NoSuchMemory(f"there is nothing at {given.path}")
        reason = " ".join(given.why.split()) or NO_REASON
        removals = [
            MemoryChange(file=file, text=None, expected=version, reason=reason)
            for file, version in doomed.items()
        ]
        return self._pages.change(removals, why=f"{name} deleted") or f"{given.path} was deleted."

    def rename(self, given: MemoryInput) -> str:
        """Rename a file or the files of a directory."""
        old, new = _below(given.old_path), _below(given.new_path)
        moved = self._below(old) if old else {}
        if not moved:
            raise NoSuchMemory(f"there is nothing at {given.old_path}")
        known = self._pages.versions()
        targets = [checked_name(f"{new}{file[len(old) :]}") for file in moved]
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
        """Write a file with its times updated."""
        now = self._clock()
        memory = parse(name, text, at=now)
        dated = replace(memory, modified=now, created=memory.created or now)
        version = self._pages.versions().get(name, "")
        change = MemoryChange(file=name, text=dated.text, expected=version)
        return self._pages.change([change], why=f"{name} {how}")

    def _below(self, name: str) -> dict[str, str]:
        """Return the versions of the file, or of the files in the directory, of this name."""
        return {
            file: version
            for file, version in self._pages.versions().items()
            if not name or file == name or file.startswith(f"{name}/")
        }

    def _listing(self, name: str, files: Collection[str]) -> str:
        sizes = [f"{len(self._pages.read(file).encode()):>7}  {ROOT}/{file}" for file in files]
        where = f"{ROOT}/{name}" if name else ROOT
        return "\n".join([f"{where} holds {len(files)} files (bytes, path):", *sizes])


def _below(path: str) -> str:
    """Return a path's name within the store; '' is the root."""
    if path.rstrip("/") == ROOT:
        return ""
    if not path.startswith(f"{ROOT}/") or ".." in path.split("/"):
        raise Refused(f"{path!r} is not below {ROOT}; memory paths begin with {ROOT}/.")
    return path.removeprefix(f"{ROOT}/").rstrip("/")


def _file(path: str) -> str:
    return checked_name(_below(path))


def usable_tools(tools: Iterable[JsonObject], *, can_look: bool = True) -> str:
    """Name what a fork that works on memories may use of the tools its prompt lists; '' if nothing.

    Without the memory tool such a fork could do nothing; without `can_look` it has no other.
    """
    there = {str(tool.get("name")) for tool in tools}
    if MEMORY not in there:
        return ""
    there = there if can_look else {MEMORY}
    readers = ", ".join(name for name in READERS if name in there)
    looks = [readers] if readers else []
    looks += ["commands that only read"] if SHELL in there else []
    looking = f"; to look at other things, {' and '.join(looks)}" if looks else ""
    return f"You have the `{MEMORY}` tool for `{ROOT}`{looking}. Everything else is refused."


def memories_only(judge: Permit) -> Permit:
    """Make the permit of a fork that works on memories: it may read, and use the memory tool.

    `judge` decides which reads the session itself allows. A shell command must provably change
    nothing, before and after hooks. Everything else is denied by name, whatever a server claims.
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
            return Denied(reason=verdict.reason)  # without ending the fork
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
    command = given.get("command")
    is_awaited = given.get("run_in_background") in (None, False)
    return is_awaited and isinstance(command, str) and is_read_only_command(command)
