"""Erase a person's data: the parts common to all stores.

This erases logs and everything derived from them. Indexes over all sessions are deleted as files,
because a database keeps deleted rows, and rebuilt when needed.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from longhold.core.settings import home

if TYPE_CHECKING:
    from longhold.core.log.store import Store

TOMBSTONE = "[redacted]"
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
    """Replace a text with a tombstone: as plain text, in JSON, and in JSON within JSON."""
    plain = text
    for _ in range(3):
        data = data.replace(plain.encode(), TOMBSTONE.encode())
        plain = msgspec.json.encode(plain).decode()[1:-1]
    return data
