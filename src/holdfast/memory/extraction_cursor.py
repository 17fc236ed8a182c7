"""Follows a log and knows which messages were not yet searched for memories.

Each entry is looked at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from holdfast.log.cursor import LogCursor
from holdfast.log.entries import AnyEntry, Ran, Remembered, Replied, Said
from holdfast.messages import ToolUse

MEMORY = "memory"
ROOT = "/memories/"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessages:
    """The part of a conversation after the cursor."""

    cursor: int
    """Its last message: where the cursor moves when this is done."""
    messages: int
    asked: int
    """The last message of the user in it."""
    own: tuple[str, ...] = ()


@dataclass(slots=True)
class ExtractionCursor:
    cursor: int = 0
    _position: LogCursor = field(default_factory=LogCursor)
    _messages: list[int] = field(default_factory=list)
    _asked: list[int] = field(default_factory=list)
    _own: list[tuple[int, str]] = field(default_factory=list)
    _open: dict[str, str] = field(default_factory=dict)
    """Calls that change a memory, by id, with the memory's name."""

    def follow(self, history: Sequence[AnyEntry]) -> Self:
        for entry in self._position.advance(history):
            self._take(entry)
        return self

    def pass_over(self, cursor: int) -> None:
        """Treat everything up to a message as extracted."""
        self.cursor = max(self.cursor, cursor)
        self._messages = [n for n in self._messages if n > self.cursor]
        self._asked = [n for n in self._asked if n > self.cursor]
        self._own = [(n, name) for n, name in self._own if n > self.cursor]

    @property
    def last(self) -> int:
        """The last message after the cursor; the cursor itself if there is none."""
        return self._messages[-1] if self._messages else self.cursor

    def new_messages(self, upto: int) -> NewMessages | None:
        """Return what follows the cursor up to a message; None if the user said nothing there."""
        asked = [n for n in self._asked if n <= upto]
        if not asked:
            return None
        return NewMessages(
            cursor=upto,
            messages=sum(n <= upto for n in self._messages),
            asked=asked[-1],
            own=tuple(dict.fromkeys(name for n, name in self._own if n <= upto)),
        )

    def _take(self, entry: AnyEntry) -> None:
        match entry:
            case Remembered(cursor=cursor):
                self.pass_over(cursor)
            case Said(n=n, hidden=hidden) if n > self.cursor:
                self._messages.append(n)
                if not hidden:
                    self._asked.append(n)
            case Replied(n=n, content=content) if n > self.cursor:
                self._messages.append(n)
                uses = (block for block in content if isinstance(block, ToolUse))
                self._open |= {use.id: name for use in uses if (name := _changed(use))}
            case Ran(n=n, tool_use_id=id, is_error=is_error) if name := self._open.pop(id, ""):
                if not is_error:
                    self._own.append((n, name))
            case _:
                pass


def _changed(use: ToolUse) -> str:
    """Return the memory that a call changes; '' if it changes none."""
    if use.name != MEMORY or use.input.get("command") == "view":
        return ""
    path = use.input.get("path") or use.input.get("new_path")
    return path.removeprefix(ROOT) if isinstance(path, str) else ""
