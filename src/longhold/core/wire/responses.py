"""The Responses API codec for requests, items, calls, tools and rollout files (saved items).

Items without a matching block type, such as reasoning, are sent back unchanged. Decoding drops
fields that only the client uses, such as ids and states.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby
from typing import TypeVar

import msgspec
from msgspec import structs

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
    Usage,
    content_from_wire,
    narrow_content,
)
from longhold.core.wire import messages
from longhold.core.wire.chat import output_options

REASONING = "reasoning"
STOP_REASONS = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}

CONTEXT_ITEMS = frozenset(
    {"compaction", "compaction_summary", "context_compaction", "agent_message", "additional_tools"}
    | {"configuration_update"}
)
"""Items that the model reads but that are not messages. They count as user content."""

_MODEL_ITEMS = frozenset({"web_search_call", "image_generation_call"})

OUTPUT_ITEMS = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})

UNSENT_ITEMS = frozenset({"ghost_snapshot", "compaction_trigger"})

_CLIENTS_OWN = frozenset({"type", "id", "status", "internal_chat_message_metadata_passthrough"})
_CALL_FIELDS = _CLIENTS_OWN | {"name", "arguments", "input", "action", "execution", "call_id"}
_RESULT_FIELDS = _CLIENTS_OWN | {"name", "call_id", "output", "is_error", "tools", "execution"}
_THINKING_FIELDS = _CLIENTS_OWN | {"summary", "content", "encrypted_content", "redacted"}

_PLAIN = frozenset({"text", "tool_use", "tool_result", "image", "document"})

_Block = TypeVar("_Block")


def encode_request(kwargs: JsonObject) -> JsonObject:
    wanted: JsonObject = {"model": kwargs["model"]}
    if system := messages.wire_blocks(kwargs.get("system")):
        wanted["instructions"] = messages.join_text(system)
    wanted["input"] = [item for message in kwargs["messages"] for item in _encode_message(message)]
    if tools := kwargs.get("tools"):
        wanted["tools"] = [encode_tool(tool) for tool in tools]
    if kwargs.get("max_tokens") is not None:
        wanted["max_output_tokens"] = kwargs["max_tokens"]
    wanted |= {name: kwargs[name] for name in (*messages.SAME_NAME, "store") if name in kwargs}
    effort = output_options(kwargs.get("output_config") or {}).get("reasoning_effort")
    return wanted | ({"reasoning": {"effort": effort}} if effort else {})


def encode_tool(tool: JsonObject) -> JsonObject:
    if "input_schema" not in tool:
        return tool
    return {"type": "function", **messages.rename(tool, "input_schema", "parameters")}


def _group(
    blocks: Iterable[_Block],
    item_of: Callable[[_Block], JsonObject | None],
    part_of: Callable[[_Block], JsonObject],
    message_of: Callable[[list[JsonObject]], JsonObject],
) -> Iterator[JsonObject]:
    """Yield a message's items in order. Adjacent blocks that are not items become one message."""
    items = ((item_of(block), block) for block in blocks)
    for is_part, group in groupby(items, lambda pair: pair[0] is None):
        if is_part:
            yield message_of([part_of(block) for _, block in group])
        else:
            yield from (item for item, _ in group if item is not None)


def _encode_message(message: JsonObject) -> Iterator[JsonObject]:
    role = message["role"]
    return _group(
        [
            block
            for block in messages.wire_blocks(message["content"])
            if block["type"] not in messages.UNSPOKEN
        ],
        _encode_item,
        partial(_encode_part, role),
        lambda parts: {"role": role, "content": messages.join_parts(parts)},
    )


def _encode_item(block: JsonObject) -> JsonObject | None:
    match block:
        case {"type": "tool_use", "id": id, "name": name, "input": data}:
            return encode_call(id, name, data, is_custom=block.get("custom") is True)
        case {"type": "tool_result", "tool_use_id": id}:
            return _encode_result(id, messages.outcome_text(block))
        case {"type": str(kind)} if kind not in _PLAIN and not kind.startswith("input_"):
            return messages.drop_marks(block)
    return None


