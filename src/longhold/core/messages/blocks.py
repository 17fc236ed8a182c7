"""Blocks and messages, the values that every other module works with.

Blocks are immutable and lossless. `extra` keeps unknown fields, and unknown types are `Opaque`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

Json: TypeAlias = Any

JsonObject: TypeAlias = dict[str, Json]

Role: TypeAlias = Literal["user", "assistant"]


class _Block(
    Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", gc=False, weakref=False
):
    extra: JsonObject | None = None  # unknown fields, sent back unchanged


class Text(_Block, frozen=True, kw_only=True, tag="text"):
    text: str


class Thinking(_Block, frozen=True, kw_only=True, tag="thinking"):
    thinking: str
    signature: str = ""


class RedactedThinking(_Block, frozen=True, kw_only=True, tag="redacted_thinking"):
    data: str


class Image(_Block, frozen=True, kw_only=True, tag="image"):
    source: JsonObject


class Document(_Block, frozen=True, kw_only=True, tag="document"):
    source: JsonObject


class Opaque(_Block, frozen=True, kw_only=True, tag="opaque"):
    raw: JsonObject


ResultContent: TypeAlias = str | tuple[Text | Image | Document | Opaque, ...]


class ToolUse(_Block, frozen=True, kw_only=True, tag="tool_use"):
    id: str
    name: str
    input: JsonObject


class ToolResult(_Block, frozen=True, kw_only=True, tag="tool_result"):
    tool_use_id: str
    content: ResultContent = ""
    is_error: bool = False


Block: TypeAlias = (
    Text | Thinking | RedactedThinking | Image | Document | ToolUse | ToolResult | Opaque
)

Content: TypeAlias = tuple[Block, ...]


class Message(Struct, frozen=True, gc=False):
    role: Role
    content: Content


_KNOWN: dict[str, type[_Block]] = {
    "text": Text,
    "thinking": Thinking,
    "redacted_thinking": RedactedThinking,
    "image": Image,
    "document": Document,
    "tool_use": ToolUse,
    "tool_result": ToolResult,
}
KNOWN_TYPES = tuple(_KNOWN)  # block types whose shape the API validates
_FIELDS = {tag: frozenset(kind.__struct_fields__) - {"extra"} for tag, kind in _KNOWN.items()}

INVALID_INPUT = "INVALID_JSON"  # wraps a tool input that is not an object, as the API requires

CLIENT_MARKS = frozenset({"cache_control"})  # fields that steer one request and are never logged


def block_from_wire(raw: Json) -> Block:
    """Convert a provider's JSON to a block, or to `Opaque` if its type or shape is unknown."""
    if isinstance(raw, str):
        return Text(text=raw)
    if not isinstance(raw, dict):
        return Opaque(raw={"type": "unknown", "value": raw})
    raw = {key: value for key, value in raw.items() if key not in CLIENT_MARKS}
    tag = raw.get("type")
    if not isinstance(tag, str) or tag not in _KNOWN:
        return Opaque(raw=raw)
    kind, fields = _KNOWN[tag], _FIELDS[tag]
    known = {key: value for key, value in raw.items() if key in fields and value is not None}
    extra = {key: value for key, value in raw.items() if key not in fields and key != "type"}
    if kind is ToolUse and not isinstance(known.get("input"), dict):
        known["input"] = {INVALID_INPUT: known["input"]} if "input" in known else {}
    if kind is ToolResult and isinstance(known.get("content"), list):
        known["content"] = result_content_from_wire(known["content"])
    try:
        return _check_types(kind(**known, extra=extra or None))
    except (TypeError, msgspec.ValidationError):
        return Opaque(raw=raw)


def _check_types(block: _Block) -> Block:
    """Raise `TypeError` for wrong field types, because msgspec does not check keyword arguments."""
    match block:
        case Text(text=str()) | Thinking(thinking=str(), signature=str()):
            return block
        case RedactedThinking(data=str()) | Image(source=dict()) | Document(source=dict()):
            return block
        case ToolUse(id=str(), name=str(), input=dict()):
            return block
        case ToolResult(tool_use_id=str(), content=str() | tuple(), is_error=bool()):
            return block
    raise TypeError(type(block).__name__)


def content_from_wire(raw: Json, block_of: Callable[[Json], Block] = block_from_wire) -> Content:
    if raw is None:
        return ()
    is_list = isinstance(raw, Sequence) and not isinstance(raw, str)
    return tuple(map(block_of, raw if is_list else (raw,)))


def result_content_from_wire(raw: Json) -> ResultContent:
    if raw is None:
        return ""
    if isinstance(raw, str):
        return raw
    if not isinstance(raw, Sequence):
        return msgspec.json.encode(raw).decode()
    return narrow_content(map(block_from_wire, raw))


def narrow_content(content: Iterable[Block]) -> tuple[Text | Image | Document | Opaque, ...]:
    return tuple(
        block
        if isinstance(block, Text | Image | Document | Opaque)
        else Opaque(raw=block_to_wire(block))
        for block in content
    )


def block_to_wire(block: Block) -> JsonObject:
    if isinstance(block, Opaque):
        return block.raw
    if isinstance(block, ToolResult):
        return _result_to_wire(block)
    wire: JsonObject = msgspec.to_builtins(block)
    extra = wire.pop("extra", None)
    return wire | extra if extra else wire


def _result_to_wire(block: ToolResult) -> JsonObject:
    content: Json = block.content
    if not isinstance(content, str):
        content = [block_to_wire(item) for item in content]
    wire = {"type": "tool_result", "tool_use_id": block.tool_use_id, "content": content}
    if block.is_error:
        wire["is_error"] = True
    return wire | block.extra if block.extra else wire


def message_to_wire(message: Message) -> JsonObject:
    return {"role": message.role, "content": [block_to_wire(block) for block in message.content]}


def text_of(content: Content | ResultContent) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.text for block in content if isinstance(block, Text))


def is_blank(block: Block) -> bool:
    """Return whether the API would reject this block as empty."""
    return isinstance(block, Text) and not block.text.strip()


def is_thought(block: Block) -> bool:
    return isinstance(block, Thinking | RedactedThinking)
