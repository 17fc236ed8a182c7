"""The Responses codec: requests, items, calls and tools, both ways.

The conversation goes in whole with each request (`store` is the caller's to decide): nothing is
kept on the provider's side that the log does not have. Items the Messages API has no block for,
such as reasoning, are kept as they came and sent back as they were.

A rollout, which is a file of items, is read into blocks of the Messages API: freeform, shell and
search calls become tool uses like any other. An unknown item is kept whole, on the side where it
stands. Fields that only serve the client (ids, states, its own metadata) are left out; others stay
with the block, and are written beside a rollout's own. Blocks it has no shape for are wrapped whole.
"""

from collections.abc import Callable, Iterator, Sequence

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
    Usage,
    narrow_content,
)
from longhold.core.wire.chat import output_options
from longhold.core.wire.messages import (
    IMAGE_URL_FIELDS,
    TEXT_FIELDS,
    content_of,
    data_url,
    extra_of,
    join_text,
    outcome_text,
    parse_input,
    source_of,
    unwrap,
    wire_blocks,
    with_extra,
    wrap,
)

REASONING = "reasoning"
STOP_REASONS = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}
"""Why an answer is incomplete, in the Messages API's words."""

_SAME_NAME = ("temperature", "top_p", "service_tier", "prompt_cache_key", "extra_body", "store")
_UNSPOKEN = frozenset({"thinking", "redacted_thinking"})
_PLAIN = frozenset({"text", "tool_use", "tool_result", "image", "document"})


def responses_kwargs(kwargs: JsonObject) -> JsonObject:
    """Convert a request to what `client.responses.create` takes."""
    wanted: JsonObject = {"model": kwargs["model"]}
    if system := wire_blocks(kwargs.get("system")):
        wanted["instructions"] = join_text(system)
    wanted["input"] = [item for message in kwargs["messages"] for item in _items(message)]
    if tools := kwargs.get("tools"):
        wanted["tools"] = [responses_tool(tool) for tool in tools]
    if kwargs.get("max_tokens") is not None:
        wanted["max_output_tokens"] = kwargs["max_tokens"]
    wanted |= {name: kwargs[name] for name in _SAME_NAME if name in kwargs}
    effort = output_options(kwargs.get("output_config") or {}).get("reasoning_effort")
    return wanted | ({"reasoning": {"effort": effort}} if effort else {})


def responses_tool(tool: JsonObject) -> JsonObject:
    """Convert a tool's definition; one that the provider runs stays as it is."""
    if "input_schema" not in tool:
        return tool
    renamed = {("parameters" if k == "input_schema" else k): v for k, v in tool.items()}
    return {"type": "function", **renamed}


def _items(message: JsonObject) -> Iterator[JsonObject]:
    """Yield a message's items in order, adjacent text in one."""
    role, parts = message["role"], list[JsonObject]()
    for block in wire_blocks(message["content"]):
        item = _item(block)
        if item is None:
            if block["type"] not in _UNSPOKEN:
                parts.append(_part(role, block))
            continue
        yield from _message(role, parts)
        parts = []
        yield item
    yield from _message(role, parts)


def _message(role: str, parts: Sequence[JsonObject]) -> Iterator[JsonObject]:
    if parts:
        is_text = all(set(part) == {"type", "text"} for part in parts)
        content: Json = "\n\n".join(part["text"] for part in parts) if is_text else list(parts)
        yield {"role": role, "content": content}


def _item(block: JsonObject) -> JsonObject | None:
    match block:
        case {"type": "tool_use", "custom": True}:
            call = {"type": "custom_tool_call", "call_id": block["id"], "name": block["name"]}
            return call | {"input": block["input"]["input"]}
        case {"type": "tool_use"}:
            arguments = msgspec.json.encode(block["input"]).decode()
            call = {"type": "function_call", "call_id": block["id"], "name": block["name"]}
            return call | {"arguments": arguments}
        case {"type": "tool_result"}:
            output = {"type": "function_call_output", "call_id": block["tool_use_id"]}
            return output | {"output": outcome_text(block)}
    is_item = block["type"] not in _PLAIN | _UNSPOKEN and not str(block["type"]).startswith(
        "input_"
    )
    return {k: v for k, v in block.items() if k != "cache_control"} if is_item else None


