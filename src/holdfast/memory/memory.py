"""One memory: a Markdown file with a head that says what it is, where from and how sure.

A text comes in and leaves as a frozen value, and back. Reading is lenient: a file without a
head is a memory named for its file. What a memory rests on goes with it: `evidence` names
sessions and messages, `sources` the repository's files it speaks of with their hashes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Literal, TypeAlias, get_args

from holdfast.tools.front_matter import FieldValue, parse_memory, render_memory

MemoryKind: TypeAlias = Literal["user", "feedback", "project", "reference"]
KINDS: tuple[MemoryKind, ...] = get_args(MemoryKind)
DESCRIPTION_CHARS = 300
"""One line: longer ones are body."""

FIRST = datetime.min.replace(tzinfo=UTC).timestamp()
LAST = datetime.max.replace(microsecond=0, tzinfo=UTC).timestamp()
"""The years 1 to 9999: a file's own time may be any number, a date may not."""

_OWN = ("name", "description", "type", "created", "modified", "evidence", "sources")
_MARKS = ("superseded_by", "supersedes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One thing worth knowing in later sessions."""

    file: str
    """Its name in the store."""
    name: str
    description: str
    """One line; what recall and the index go by."""
    type: MemoryKind = "project"
    created: float = 0.0
    modified: float = 0.0
    evidence: tuple[str, ...] = ()
    """What it rests on, as `session#message`."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """The repository's files it speaks of, each with a hash of what was in it."""
    superseded_by: str = ""
    """The memory that contradicts or replaces this one."""
    supersedes: tuple[str, ...] = ()
    """The memories that this one contradicts or replaces."""
    body: str = ""
    more: Mapping[str, FieldValue] = field(default_factory=dict)
    """What else its head says."""

    @property
    def text(self) -> str:
        """The file's content."""
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
    """Read a memory; `at` stands for times it does not tell."""
    fields, body = parse_memory(text)
    name = _line(fields.get("name")) or PurePosixPath(file).stem
    modified = timestamp(_line(fields.get("modified"))) or at
    sources = fields.get("sources")
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
        sources=sources if isinstance(sources, dict) else {},
        superseded_by=_line(fields.get("superseded_by")),
        supersedes=_items(fields.get("supersedes")),
        body=body,
        more={key: value for key, value in fields.items() if key not in (*_OWN, *_MARKS)},
    )


def stamp(at: float) -> str:
    """Write a moment as a date and time, to the second."""
    timestamp = datetime.fromtimestamp(min(max(at, FIRST), LAST), UTC)
    return timestamp.replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def timestamp(text: str) -> float:
    """Read a date, with or without a time; 0 is none, or one no calendar of ours can write."""
    try:
        told = datetime.fromisoformat(text).replace(microsecond=0)
        return (told if told.tzinfo else told.replace(tzinfo=UTC)).astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _kind(told: str) -> MemoryKind:
    return next((kind for kind in KINDS if kind == told.lower()), "project")


def _line(value: FieldValue | None) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _items(value: FieldValue | None) -> tuple[str, ...]:
    if isinstance(value, str):
        value = value.split(",")
    return tuple(dict.fromkeys(item.strip() for item in value or () if item.strip()))


def _first_line(body: str) -> str:
    return next((line.strip("#* \t") for line in body.splitlines() if line.strip("#* \t")), "")
