"""The tables of a page, stored by column to avoid repeated names and to compress well."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import accumulate
from typing import Any, TypeAlias

from longhold.core.messages.secrets import mask_secrets

SECRET_CHARS = 4_096  # characters read beyond a cut, so that a secret across the cut is recognised

_STEERING = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\\\)"
    "|[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
"""Terminal escape sequences, control characters, and characters that reorder text."""


def sanitise(text: str, chars: int) -> str:
    """Return the start of an untrusted text, with secrets masked and control characters removed."""
    head = text[: chars + SECRET_CHARS].replace("\r\n", "\n")
    return _STEERING.sub("", mask_secrets(head))[:chars].encode("utf-8", "replace").decode()


def fair_limit(sizes: Sequence[int], budget: int) -> int:
    """Return the length to which texts must be cut to fit the budget. Short texts stay whole."""
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
    text: str
    chars: int
    is_error: bool
    state: str
    """The final state for the model: `shown`, or the kind of change that removed it."""
    by: int
    """The entry that removed it from the view, or 0 while it is shown."""


def columns(row: type, rows: Sequence[Any]) -> Columns:
    return {one.name: [getattr(each, one.name) for each in rows] for one in fields(row)}


def length(table: Columns) -> int:
    return len(next(iter(table.values()), ()))


def changes(before: Tables, after: Tables) -> dict[str, dict[str, Any]]:
    """Return updates for the tables of an open page. Each keeps `from` rows and adds the rest."""
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
