"""Which memory a tool call reads or changes: through the memory tool, or by the path of its file.

The log is followed entry by entry. What the agent wrote with file tools is handed over once, so
that it can be kept in the agent's name; what it has before it need not be recalled.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypeVar

from holdfast.log.cursor import LogCursor
from holdfast.log.entries import AnyEntry, Ran, Recalled, Replied
from holdfast.memory.errors import MemoryBusy
from holdfast.memory.memory import Memory
from holdfast.memory.paths import INDEX
from holdfast.memory.tool import MEMORY, READS, ROOT
from holdfast.messages import ToolUse
from holdfast.tools.describe import description_of
from holdfast.view import View

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCall:
    name: str
    """The memory's file within the store."""
    is_change: bool
    is_by_file: bool = False
    """A file tool did it, without the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlace:
    """Where the memories lie, and from where relative paths lead."""

    store: Path
    root: Path

    def name_of(self, path: str) -> str:
        """Return the memory that a path names; '' if it names none."""
        place = os.path.normpath(self.root / Path(path).expanduser())
        for store in (self.store, self.store.resolve()):
            if Path(place).is_relative_to(store) and place.endswith(".md"):
                return Path(place).relative_to(store).as_posix()
        return ""


def memory_call(use: ToolUse, place: MemoryPlace | None = None) -> MemoryCall | None:
    """Return what a call does with a memory; None if it names none."""
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
    """What of the memories the model has before it, and how much more may be shown."""

    names: frozenset[str] = frozenset()
    messages: frozenset[str] = frozenset()
    """The evidence of memories that is itself in the view."""
    room_bytes: int

    def covers(self, name: str, memory: Memory) -> bool:
        """Return whether the view already says what a memory says."""
        return name in self.names or (
            bool(memory.evidence) and self.messages.issuperset(memory.evidence)
        )


@dataclass(slots=True)
class ViewedMemories:
    """Follows a log and knows which memories its view shows."""

    place: MemoryPlace | None = None
    _position: LogCursor = field(default_factory=LogCursor)
    _recalled: list[Recalled] = field(default_factory=list)
    _calls: dict[str, MemoryCall] = field(default_factory=dict)
    """By tool use, from the call on."""
    _written: dict[str, float] = field(default_factory=dict)
    """Files written by file tools and not handed over yet, with when."""

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
        """Whether there are files to hand over."""
        return bool(self._written)

    def hand_over(self, take: Callable[[Mapping[str, float]], T]) -> T:
        """Hand over the files that file tools wrote since the last time; a busy store gets them later."""
        written, self._written = self._written, {}
        try:
            return take(written)
        except MemoryBusy:
            self._written = written
            raise

    def shown_in(self, view: View, session: str, most_bytes: int) -> Shown:
        """Return what the view shows of memories by now; what left it does not count."""
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
