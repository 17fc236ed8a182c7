"""Recover the tools' state from a log: files read or changed, skills used, and todos."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import msgspec

from longhold.core.log.cursor import LogCursor
from longhold.core.log.entries import AnyEntry, Compacted, Ran, Replied, Restored
from longhold.core.messages import Json, Text, ToolUse, text_of
from longhold.core.tools.context import FILE_BYTES, MAX_FILES, SeenFile, Todo, ToolContext, stamp_of
from longhold.core.tools.describe import description_of

SKILL_NAME, TODO_NAME = "Skill", "TodoWrite"
UNCHANGED = "is unchanged since you read it; these lines stand above."
"""A read returns this instead of lines that the model already has."""

_RESTORED = re.compile(r"\[Restored file (?P<path>.+), as it is on disk now")


def restored_head(path: Path) -> str:
    return f"[Restored file {path}, as it is on disk now"


def is_restored_file(text: str) -> bool:
    return _RESTORED.match(text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    path: str
    at: float
    n: int
    first: int = 1  # first line of the last read, which writes do not change
    limit: int = 0  # line limit of the last read, or 0 without a limit
    span: tuple[int, int] = (1, 0)  # the lines that all reads together cover, as (first, limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedSkill:
    name: str
    text: str
    tool_use_id: str


class ToolTrace:
    def __init__(self, history: Sequence[AnyEntry] = ()) -> None:
        self._cursor = LogCursor()
        self._open: dict[str, ToolUse] = {}
        self._files: dict[str, Touched] = {}
        self._skills: dict[str, UsedSkill] = {}
        self._todos: Json = ()
        self.follow(history)

    def follow(self, history: Sequence[AnyEntry]) -> Self:
        for entry in self._cursor.advance(history):
            if isinstance(entry, Replied):
                uses = (block for block in entry.content if isinstance(block, ToolUse))
                self._open |= {use.id: use for use in uses}
            elif isinstance(entry, Ran) and not entry.is_error and entry.tool_use_id in self._open:
                self._take(self._open.pop(entry.tool_use_id), entry)
        return self

    def files(self) -> list[Touched]:
        return list(reversed(self._files.values()))

    def skills(self) -> list[UsedSkill]:
        return list(reversed(self._skills.values()))

    def todos(self) -> tuple[Todo, ...]:
        try:
            return msgspec.convert(self._todos, tuple[Todo, ...])
        except msgspec.ValidationError:
            return ()

    def _take(self, use: ToolUse, ran: Ran) -> None:
        described, skill = description_of(use.name), use.input.get("skill")
        if described.kind in ("read", "write"):
            for path in described.paths_in(use.input):
                before = self._files.pop(path, None)
                is_read = described.kind == "read"
                self._files[path] = _build_touched(path, use, ran, before, is_read=is_read)
        if use.name == SKILL_NAME and isinstance(skill, str):
            self._skills.pop(skill, None)
            text = text_of(ran.content)
            self._skills[skill] = UsedSkill(name=skill, text=text, tool_use_id=use.id)
        elif use.name == TODO_NAME:
            self._todos = use.input.get("todos", ())


def _build_touched(
    path: str, use: ToolUse, ran: Ran, before: Touched | None, *, is_read: bool
) -> Touched:
    first, limit = (before.first, before.limit) if before else (1, 0)
    span = before.span if before else (1, 0)
    if is_read:
        first, limit = (
            _to_positive(use.input.get("offset")) or 1,
            _to_positive(use.input.get("limit")),
        )
        span = _join_spans(span, (first, limit)) if before else (first, limit)
    return Touched(path=path, at=ran.at, n=ran.n, first=first, limit=limit, span=span)


def _join_spans(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    first, has_end = min(one[0], other[0]), one[1] and other[1]
    return first, max(sum(one), sum(other)) - first if has_end else 0


def _to_positive(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def recall(tool_context: ToolContext, history: Sequence[AnyEntry], boundary: int = 0) -> None:
    """Give a new context the state that it would have in an uninterrupted session.

    `boundary` is the last compaction in force. Files read before it have left the model's view,
    unless they were restored after it.
    """
    trace = ToolTrace(history)
    tool_context.set_todos(trace.todos())
    since = [touched for touched in trace.files() if touched.n > boundary]
    known = {touched.path for touched in since}
    restored = (each for each in _find_restored(history, boundary) if each.path not in known)
    for touched in sorted((*since, *restored), key=lambda each: each.n)[-MAX_FILES:]:
        seen = _check_unchanged(tool_context.resolve(touched.path), touched.at)
        if seen is not None:
            tool_context.files.record(seen)


def last_boundary(history: Sequence[AnyEntry], dead: frozenset[int]) -> int:
    found = (entry.n for entry in reversed(history) if isinstance(entry, Compacted))
    return next((n for n in found if n not in dead), 0)


def _find_restored(history: Sequence[AnyEntry], boundary: int) -> Iterator[Touched]:
    for entry in history:
        if isinstance(entry, Restored) and entry.compaction == boundary:
            for block in entry.content:
                if isinstance(block, Text) and (found := _RESTORED.match(block.text)):
                    yield Touched(path=found["path"], at=entry.at, n=entry.n)


def _check_unchanged(path: Path, at: float) -> SeenFile | None:
    """Return a file as seen if it has not changed since `at`, by its ctime."""
    try:
        status = path.stat()
        if max(status.st_mtime, status.st_ctime) > at or not path.is_file():
            return None
        content = path.read_bytes() if status.st_size <= FILE_BYTES else None
    except OSError:
        return None
    return SeenFile(path=path, stamp=stamp_of(status, content))
