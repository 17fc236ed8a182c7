"""Ids of tool uses that are unique in a log, whatever a provider sends.

Some servers call every tool use `call_0`. A use whose id is taken gets another before it is
written, so that log and request agree; its entry keeps the provider's id, by which a caller names
the result.
"""

from collections.abc import Collection

from msgspec import structs

from holdfast.log.entries import Replied
from holdfast.messages import ToolUse
from holdfast.view.items import Round

MOST_CHARS = 128
"""Providers' own ids have up to 64; a longer one would be in every request from there on."""


def with_own_ids(entry: Replied, taken: Collection[str]) -> Replied:
    """Rename the tool uses of an answer whose ids are empty, too long, or taken already."""
    renamed: dict[str, str] = {}
    seen: set[str] = set()
    content = []
    for block in entry.content:
        if isinstance(block, ToolUse):
            if not block.id or len(block.id) > MOST_CHARS or block.id in taken or block.id in seen:
                own = _another(block.id, taken, seen)
                renamed[own] = block.id
                block = structs.replace(block, id=own)
            seen.add(block.id)
        content.append(block)
    if not renamed:
        return entry
    return structs.replace(entry, content=tuple(content), renamed=renamed)


def meant_by(id: str, waiting: Round | None) -> str:
    """Return the tool use that a provider's id means: the first unanswered one of that name."""
    if waiting is None or not waiting.renamed:
        return id
    missing = [use.id for use in waiting.missing()]
    if id in missing:
        return id
    return next((own for own in missing if waiting.renamed.get(own) == id), id)


def _another(id: str, taken: Collection[str], seen: set[str]) -> str:
    number = len(taken) + len(seen) + 1
    while (own := f"{id[: MOST_CHARS // 2] or 'call'}_{number}") in taken or own in seen:
        number += 1
    return own
