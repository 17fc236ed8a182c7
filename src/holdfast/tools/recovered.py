"""The tools' state, recovered from a log: files touched, skills used, the todo list.

For a session that continues in a new process or after a compaction; `recall` puts it into a
`ToolContext`. A file counts as known only if it has provably not changed since.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from holdfast.log.entries import AnyEntry, Compacted, Ran, Replied, Restored
from holdfast.messages import Text, ToolUse, text_of
from holdfast.tools.context import Todo, ToolContext
from holdfast.tools.describe import description_of
from holdfast.tools.files import HASHED_BYTES, MAX_FILES, SeenFile, stamp_of
from holdfast.tools.skills import SKILL
from holdfast.tools.todo import TODO_WRITE

_RESTORED = re.compile(r"\[Restored file (?P<path>.+), as it is on disk now")


def restored_head(path: Path) -> str:
    """Return how the first line of a restored file begins, so that it can be recognised."""
    return f"[Restored file {path}, as it is on disk now"


def is_restored_file(text: str) -> bool:
    return _RESTORED.match(text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    path: str
    """As the call named it."""
    at: float
    n: int
    first: int = 1
    """The line from which it was read last; a write says nothing about that."""
    limit: int = 0
    """How many lines were wanted then; zero for as many as there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedSkill:
    name: str
    text: str
    tool_use_id: str


def touched_files(history: Sequence[AnyEntry]) -> list[Touched]:
    """Return the files that tools read or wrote without an error, the newest first, each once."""
    found: dict[str, Touched] = {}
    for use, ran in _calls(history):
        described = description_of(use.name)
        if described.kind not in ("read", "write"):
            continue
        for path in described.paths_in(use.input):
            before = found.pop(path, None)
            found[path] = _touched(path, use, ran, before, is_read=described.kind == "read")
    return list(reversed(found.values()))


def _touched(
    path: str, use: ToolUse, ran: Ran, before: Touched | None, *, is_read: bool
) -> Touched:
    first, limit = (before.first, before.limit) if before else (1, 0)
    if is_read:
        first, limit = _whole(use.input.get("offset")) or 1, _whole(use.input.get("limit"))
    return Touched(path=path, at=ran.at, n=ran.n, first=first, limit=limit)


def _whole(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def used_skills(history: Sequence[AnyEntry]) -> list[UsedSkill]:
    """Return the skills that were used, the newest first, each once."""
    found: dict[str, UsedSkill] = {}
    for use, ran in _calls(history):
        name = use.input.get("skill")
        if use.name == SKILL.name and isinstance(name, str):
            found.pop(name, None)
            text = text_of(ran.content)
            found[name] = UsedSkill(name=name, text=text, tool_use_id=use.id)
    return list(reversed(found.values()))


def last_todos(history: Sequence[AnyEntry]) -> tuple[Todo, ...]:
    """Return the todo list as last written; empty if it cannot be read."""
    written = [use.input for use, _ in _calls(history) if use.name == TODO_WRITE.name]
    try:
        return msgspec.convert(written[-1].get("todos", ()), tuple[Todo, ...]) if written else ()
    except msgspec.ValidationError:
        return ()


def recall(tool_context: ToolContext, history: Sequence[AnyEntry], boundary: int = 0) -> None:
    """Put into a new context what an unbroken session would know.

    `boundary` is the last compaction in force: what was read before it is no longer in the
    model's view, except what was restored after it.
    """
    tool_context.set_todos(last_todos(history))
    since = [touched for touched in touched_files(history) if touched.n > boundary]
    known = {touched.path for touched in since}
    restored = (each for each in _restored(history, boundary) if each.path not in known)
    for touched in sorted((*since, *restored), key=lambda each: each.n)[-MAX_FILES:]:
        seen = _unchanged(tool_context.resolve(touched.path), touched.at)
        if seen is not None:
            tool_context.files.record(seen)


def last_boundary(history: Sequence[AnyEntry], dead: frozenset[int]) -> int:
    """Return the number of the last compaction in force, or 0."""
    found = (entry.n for entry in reversed(history) if isinstance(entry, Compacted))
    return next((n for n in found if n not in dead), 0)


def _restored(history: Sequence[AnyEntry], boundary: int) -> Iterator[Touched]:
    for entry in history:
        if isinstance(entry, Restored) and entry.compaction == boundary:
            for block in entry.content:
                if isinstance(block, Text) and (found := _RESTORED.match(block.text)):
                    yield Touched(path=found["path"], at=entry.at, n=entry.n)


def _unchanged(path: Path, at: float) -> SeenFile | None:
    """Take a file as seen if its ctime, which cannot be set by hand, says it has not changed."""
    try:
        status = path.stat()
        if max(status.st_mtime, status.st_ctime) > at or not path.is_file():
            return None
        content = path.read_bytes() if status.st_size <= HASHED_BYTES else None
    except OSError:
        return None
    return SeenFile(path=path, stamp=stamp_of(status, content))


def _calls(history: Sequence[AnyEntry]) -> Iterator[tuple[ToolUse, Ran]]:
    """Yield every call that had a result without an error, in order of the results."""
    uses: dict[str, ToolUse] = {}
    for entry in history:
        if isinstance(entry, Replied):
            uses |= {block.id: block for block in entry.content if isinstance(block, ToolUse)}
        elif isinstance(entry, Ran) and not entry.is_error and entry.tool_use_id in uses:
            yield uses[entry.tool_use_id], entry
