"""Write what a model sees as a Codex rollout that can be read back.

One record per message, thought, call and result. Blocks a rollout has no shape for are
wrapped whole; fields it does not know stand beside its own, where the client ignores them.
The system prompt goes into the first record; tools and usage are not part of what is written.
"""

from collections.abc import Iterator

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
    ToolResult,
    ToolUse,
)
from holdfast.transcripts.codex.items import (
    CALL_FIELDS,
    CONTEXT_ITEMS,
    IMAGE_FIELDS,
    MODEL_ITEMS,
    RESULT_FIELDS,
    TEXT_FIELDS,
    THINKING_FIELDS,
)
from holdfast.transcripts.parts import data_url, with_extra, wrap
from holdfast.transcripts.records import line, timestamp
from holdfast.view import View

_SAID = {"user": "input_text", "assistant": "output_text"}


def write(view: View, *, session: str = "holdfast", directory: str = "") -> Iterator[bytes]:
    at = timestamp(view.history[-1].at if view.history else 0.0)
    yield _record(at, "session_meta", _meta(view, session, directory, at))
    if view.model:
        yield _record(at, "turn_context", {"cwd": directory, "model": view.model})
    if view.title:
        title = {"type": "thread_name_updated", "thread_id": session, "thread_name": view.title}
        yield _record(at, "event_msg", title)
    for message in view.messages():
        for item in _items(message.role, message.content):
            yield _record(at, "response_item", item)


def _meta(view: View, session: str, directory: str, at: str) -> JsonObject:
    meta: JsonObject = {
        "id": session,
        "timestamp": at,
        "cwd": directory,
        "originator": "holdfast",
        "cli_version": "",
        "source": "unknown",
    }
    if view.frame is not None:
        texts = [section.text for section in view.frame.sections]
        texts += [view.frame.instructions] if view.frame.instructions else []
        meta["base_instructions"] = {"text": "\n\n".join(texts)}
    return meta


def _record(at: str, kind: str, payload: JsonObject) -> bytes:
    return line({"timestamp": at, "type": kind, "payload": payload})


def _items(role: str, content: Content) -> Iterator[JsonObject]:
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
            return with_extra({"type": _SAID[role], "text": text}, extra, TEXT_FIELDS)
        case Image(source=source, extra=extra) if url := data_url(source):
            return with_extra({"type": "input_image", "image_url": url}, extra, IMAGE_FIELDS)
    return wrap(block)
