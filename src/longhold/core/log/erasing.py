"""Erase a person's data: the parts common to all stores.

Erasing covers logs and everything derived from them. Index files are deleted and later rebuilt,
because a database file may still contain deleted rows.
"""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from longhold.core.settings import home

if TYPE_CHECKING:
    from longhold.core.log.store import Store

TOMBSTONE = b"[redacted]"
INDEXES = ("sessions.sqlite*", "history.sqlite*")


def with_branches(store: "Store", ids: Iterable[str]) -> list[str]:
    """List these sessions and their branches, which contain copies of their messages."""
    found = [store.find(id).id for id in ids]
    parents = {one.id: one.header.parent for one in store.sessions()}
    while more := [id for id, parent in parents.items() if parent in found and id not in found]:
        found += more
    return list(dict.fromkeys(found))


def remove_indexes(root: Path | None = None) -> None:
    for place in {root or home(), home()}:
        for path in (path for name in INDEXES for path in place.glob(name)):
            path.unlink(missing_ok=True)


def redact(data: bytes, text: str) -> bytes:
    """Replace a text with a tombstone, in plain text and in JSON nested up to three levels deep."""
    forms = {text}
    for _ in range(4):
        for form in forms:
            data = data.replace(form.encode(), TOMBSTONE)
        forms = {written for form in forms for written in _write_json(form)}
    return data


def _write_json(text: str) -> Iterator[str]:
    """Yield the different encodings of a text in JSON."""
    ascii_only = json.dumps(text)[1:-1]
    yield ascii_only
    yield re.sub(r"(?<=\\u)[0-9a-f]{4}", lambda digits: digits[0].upper(), ascii_only)
    yield json.dumps(text, ensure_ascii=False)[1:-1]
