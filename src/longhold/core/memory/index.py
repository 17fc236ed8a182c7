"""The index of the memories: one short line each, with limits because every session loads it.

The most used memories come first. Superseded and further memories are only searchable.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Self

from longhold.core.memory.memory import KINDS, Memory, MemoryKind
from longhold.core.messages.text import clean_text, escape_frames, one_line, shorten

TITLE_CHARS = 40

INDEX_LINES = 200
"""Limited because the index is in every session's prompt."""
INDEX_LINE_CHARS = 150
INDEX_BYTES = 25_000
"""About 6,000 tokens, 3 % of a 200K window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexLine:
    file: str
    name: str
    description: str
    type: MemoryKind
    modified: float
    uses: int = 0
    superseded_by: str = ""

    @classmethod
    def of(cls, memory: Memory) -> Self:
        return cls(
            file=memory.file,
            name=memory.name,
            description=memory.description,
            type=memory.type,
            modified=memory.modified,
            superseded_by=memory.superseded_by,
        )


def make_index(rows: Iterable[IndexLine]) -> str:
    """Write the index within the limits. A last line counts the memories that did not fit."""
    current = [one for one in rows if not one.superseded_by]
    current.sort(key=lambda one: (-one.uses, -one.modified, one.file))
    room = _count_fitting(current)
    kept = sorted(current[:room], key=lambda one: KINDS.index(one.type))
    lines = [index_line(one) for one in kept]
    if room < len(current):
        lines.append(_note_unlisted(len(current) - room))
    return "".join(f"{line}\n" for line in lines)


def index_line(one: IndexLine) -> str:
    title = shorten(_flatten(one.name), TITLE_CHARS)
    line = f"- [{title}]({one.file}): {_flatten(one.description)}"
    return line if len(line) < INDEX_LINE_CHARS else line[: INDEX_LINE_CHARS - 2].rstrip() + "…"


def _count_fitting(current: list[IndexLine]) -> int:
    sizes = [len(index_line(one).encode()) + 1 for one in current]
    if len(current) <= INDEX_LINES and sum(sizes) <= INDEX_BYTES:
        return len(current)
    left = INDEX_BYTES - len(_note_unlisted(len(current)).encode()) - 1
    return bisect_right(list(accumulate(sizes[: INDEX_LINES - 1])), left)


def _note_unlisted(count: int) -> str:
    return f"({count} more are not listed here; the memory tool's `search` finds them)"


def _flatten(text: str) -> str:
    return escape_frames(clean_text(one_line(text))).replace("[", " ").replace("]", " ")
