"""A Messages API request converted for the Responses endpoint, and that endpoint's answers.

The conversation goes in whole with each request (`store` is the caller's to decide): nothing is
kept on the provider's side that the log does not have. Items the Messages API has no block for,
such as reasoning, are kept as they came and sent back as they were.
"""

from collections.abc import Iterator, Sequence

import msgspec

from longhold.core.messages import Block, Json, JsonObject, Opaque, Text, ToolUse, Usage
from longhold.core.models.assemble import parse_input
from longhold.core.models.chat import join_text, outcome_text, output_options, wire_blocks
from longhold.core.models.protocol import Reply

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


def reply_from_responses(raw: JsonObject) -> Reply:
    content = tuple(block for item in raw.get("output") or () for block in blocks_of_item(item))
    reason = str((raw.get("incomplete_details") or {}).get("reason") or "")
    has_calls = any(isinstance(block, ToolUse) for block in content)
    return Reply(
        response_id=str(raw.get("id") or ""),
        model=str(raw.get("model") or ""),
        content=content,
        stop_reason=STOP_REASONS.get(reason, reason) or ("tool_use" if has_calls else "end_turn"),
        usage=_usage(raw.get("usage") or {}),
    )


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


def _usage(raw: JsonObject) -> Usage:
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