def _part(role: str, block: JsonObject) -> JsonObject:
    match block:
        case {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}:
            return {"type": "input_image", "image_url": f"data:{kind};base64,{data}"}
        case {"type": "image", "source": {"type": "url", "url": url}}:
            return {"type": "input_image", "image_url": url}
        case {"type": str(kind)} if kind.startswith("input_"):
            return block
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": kind, "text": join_text([block])}


def blocks_of_item(item: JsonObject) -> Iterator[Block]:
    """Yield what one item of an answer is made of; what has no block is kept whole."""
    match item:
        case {"type": "function_call", "call_id": str(id), "name": str(name)}:
            yield ToolUse(id=id, name=name, input=parse_input(item.get("arguments") or ""))
        case {"type": "custom_tool_call", "call_id": str(id), "name": str(name)}:
            given = {"input": str(item.get("input") or "")}
            yield ToolUse(id=id, name=name, input=given, extra={"custom": True})
        case {"type": "message", "content": list(parts)} | {
            "role": "assistant",
            "content": list(parts),
        }:
            for part in parts:
                match part:
                    case {"type": "output_text" | "text" | "input_text", "text": str(text)}:
                        yield Text(text=text)
                    case {"type": "refusal", "refusal": str(text)}:
                        yield Text(text=text)
                    case dict():
                        yield Opaque(raw=part)
        case {"content": str(text)}:
            yield Text(text=text)
        case _:
            yield Opaque(raw=item)


def usage_from_responses(raw: JsonObject) -> Usage:
    """Read usage whose input count includes what was cached."""
    details = raw.get("input_tokens_details") or {}
    read = int(details.get("cached_tokens") or 0)
    written = int(details.get("cache_write_tokens") or 0)
    return Usage(
        input_tokens=max(0, int(raw.get("input_tokens") or 0) - read - written),
        output_tokens=int(raw.get("output_tokens") or 0),
        cache_read_tokens=read,
        cache_write_tokens=written,
    )


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


def answer_of(item: JsonObject, parse: Callable[[str], JsonObject]) -> Content:
    match item:
        case {"type": "message"}:
            return parse_content(item.get("content"))
        case {"type": "reasoning"}:
            return (_parse_thinking(item),)
    return (_call(item, parse),)


def result_of(item: JsonObject) -> ToolResult:
    content: ResultContent
    has_failed = item.get("is_error") is True
    match item.get("output", item.get("tools")):
        case str(text):
            content = text
        case {"content": str(text), **rest}:
            content, has_failed = text, has_failed or rest.get("success") is False
        case list(parts) if "output" in item:
            content = narrow_content(parse_content(parts))
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


def _call(item: JsonObject, parse: Callable[[str], JsonObject]) -> Block:
    match item:
        case {
            "type": "function_call",
            "call_id": str(id),
            "name": str(name),
            "arguments": str(text),
        }:
            data = parse(text)
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
        item = _kept_item(role, block)
        if item is None:
            parts.append(_kept_part(role, block))
            continue
        if parts:
            yield {"type": "message", "role": role, "content": parts}
            parts = []
        yield item
    if parts:
        yield {"type": "message", "role": role, "content": parts}


def _kept_item(role: str, block: Block) -> JsonObject | None:
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
    output = (
        content if isinstance(content, str) else [_kept_part("user", inner) for inner in content]
    )
    result: JsonObject = {
        "type": "function_call_output",
        "call_id": block.tool_use_id,
        "output": output,
    }
    marked = result | ({"is_error": True} if block.is_error else {})
    return with_extra(marked, block.extra, RESULT_FIELDS)


def _kept_part(role: str, block: Block) -> JsonObject:
    match block:
        case Text(text=text, extra=extra):
            return with_extra({"type": _SPOKEN[role], "text": text}, extra, TEXT_FIELDS)
        case Image(source=source, extra=extra) if url := data_url(source):
            return with_extra({"type": "input_image", "image_url": url}, extra, IMAGE_URL_FIELDS)
    return wrap(block)
