"""The tables of a page: rows of one kind become columns, which repeat no name and pack well."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import accumulate
from typing import Any, TypeAlias

from longhold.core.messages.secrets import mask_secrets

SECRET_CHARS = 4_096
"""Read past a cut, so that a secret which the cut would halve is recognised whole."""

_STEERING = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\\\)"
    "|[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
"""Colours and titles of a terminal; control characters, and those that reorder what is read."""


def sanitise(text: str, chars: int) -> str:
    """Return the beginning of a foreign text as a page may show it."""
    head = text[: chars + SECRET_CHARS].replace("\r\n", "\n")
    return _STEERING.sub("", mask_secrets(head))[:chars].encode("utf-8", "replace").decode()


def fair_limit(sizes: Sequence[int], budget: int) -> int:
    """Return the length to cut every text to so that all fit a budget; short ones stay whole."""
    ordered = sorted(sizes)
    for i, (size, total) in enumerate(zip(ordered, accumulate(ordered), strict=True)):
        rest = len(ordered) - i - 1
        if total + rest * size > budget:
            return max(0, budget - (total - size)) // (rest + 1)
    return ordered[-1] if ordered else 0


Columns: TypeAlias = dict[str, list[Any]]
Tables: TypeAlias = Mapping[str, Columns]


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRow:
    n: int
    at: float
    kind: str
    tool: str
    about: str
    """What a call was about: a path or a command."""
    text: str
    chars: int
    """Of the whole text; more than is here if it was cut."""
    is_error: bool
    state: str
    """What the model sees of it at the end: `shown`, or what became of it."""
    by: int
    """The entry that took it out of the view; 0 while it is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRow:
    n: int
    at: float
    said: str
    answers: int
    tool_calls: int
    errors: int
    usd: float
    before: int
    after: int
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRow:
    """What changed what the model sees, or went wrong."""

    n: int
    at: float
    kind: str
    text: str
    saved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionRow:
    n: int
    at: float
    by: str
    trigger: str
    first: int
    last: int
    kept: tuple[int, int] | None
    before: int
    after: int
    replaced: int
    """Messages that the summary stands for."""
    summary: str
    chars: int
    names: int
    """Exact names in what was said and asked of tools last."""
    lost: tuple[tuple[str, str], ...]
    """Those the model sees nowhere afterwards, each with its kind."""
    words: tuple[tuple[int, bool], ...]
    """The user's messages that were replaced, and whether the model still reads them verbatim."""
    is_undone: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRow:
    n: int
    at: float
    id: str
    kind: str
    task: str
    state: str
    seconds: float
    calls: int
    usd: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRow:
    n: int
    at: float
    kind: str
    text: str


def columns(row: type, rows: Sequence[Any]) -> Columns:
    return {one.name: [getattr(each, one.name) for each in rows] for one in fields(row)}


def length(table: Columns) -> int:
    return len(next(iter(table.values()), ()))


def changes(before: Tables, after: Tables) -> dict[str, dict[str, Any]]:
    """Return what to do to each table of a page that is shown: keep `from` rows, add the rest."""
    found = {}
    for name, table in after.items():
        old = before.get(name, {})
        start = _count_common(old, table)
        if start < max(length(table), length(old)):
            fresh = {field: values[start:] for field, values in table.items()}
            found[name] = {"from": start, "rows": fresh}
    return found


def _count_common(one: Columns, other: Columns) -> int:
    most = min(length(one), length(other))
    for field, values in other.items():
        known = one.get(field, [])
        if known[:most] != values[:most]:
            most = next(i for i in range(most) if i >= len(known) or known[i] != values[i])
    return most
