"""The blocks that user messages and answers may contain. Other blocks become text."""

from collections.abc import Collection, Iterable

import msgspec
from msgspec import structs

from longhold.core.log.entries import AnswerContent, Replied, SpokenContent
from longhold.core.messages import (
    Block,
    Document,
    Image,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    block_to_wire,
)
from longhold.core.messages.rules import is_malformed, resolve_block


def to_spoken(content: Iterable[Block]) -> SpokenContent:
    return tuple(map(_to_spoken_block, content))


def to_answer(content: Iterable[Block]) -> AnswerContent:
    return tuple(map(_to_answer_block, content))


def _to_spoken_block(block: Block) -> Text | Image | Document | Opaque:
    meant = resolve_block(block)
    if isinstance(meant, Text | Image | Document | Opaque) and not is_malformed(meant):
        return meant
    return _write_out(meant)


def _to_answer_block(block: Block) -> Text | Thinking | RedactedThinking | ToolUse | Opaque:
    meant = resolve_block(block)
    if isinstance(meant, Image | Document):
        return Opaque(raw=block_to_wire(meant))
    if isinstance(meant, ToolResult) or is_malformed(meant):
        return _write_out(meant)
    return meant


def _write_out(block: Block) -> Text:
    return Text(text=msgspec.json.encode(block_to_wire(block)).decode())


MOST_CHARS = 128  # provider ids have up to 64, and a longer id costs tokens in every request


def with_own_ids(entry: Replied, taken: Collection[str]) -> Replied:
    """Rename tool uses whose ids are empty, too long or already taken."""
    renamed: dict[str, str] = {}
    seen: set[str] = set()
    content = []
    for block in entry.content:
        if isinstance(block, ToolUse):
            if not block.id or len(block.id) > MOST_CHARS or block.id in taken or block.id in seen:
                own = _make_id(block.id, taken, seen)
                renamed[own] = block.id
                block = structs.replace(block, id=own)
            seen.add(block.id)
        content.append(block)
    if not renamed:
        return entry
    return structs.replace(entry, content=tuple(content), renamed=renamed)


def _make_id(id: str, taken: Collection[str], seen: set[str]) -> str:
    number = len(taken) + len(seen) + 1
    while (own := f"{id[: MOST_CHARS // 2] or 'call'}_{number}") in taken or own in seen:
        number += 1
    return own
