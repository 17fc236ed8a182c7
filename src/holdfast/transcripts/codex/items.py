"""Response items of a rollout and the blocks they stand for.

An item is a message, a thought, a call or a result. Freeform, shell and search calls become tool
uses like any other. An unknown item is kept whole, on the side where it stands. Fields that only
serve the client (ids, states, its own metadata) are left out; others stay with the block.
"""

import msgspec

from holdfast.messages import (
    Block,
    Content,
    Image,
    Json,
    JsonObject,
    Opaque,
    RedactedThinking,
    Text,
    Thinking,
    ToolUse,
)
from holdfast.transcripts.parts import arguments_of, content_of, extra_of, source_of, unwrap
from holdfast.transcripts.writer import ImportAccount

CONTEXT_ITEMS = frozenset(
    {"compaction", "compaction_summary", "context_compaction", "agent_message", "additional_tools"}
)
"""Items the model reads that are no messages; they stand on the user's side."""

MODEL_ITEMS = frozenset({"web_search_call", "image_generation_call"})

OUTPUT_ITEMS = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})

UNSENT_ITEMS = frozenset({"ghost_snapshot", "compaction_trigger"})

_CLIENTS_OWN = frozenset({"type", "id", "status", "internal_chat_message_metadata_passthrough"})
CALL_FIELDS = _CLIENTS_OWN | {"name", "arguments", "input", "action", "execution", "call_id"}
RESULT_FIELDS = _CLIENTS_OWN | {"name", "call_id", "output", "is_error", "tools", "execution"}
THINKING_FIELDS = _CLIENTS_OWN | {"summary", "content", "encrypted_content", "redacted"}
TEXT_FIELDS = frozenset({"type", "text"})
IMAGE_FIELDS = frozenset({"type", "image_url"})


def answer_of(item: JsonObject, account: ImportAccount) -> Content:
    match item:
        case {"type": "message"}:
            return said_in(item.get("content"))
        case {"type": "reasoning"}:
            return (_thought(item),)
    return (_call(item, account),)


def result_of(item: JsonObject) -> tuple[str | Content, bool]:
    """Return a result's content, and whether it is an error."""
    is_error = item.get("is_error") is True
    match item.get("output", item.get("tools")):
        case str(text):
            return text, is_error
        case {"content": str(text), **rest}:
            return text, is_error or rest.get("success") is False
        case list(parts) if "output" in item:
            return said_in(parts), is_error
        case other:
            return msgspec.json.encode(other).decode(), is_error


def said_in(raw: Json) -> Content:
    return content_of(raw, _part)


def _part(part: Json) -> Block:
    match part:
        case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
            return Text(text=text, extra=extra_of(part, TEXT_FIELDS))
        case {"type": "input_image", "image_url": str(url)}:
            return Image(source=source_of(url), extra=extra_of(part, IMAGE_FIELDS))
    return unwrap(part)


def _thought(item: JsonObject) -> Block:
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
