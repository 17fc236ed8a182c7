"""Tools that a provider keeps out of the prompt until a result refers to them."""

from collections.abc import Sequence

from longhold.core.messages import Json, JsonObject

DEFERRED = "defer_loading"


def is_deferred(tool: JsonObject) -> bool:
    return tool.get(DEFERRED) is True


def defer_tool(tool: JsonObject) -> JsonObject:
    return tool | {DEFERRED: True}


def spell_out(messages: Sequence[JsonObject]) -> list[JsonObject]:
    """Replace references with text. Messages without references stay the same objects."""
    return [
        message | {"content": [_spell_out(block) for block in message["content"]]}
        if any(map(_has_references, message["content"]))
        else message
        for message in messages
    ]


def _has_references(block: JsonObject) -> bool:
    content = block.get("content") if block.get("type") == "tool_result" else None
    return isinstance(content, list) and any(map(_is_reference, content))


def _spell_out(block: JsonObject) -> JsonObject:
    if not _has_references(block):
        return block
    content = [
        {"type": "text", "text": f"{part.get('tool_name')}: look it up again to call it."}
        if _is_reference(part)
        else part
        for part in block["content"]
    ]
    return block | {"content": content}


def _is_reference(part: Json) -> bool:
    return isinstance(part, dict) and part.get("type") == "tool_reference"