def encode_call(id: str, name: str, data: JsonObject, *, is_custom: bool = False) -> JsonObject:
    if is_custom:
        text = str(data.get("input", ""))
        return {"type": "custom_tool_call", "call_id": id, "name": name, "input": text}
    arguments = messages.encode_input(data)
    return {"type": "function_call", "call_id": id, "name": name, "arguments": arguments}


def _encode_result(id: str, output: Json) -> JsonObject:
    return {"type": "function_call_output", "call_id": id, "output": output}


def _encode_part(role: str, block: JsonObject) -> JsonObject:
    match block:
        case {"type": "image", "source": source} if url := messages.url_of(source):
            return {"type": "input_image", "image_url": url}
        case {"type": str(kind)} if kind.startswith("input_"):
            return block
    return _encode_text(role, messages.block_text(block))


def _encode_text(role: str, text: str) -> JsonObject:
    return {"type": "output_text" if role == "assistant" else "input_text", "text": text}


def decode_item(item: JsonObject) -> tuple[messages.Speaker, Content]:
    kind = item.get("type") or "message"
    if kind in OUTPUT_ITEMS:
        return "user", (decode_result(item),)
    if kind in CONTEXT_ITEMS:
        return "system", (Opaque(raw=item),)
    if is_input_message(item):
        return messages.speaker_of(item.get("role")), _decode_content(item.get("content"))
    return "assistant", tuple(decode_answer(item))


def is_input_message(item: JsonObject) -> bool:
    return (item.get("type") or "message") == "message" and item.get("role") != "assistant"


def decode_answer(item: JsonObject) -> Iterator[Block]:
    """Yield the blocks of one output item. A part without a matching block type is kept whole."""
    match item:
        case {"type": "function_call" | "custom_tool_call" as kind}:
            given = {key: value for key, value in item.items() if value is not None}
            call = _decode_call({"arguments": "", "input": ""} | given)
            extra = {"custom": True} if kind == "custom_tool_call" else None
            yield structs.replace(call, extra=extra) if call else Opaque(raw=item)
        case {"type": "message", "content": list(parts)} | {
            "role": "assistant",
            "content": list(parts),
        }:
            for part in parts:
                match part:
                    case {"type": "output_text" | "text" | "input_text", "text": str(text)} | {
                        "type": "refusal",
                        "refusal": str(text),
                    }:
                        yield Text(text=text)
                    case dict():
                        yield Opaque(raw=part)
        case {"content": str(text)}:
            yield Text(text=text)
        case _:
            yield Opaque(raw=item)


def decode_usage(value: Json) -> Usage:
    return messages.decode_usage(value, "input_tokens", "output_tokens")


def decode_result(item: JsonObject) -> ToolResult:
    content: ResultContent
    has_failed = item.get("is_error") is True
    match item.get("output", item.get("tools")):
        case str(text):
            content = text
        case {"content": str(text), **rest}:
            content, has_failed = text, has_failed or rest.get("success") is False
        case list(parts) if "output" in item:
            content = narrow_content(_decode_content(parts))
        case other:
            content = msgspec.json.encode(other).decode()
    return ToolResult(
        tool_use_id=str(item.get("call_id") or ""),
        content=content,
        is_error=has_failed,
        extra=messages.extra_of(item, _RESULT_FIELDS),
    )


def _decode_content(raw: Json) -> Content:
    return content_from_wire(raw, _decode_part)


def _decode_part(part: Json) -> Block:
    match part:
        case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
            return Text(text=text, extra=messages.extra_of(part, messages.TEXT_FIELDS))
        case {"type": "input_image", "image_url": str(url)}:
            return Image(
                source=messages.source_of(url),
                extra=messages.extra_of(part, messages.IMAGE_URL_FIELDS),
            )
    return messages.unwrap(part)


