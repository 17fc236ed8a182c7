"""Which blocks may stand on the user's side of a conversation, and which on the model's.

A block that an API would refuse where it stands is written as text, so that it is not lost.
"""

from collections.abc import Iterable

import msgspec

from holdfast.log.entries import AnswerContent, SpokenContent
from holdfast.messages import (
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
from holdfast.messages.rules import is_malformed, typed_block


def speakable(content: Iterable[Block]) -> SpokenContent:
    """Return content for the user's side; what an API would refuse there becomes text."""
    return tuple(map(_speakable, content))


def answerable(content: Iterable[Block]) -> AnswerContent:
    """Return content for the model's side; what an API would refuse there becomes text."""
    return tuple(map(_answerable, content))


def _speakable(block: Block) -> Text | Image | Document | Opaque:
    meant = typed_block(block)
    if isinstance(meant, Text | Image | Document | Opaque) and not is_malformed(meant):
        return meant
    return _written_out(meant)


def _answerable(block: Block) -> Text | Thinking | RedactedThinking | ToolUse | Opaque:
    meant = typed_block(block)
    if isinstance(meant, Image | Document):
        return Opaque(raw=block_to_wire(meant))
    if isinstance(meant, ToolResult) or is_malformed(meant):
        return _written_out(meant)
    return meant


def _written_out(block: Block) -> Text:
    return Text(text=msgspec.json.encode(block_to_wire(block)).decode())
