"""What an entry has to tell, as text: the whole of it, in the order it came.

An entry comes in; a `Record` goes out, or nothing where an entry brings no content. The text of
a result is the result, character for character. Pictures and documents cannot be text: a line
says where they stood, and they travel beside it. Bodies on disk are put in by whoever asks.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from holdfast.log.entries import AnyEntry, Collapsed, Compacted, Ran, Replied, Restored, Said
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

RecordKind: TypeAlias = Literal["user", "aside", "answer", "result", "summary", "line", "restored"]
Media: TypeAlias = tuple[Image | Document, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One entry, told."""

    n: int
    kind: RecordKind
    text: str
    media: Media = ()
    """What the text only names."""


def record_of(entry: AnyEntry) -> Record | None:
    """Tell an entry; most kinds bring nothing."""
    match entry:
        case Said(content=content):
            kind: RecordKind = "aside" if entry.hidden or entry.role == "system" else "user"
            return _told(entry.n, kind, content)
        case Replied(content=content):
            return _told(entry.n, "answer", content)
        case Ran(content=str() as text):
            return Record(n=entry.n, kind="result", text=text)
        case Ran(content=tuple() as content):
            return _told(entry.n, "result", content)
        case Compacted(summary=content):
            return _told(entry.n, "summary", content)
        case Collapsed(text=text):
            return Record(n=entry.n, kind="line", text=text)
        case Restored(content=content):
            return _told(entry.n, "restored", content)
    return None


def _told(n: int, kind: RecordKind, content: Iterable[Block]) -> Record:
    blocks = tuple(content)
    return Record(
        n=n,
        kind=kind,
        text="\n".join(map(_written, blocks)),
        media=tuple(block for block in blocks if isinstance(block, Image | Document)),
    )


def _written(block: Block) -> str:
    """Write one block out."""
    match block:
        case Text(text=text):
            return text
        case Thinking(thinking=text):
            return f"[thinking]\n{text}"
        case RedactedThinking():
            return "[thinking that the provider keeps to itself]"
        case ToolUse(id=id, name=name):
            return f"[calls {name}, id {id}]\n{_json(block.input)}"
        case Image(source=source):
            return f"[an image stood here: {source.get('media_type', 'of unknown type')}]"
        case Document():
            return "[a document stood here]"
        case ToolResult() | Opaque():
            return _json(block_to_wire(block))


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