def _decode_call(item: JsonObject, parse: messages.Parse = messages.parse_input) -> ToolUse | None:
    match item:
        case {"type": "function_call", "name": str(name), "arguments": str(text)}:
            data = parse(text)
        case {"type": "custom_tool_call", "name": str(name), "input": str(text)}:
            data = {"input": text}
        case {"type": "local_shell_call", "action": dict(data)}:
            name = "local_shell"
        case {"type": "tool_search_call", "arguments": dict(data)}:
            name = "tool_search"
        case _:
            return None
    id = item.get("call_id")
    if item["type"] == "local_shell_call" and not isinstance(id, str):
        id = item.get("id")
    if not isinstance(id, str):
        return None
    return ToolUse(id=id, name=name, input=data, extra=messages.extra_of(item, _CALL_FIELDS))


def read_answer(item: JsonObject, parse: messages.Parse) -> Content:
    """Read a rollout item that the model wrote. Unlike in requests, reasoning becomes a block."""
    match item:
        case {"type": "message"}:
            return _decode_content(item.get("content"))
        case {"type": "reasoning"}:
            return (_read_thinking(item),)
    return (_decode_call(item, parse) or Opaque(raw=item),)


def _read_thinking(item: JsonObject) -> Block:
    sealed = item.get("encrypted_content")
    signature = sealed if isinstance(sealed, str) else ""
    extra = messages.extra_of(item, _THINKING_FIELDS) or {}
    if content := item.get("content"):
        extra = {"content": content} | extra
    if item.get("redacted") is True:
        return RedactedThinking(data=signature, extra=extra or None)
    texts = [part.get("text") for part in messages.objects(item.get("summary"))]
    summary = "\n\n".join(text for text in texts if isinstance(text, str))
    return Thinking(thinking=summary, signature=signature, extra=extra or None)


def write_items(role: str, content: Content) -> Iterator[JsonObject]:
    return _group(
        content,
        partial(_write_item, role),
        partial(_write_part, role),
        lambda parts: {"type": "message", "role": role, "content": parts},
    )


def _write_item(role: str, block: Block) -> JsonObject | None:
    match block:
        case Thinking(thinking=text, signature=signature, extra=extra):
            summary = [{"type": "summary_text", "text": text}] if text else []
            thought = {"type": "reasoning", "summary": summary}
            sealed = thought | {"encrypted_content": signature or None}
            return messages.with_extra(sealed, extra, _THINKING_FIELDS)
        case RedactedThinking(data=data, extra=extra):
            hidden = {"type": "reasoning", "summary": [], "encrypted_content": data}
            return messages.with_extra(hidden | {"redacted": True}, extra, _THINKING_FIELDS)
        case ToolUse(id=id, name=name, input=data, extra=extra):
            return messages.with_extra(encode_call(id, name, data), extra, _CALL_FIELDS)
        case ToolResult():
            return _write_result(block)
        case Opaque(raw={"type": str(kind)} as raw):
            return raw if kind in (_MODEL_ITEMS if role == "assistant" else CONTEXT_ITEMS) else None
    return None


def _write_result(block: ToolResult) -> JsonObject:
    content = block.content
    output = content if isinstance(content, str) else [_write_part("user", one) for one in content]
    result = _encode_result(block.tool_use_id, output)
    marked = result | ({"is_error": True} if block.is_error else {})
    return messages.with_extra(marked, block.extra, _RESULT_FIELDS)


def _write_part(role: str, block: Block) -> JsonObject:
    match block:
        case Text(text=text, extra=extra):
            return messages.with_extra(_encode_text(role, text), extra, messages.TEXT_FIELDS)
        case Image(source=source, extra=extra) if url := messages.data_url(source):
            return messages.with_extra(
                {"type": "input_image", "image_url": url}, extra, messages.IMAGE_URL_FIELDS
            )
    return messages.wrap(block)
