"""One memory: a Markdown file with front matter. The index has a short line for each memory.

Parsing is lenient: a memory without front matter is named after its file. `evidence` lists sessions
and messages. `sources` lists mentioned repository files, with hashes. The index lists the most used
memories first. Superseded memories, and those that do not fit, can only be searched.
"""

import asyncio
import re
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import accumulate, islice
from pathlib import PurePosixPath
from typing import Literal, TypeAlias, TypeVar, get_args

from longhold.core.messages.text import clean_text, escape_frames, one_line, shorten
from longhold.core.settings.front_matter import FieldValue, parse_memory, render_memory
from longhold.errors import LongholdError, StoreError

T = TypeVar("T")


class MemoryRefused(LongholdError, ValueError):
    """A name or text may not be stored."""

    exit_code = 2


class NoSuchMemory(LongholdError, LookupError):
    """There is no such memory or commit."""

    exit_code = 5


class MemoryBusy(StoreError):
    """Another process is writing the store. Nothing was changed, and a retry may help."""


class MemoryConflict(StoreError):
    """The memory changed since this writer read it."""


MemoryKind: TypeAlias = Literal["user", "feedback", "project", "reference"]
KINDS: tuple[MemoryKind, ...] = get_args(MemoryKind)
DESCRIPTION_CHARS = 300

FIRST = datetime.min.replace(tzinfo=UTC).timestamp()
LAST = datetime.max.replace(microsecond=0, tzinfo=UTC).timestamp()
"""The limit for times is the year 9999, because a file's mtime may be any number."""

_FIELDS = "name description type created modified evidence sources superseded_by supersedes"


SOURCES = 8
"""A memory that names more files is about the project rather than about these files."""
FILE = re.compile(r"(?<![\w./~@+-])[\w@+-][\w.@+-]*(?:/[\w.@+-]+)*\.\w{1,8}\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    file: str
    name: str
    description: str
    """One line, used by recall and the index."""
    type: MemoryKind = "project"
    created: float = 0.0
    modified: float = 0.0
    evidence: tuple[str, ...] = ()
    """The messages from which the memory comes, as `session#message`."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Maps the mentioned repository files to hashes of their content."""
    superseded_by: str = ""
    """The memory that contradicts or replaces this memory."""
    supersedes: tuple[str, ...] = ()
    body: str = ""
    more: Mapping[str, FieldValue] = field(default_factory=dict)
    uses: int = 0
    """How often the memory was recalled, if the caller asked the store for counts."""

    @property
    def text(self) -> str:
        fields: dict[str, FieldValue] = {
            "name": self.name,
            "description": self.description,
            "type": self.type,
            "created": stamp(self.created) if self.created else "",
            "modified": stamp(self.modified) if self.modified else "",
            "evidence": list(self.evidence),
            "sources": dict(self.sources),
            "superseded_by": self.superseded_by,
            "supersedes": list(self.supersedes),
        }
        return render_memory(fields | dict(self.more), self.body)


def parse(file: str, text: str, *, at: float = 0.0) -> Memory:
    """Parse a memory. `at` replaces missing times."""
    fields, body = parse_memory(text)
    name = _line(fields.get("name")) or PurePosixPath(file).stem
    modified = timestamp(_line(fields.get("modified"))) or at
    return Memory(
        file=file,
        name=name,
        description=(_line(fields.get("description")) or _first_line(body) or name)[
            :DESCRIPTION_CHARS
        ],
        type=_kind(_line(fields.get("type"))),
        created=timestamp(_line(fields.get("created"))) or modified,
        modified=modified,
        evidence=_items(fields.get("evidence")),
        sources=_sources(fields.get("sources")),
        superseded_by=_line(fields.get("superseded_by")),
        supersedes=_items(fields.get("supersedes")),
        body=body,
        more={key: value for key, value in fields.items() if key not in _FIELDS.split()},
    )


def stamp(at: float) -> str:
    moment = datetime.fromtimestamp(min(max(at, FIRST), LAST), UTC)
    return moment.replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def timestamp(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text).replace(microsecond=0)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _kind(text: str) -> MemoryKind:
    return next((kind for kind in KINDS if kind == text.lower()), "project")


def _line(value: FieldValue | None) -> str:
    return one_line(value) if isinstance(value, str) else ""


def _sources(value: FieldValue | None) -> dict[str, str]:
    """Return the named files, limited in number, because an untrusted memory can name anything."""
    named = value.items() if isinstance(value, dict) else ()
    return dict(islice(((path, then) for path, then in named if FILE.fullmatch(path)), SOURCES))


def _items(value: FieldValue | None) -> tuple[str, ...]:
    if isinstance(value, str):
        value = value.split(",")
    return tuple(dict.fromkeys(item.strip() for item in value or () if item.strip()))


def _first_line(body: str) -> str:
    return next((line.strip("#* \t") for line in body.splitlines() if line.strip("#* \t")), "")


LOOP_SECONDS = 0.05
"""Pause between attempts in seconds, about as long as a quick commit."""
BUSY_SECONDS = 5.0
"""A commit takes milliseconds, so a longer wait means that something is stuck."""


async def retry_while_busy(work: Callable[[], T]) -> T:
    """Retry `work` while the store is busy. A failed attempt must leave no trace."""
    end = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return work()
        except MemoryBusy:
            if time.monotonic() >= end:
                raise
        await asyncio.sleep(LOOP_SECONDS)


TITLE_CHARS = 40

INDEX_LINES = 200
"""Limit for the lines, because the index is in every session's prompt."""
INDEX_LINE_CHARS = 150
INDEX_BYTES = 25_000
"""Limit for the size, about 6,000 tokens or 3 % of a 200K window."""


def make_index(rows: Iterable[Memory]) -> str:
    """Write the index within the limits. A last line counts the memories that did not fit."""
    current = [one for one in rows if not one.superseded_by]
    current.sort(key=lambda one: (-one.uses, -one.modified, one.file))
    room = _count_fitting(current)
    kept = sorted(current[:room], key=lambda one: KINDS.index(one.type))
    lines = [index_line(one) for one in kept]
    if room < len(current):
        lines.append(_note_unlisted(len(current) - room))
    return "".join(f"{line}\n" for line in lines)


def index_line(one: Memory) -> str:
    title = shorten(_flatten(one.name), TITLE_CHARS)
    line = f"- [{title}]({one.file}): {_flatten(one.description)}"
    return line if len(line) < INDEX_LINE_CHARS else line[: INDEX_LINE_CHARS - 2].rstrip() + "…"


def _count_fitting(current: list[Memory]) -> int:
    sizes = [len(index_line(one).encode()) + 1 for one in current]
    if len(current) <= INDEX_LINES and sum(sizes) <= INDEX_BYTES:
        return len(current)
    left = INDEX_BYTES - len(_note_unlisted(len(current)).encode()) - 1
    return bisect_right(list(accumulate(sizes[: INDEX_LINES - 1])), left)


def _note_unlisted(count: int) -> str:
    return f"({count} more are not listed here; the memory tool's `search` finds them)"


def _flatten(text: str) -> str:
    return escape_frames(clean_text(one_line(text))).replace("[", " ").replace("]", " ")
