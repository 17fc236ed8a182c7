"""Response items of a rollout and the blocks they stand for, both ways.

An item is a message, a thought, a call or a result. Freeform, shell and search calls become tool
uses like any other. An unknown item is kept whole, on the side where it stands. Fields that only
serve the client (ids, states, its own metadata) are left out; others stay with the block, and are
written beside a rollout's own. Blocks it has no shape for are wrapped whole.
"""

from collections.abc import Iterator

import msgspec

from longhold.core.messages import (
    Block,
    Content,
    Image,
    Json,
    JsonObject,
    Opaque,
    RedactedThinking,
    ResultContent,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from longhold.core.view.block_roles import to_spoken
from longhold.session.importing.parts import (
    IMAGE_URL_FIELDS,
    TEXT_FIELDS,
    arguments_of,
    content_of,
    data_url,
    extra_of,
    source_of,
    unwrap,
    with_extra,
    wrap,
)
from longhold.session.importing.writer import ImportAccount

CONTEXT_ITEMS = frozenset(
    {"compaction", "compaction_summary", "context_compaction", "agent_message", "additional_tools"}
    | {"configuration_update"}
)
"""Items the model reads that are no messages; they stand on the user's side."""

MODEL_ITEMS = frozenset({"web_search_call", "image_generation_call"})

OUTPUT_ITEMS = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})

UNSENT_ITEMS = frozenset({"ghost_snapshot", "compaction_trigger"})

_CLIENTS_OWN = frozenset({"type", "id", "status", "internal_chat_message_metadata_passthrough"})
CALL_FIELDS = _CLIENTS_OWN | {"name", "arguments", "input", "action", "execution", "call_id"}
RESULT_FIELDS = _CLIENTS_OWN | {"name", "call_id", "output", "is_error", "tools", "execution"}
THINKING_FIELDS = _CLIENTS_OWN | {"summary", "content", "encrypted_content", "redacted"}

_SPOKEN = {"user": "input_text", "assistant": "output_text"}


def answer_of(item: JsonObject, account: ImportAccount) -> Content:
    match item:
        case {"type": "message"}:
            return parse_content(item.get("content"))
        case {"type": "reasoning"}:
            return (_parse_thinking(item),)
    return (_call(item, account),)


def result_of(item: JsonObject) -> ToolResult:
    content: ResultContent
    has_failed = item.get("is_error") is True
    match item.get("output", item.get("tools")):
        case str(text):
            content = text
        case {"content": str(text), **rest}:
            content, has_failed = text, has_failed or rest.get("success") is False
        case list(parts) if "output" in item:
            content = to_spoken(parse_content(parts))
        case other:
            content = msgspec.json.encode(other).decode()
    return ToolResult(
        tool_use_id=str(item.get("call_id") or ""),
        content=content,
        is_error=has_failed,
        extra=extra_of(item, RESULT_FIELDS),
    )


def parse_content(raw: Json) -> Content:
    return content_of(raw, _block)


def _block(part: Json) -> Block:
    match part:
        case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
            return Text(text=text, extra=extra_of(part, TEXT_FIELDS))
        case {"type": "input_image", "image_url": str(url)}:
            return Image(source=source_of(url), extra=extra_of(part, IMAGE_URL_FIELDS))
    return unwrap(part)


def _parse_thinking(item: JsonObject) -> Block:
    sealed = item.get("encrypted_content")
    signature = sealed if isinstance(sealed, str) else ""
    extra = extra_of(item, THINKING_FIELDS) or {}
    if content := item.get("content"):
        extra = {"content": content} | extra
    if item.get("redacted") is True:
        return RedactedThinking(data=signature, extra=extra or None)
    return Thinking(thinking=_summary(item), signature=signature, extra=extra or None)


def _summary(item: JsonObject) -> str:
    parts = item.get("summary")
    if not isinstance(parts, list):
        return ""
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "\n\n".join(text for text in texts if isinstance(text, str))


def _call(item: JsonObject, account: ImportAccount) -> Block:
    match item:
        case {
            "type": "function_call",
            "call_id": str(id),
            "name": str(name),
            "arguments": str(text),
        }:
            data = arguments_of(text, account)
        case {
            "type": "custom_tool_call",
            "call_id": str(id),
            "name": str(name),
            "input": str(text),
        }:
            data = {"input": text}
        case {"type": "local_shell_call", "call_id": str(id), "action": dict(data)}:
            name = "local_shell"
        case {"type": "local_shell_call", "id": str(id), "action": dict(data)}:
            name = "local_shell"
        case {"type": "tool_search_call", "call_id": str(id), "arguments": dict(data)}:
            name = "tool_search"
        case _:
            return Opaque(raw=item)
    return ToolUse(id=id, name=name, input=data, extra=extra_of(item, CALL_FIELDS))


def items_of(role: str, content: Content) -> Iterator[JsonObject]:
    """Write a message as items, keeping adjacent text in one."""
    parts: list[Json] = []
    for block in content:
        item = _item(role, block)
        if item is None:
            parts.append(_part(role, block))
            continue
        if parts:
            yield {"type": "message", "role": role, "content": parts}
            parts = []
        yield item
    if parts:
        yield {"type": "message", "role": role, "content": parts}


def _item(role: str, block: Block) -> JsonObject | None:
    match block:
        case Thinking(thinking=text, signature=signature, extra=extra):
            summary = [{"type": "summary_text", "text": text}] if text else []
            thought = {"type": "reasoning", "summary": summary}
            sealed = thought | {"encrypted_content": signature or None}
            return with_extra(sealed, extra, THINKING_FIELDS)
        case RedactedThinking(data=data, extra=extra):
            hidden = {"type": "reasoning", "summary": [], "encrypted_content": data}
            return with_extra(hidden | {"redacted": True}, extra, THINKING_FIELDS)
        case ToolUse(id=id, name=name, input=data, extra=extra):
            arguments = msgspec.json.encode(data).decode()
            call = {"type": "function_call", "name": name, "arguments": arguments, "call_id": id}
            return with_extra(call, extra, CALL_FIELDS)
        case ToolResult():
            return _result(block)
        case Opaque(raw={"type": str(kind)} as raw):
            return raw if kind in (MODEL_ITEMS if role == "assistant" else CONTEXT_ITEMS) else None
    return None


def _result(block: ToolResult) -> JsonObject:
    content = block.content
    output = content if isinstance(content, str) else [_part("user", inner) for inner in content]
    result: JsonObject = {
        "type": "function_call_output",
        "call_id": block.tool_use_id,
        "output": output,
    }
    marked = result | ({"is_error": True} if block.is_error else {})
    return with_extra(marked, block.extra, RESULT_FIELDS)


def _part(role: str, block: Block) -> JsonObject:
    match block:
        case Text(text=text, extra=extra):
            return with_extra({"type": _SPOKEN[role], "text": text}, extra, TEXT_FIELDS)
        case Image(source=source, extra=extra) if url := data_url(source):
            return with_extra({"type": "input_image", "image_url": url}, extra, IMAGE_URL_FIELDS)
    return wrap(block)
