"""How blocks are written in the records of other formats.

Fields a format does not know stay beside its own, or under `extra` where they would collide; a
block it has no shape for is wrapped whole. Reading undoes both. Pictures and files are data URLs.
"""

import re
from collections.abc import Callable, Iterable

from longhold.core.messages import (
    CLIENT_MARKS,
    Block,
    Content,
    Json,
    JsonObject,
    ToolResult,
    block_from_wire,
    block_to_wire,
)
from longhold.session.importing.records import decode_record
from longhold.session.importing.writer import ImportAccount

EXTRA = "extra"
"""Where fields go whose names the format uses for something else."""

WRAPPED = "block"
"""The type of a part that is one of our blocks, whole, because the format has no shape for it."""

TEXT_FIELDS = frozenset({"type", "text"})
IMAGE_URL_FIELDS = frozenset({"type", "image_url"})

_DATA_URL = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)


def with_extra(fields: JsonObject, extra: JsonObject | None, known: frozenset[str]) -> JsonObject:
    """Put a block's unknown fields beside the known ones, under another name where they collide."""
    if not extra:
        return fields
    beside = {key: value for key, value in extra.items() if key not in known and key != EXTRA}
    under = {key: value for key, value in extra.items() if key in known or key == EXTRA}
    return fields | beside | ({EXTRA: under} if under else {})


def extra_of(record: JsonObject, known: frozenset[str]) -> JsonObject | None:
    """Collect the fields that a format does not know, wherever they were put."""
    left_out = known | CLIENT_MARKS
    under = record.get(EXTRA)
    beside = {key: value for key, value in record.items() if key not in left_out}
    if isinstance(under, dict):
        del beside[EXTRA]
        beside |= under
    return beside or None


def wrap(block: Block) -> JsonObject:
    return {"type": WRAPPED, "raw": block_to_wire(block)}


def unwrap(part: Json) -> Block:
    if isinstance(part, dict) and part.get("type") == WRAPPED and "raw" in part:
        part = part["raw"]
    return block_from_wire(part)


def content_of(raw: Json, block_of: Callable[[Json], Block] = block_from_wire) -> Content:
    if raw is None:
        return ()
    return tuple(block_of(part) for part in (raw if isinstance(raw, list) else [raw]))


def split_results(content: Iterable[Block]) -> tuple[list[ToolResult], list[Block]]:
    """Part results from the rest: every format writes them first, or as messages of their own."""
    blocks = list(content)
    results = [block for block in blocks if isinstance(block, ToolResult)]
    return results, [block for block in blocks if not isinstance(block, ToolResult)]


def data_url(source: JsonObject) -> str | None:
    """Return a picture's or a file's source as a URL, if one says all there is to it."""
    match source:
        case {"type": "base64", "media_type": str(kind), "data": str(data)} if len(source) == 3:
            url = f"data:{kind};base64,{data}"
            return url if source_of(url) == source else None
        case {"type": "url", "url": str(url)} if len(source) == 2:
            return url if source_of(url) == source else None
    return None


def source_of(url: str) -> JsonObject:
    data = _DATA_URL.fullmatch(url)
    if data is None:
        return {"type": "url", "url": url}
    return {"type": "base64", "media_type": data[1], "data": data[2]}


def arguments_of(text: str, account: ImportAccount) -> JsonObject:
    value = decode_record((text or "{}").encode(), account)
    if isinstance(value, dict):
        return value
    account.repaired["arguments that are not an object"] += 1
    return {"arguments": text}
