"""The chat-completions codec: requests, messages, calls and tools, both ways.

A request always becomes the same bytes. What a chat endpoint has no place for is left out only
where it steers (cache markers, thinking); content is never dropped: a block without a counterpart
is written as text. `ChatWriter` writes messages to be read back: what the format cannot hold is
left out and counted.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from longhold.core.messages import (
    Block,
    Content,
    Document,
    Image,
    Json,
    JsonObject,
    Message,
    Opaque,
    ResultContent,
    Text,
    ToolResult,
    ToolUse,
    Usage,
    block_from_wire,
    block_to_wire,
    is_thought,
)
from longhold.core.messages.usage import count_of, fields_of
from longhold.core.wire.messages import (
    IMAGE_URL_FIELDS,
    TEXT_FIELDS,
    block_text,
    content_of,
    data_url,
    extra_of,
    join_text,
    outcome_text,
    source_of,
    split_results,
    wire_blocks,
    with_extra,
)
from longhold.errors import RequestRejected

NO_PICTURE = "(A picture or a file stood here. This format cannot hold it in this place.)"
"""Stands in for what cannot be written, so that it is not taken for absent."""

SYSTEM_ROLES = ("system", "developer")

CALL_FIELDS = frozenset({"id", "type", "function"})
RESULT_FIELDS = frozenset({"role", "content", "tool_call_id", "name", "id"})

EFFORTS = frozenset({"low", "medium", "high"})

BREAKPOINT: JsonObject = {"mode": "explicit"}
"""How an endpoint that takes breakpoints wants one written."""

_SAME_NAME = ("temperature", "top_p", "service_tier", "prompt_cache_key", "extra_body")
_UNSPOKEN = frozenset({"thinking", "redacted_thinking"})
"""Reasoning is the provider's own; a chat endpoint does not take it back."""


def chat_kwargs(
    kwargs: JsonObject,
    *,
    limit_field: str = "max_completion_tokens",
    takes_breakpoints: bool = False,
) -> JsonObject:
    """Convert a request; `limit_field` is what the endpoint calls the output limit.

    Where an endpoint caches by itself, markers on messages say nothing new; those in the system
    prompt part what sessions share from what they do not, and are said where that is possible.
    """
    messages = list(_messages(kwargs, takes_breakpoints))
    chat: JsonObject = {"model": kwargs["model"], "messages": messages}
    if tools := kwargs.get("tools"):
        chat["tools"] = [chat_tool(tool) for tool in tools]
        chat |= _choice(kwargs.get("tool_choice") or {})
    if kwargs.get("max_tokens") is not None:
        chat[limit_field] = kwargs["max_tokens"]
    if kwargs.get("stop_sequences"):
        chat["stop"] = list(kwargs["stop_sequences"])
    chat |= {name: kwargs[name] for name in _SAME_NAME if name in kwargs}
    return chat | output_options(kwargs.get("output_config") or {})


def _messages(kwargs: JsonObject, takes_breakpoints: bool) -> Iterator[JsonObject]:
    system = wire_blocks(kwargs.get("system"))
    if system:
        parts = _system_parts(system)
        is_plain = not takes_breakpoints or len(parts) == 1
        content: Json = "\n\n".join(part["text"] for part in parts) if is_plain else parts
        yield {"role": "system", "content": content}
    for message in kwargs["messages"]:
        match message["role"]:
            case "assistant":
                yield from _assistant(wire_blocks(message["content"]))
            case "user":
                yield from _user(wire_blocks(message["content"]))
            case role:
                yield {"role": role, "content": join_text(wire_blocks(message["content"]))}


def _system_parts(system: Sequence[JsonObject]) -> list[JsonObject]:
    """Join the blocks between markers; each marked part ends a prefix that can be reused."""
    parts: list[JsonObject] = []
    texts: list[str] = []
    for i, block in enumerate(system):
        texts.append(block.get("text", ""))
        if "cache_control" in block or i == len(system) - 1:
            end = {"prompt_cache_breakpoint": BREAKPOINT} if "cache_control" in block else {}
            parts.append({"type": "text", "text": "\n\n".join(texts)} | end)
            texts.clear()
    return parts


def _assistant(blocks: Sequence[JsonObject]) -> Iterator[JsonObject]:
    """Yield text first, then tool calls; reasoning alone makes no message."""
    said = [block for block in blocks if block["type"] not in _UNSPOKEN | {"tool_use"}]
    calls = [_call(block) for block in blocks if block["type"] == "tool_use"]
    if not said and not calls:
        return
    message: JsonObject = {"role": "assistant", "content": join_text(said) if said else None}
    if calls:
        message["tool_calls"] = calls
    yield message


def _user(blocks: Sequence[JsonObject]) -> Iterator[JsonObject]:
    """Yield each result as a message of its own, then what the user said, with all pictures."""
    results = [block for block in blocks if block["type"] == "tool_result"]
    rest = [block for block in blocks if block["type"] != "tool_result"]
    pictures = [
        part
        for result in results
        for part in wire_blocks(result.get("content"))
        if part["type"] in {"image", "document"}
    ]
    for result in results:
        yield {
            "role": "tool",
            "tool_call_id": result["tool_use_id"],
            "content": outcome_text(result),
        }
    if parts := [_part(block) for block in (*pictures, *rest)]:
        is_plain = all(part["type"] == "text" for part in parts)
        texts = "\n\n".join(part["text"] for part in parts) if is_plain else ""
        yield {"role": "user", "content": texts if is_plain else parts}


def _call(block: JsonObject) -> JsonObject:
    arguments = msgspec.json.encode(block["input"]).decode()
    return {
        "id": block["id"],
        "type": "function",
        "function": {"name": block["name"], "arguments": arguments},
    }


def _part(block: JsonObject) -> JsonObject:
    match block:
        case {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}:
            return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}
        case {"type": "image", "source": {"type": "url", "url": url}}:
            return {"type": "image_url", "image_url": {"url": url}}
        case {"type": "document", "source": {"type": "base64", "media_type": kind, "data": data}}:
            name = block.get("title") or "document.pdf"
            file = {"filename": name, "file_data": f"data:{kind};base64,{data}"}
            return {"type": "file", "file": file}
    return {"type": "text", "text": block_text(block)}


def chat_tool(tool: JsonObject) -> JsonObject:
    """Convert a tool's definition; a kind of chat endpoints' own stays as it is."""
    if "input_schema" not in tool and (tool.get("type") == "custom" or "function" in tool):
        return tool
    if "input_schema" not in tool:
        raise RequestRejected(
            f"the tool {tool.get('name')!r} runs on Anthropic's side; leave it out for this model"
        )
    function: JsonObject = {"name": tool["name"]}
    if tool.get("description"):
        function["description"] = tool["description"]
    function["parameters"] = tool["input_schema"]
    if "strict" in tool:
        function["strict"] = tool["strict"]
    return {"type": "function", "function": function}


def _choice(choice: JsonObject) -> JsonObject:
    chosen: JsonObject = {}
    match choice.get("type"):
        case "any":
            chosen["tool_choice"] = "required"
        case "tool":
            function = {"name": choice["name"]}
            chosen["tool_choice"] = {"type": "function", "function": function}
        case "auto" | "none" as same:
            chosen["tool_choice"] = same
    if choice.get("disable_parallel_tool_use"):
        chosen["parallel_tool_calls"] = False
    return chosen


def output_options(config: JsonObject) -> JsonObject:
    chosen: JsonObject = {}
    if config.get("effort") in EFFORTS:
        chosen["reasoning_effort"] = config["effort"]
    match config.get("format"):
        case {"type": "json_schema", "schema": schema}:
            named = {"name": "answer", "schema": schema, "strict": True}
            chosen["response_format"] = {"type": "json_schema", "json_schema": named}
    return chosen


STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
}


def usage_from_chat(value: Json) -> Usage:
    """Read a chat endpoint's usage, whose prompt count includes what was cached."""
    raw = fields_of(value)
    details = fields_of(raw.get("prompt_tokens_details"))
    read = count_of(details.get("cached_tokens"))
    written = count_of(details.get("cache_write_tokens"))
    extra = {key: value for key, value in raw.items() if key.endswith("_details") and value}
    return Usage(
        input_tokens=max(0, count_of(raw.get("prompt_tokens")) - read - written),
        output_tokens=count_of(raw.get("completion_tokens")),
        cache_read_tokens=read,
        cache_write_tokens=written,
        extra=extra or None,
    )


def chat_parts(raw: Json) -> Content:
    return content_of(raw, _block)


def _block(part: Json) -> Block:
    match part:
        case {"type": "text", "text": str(text)}:
            return Text(text=text, extra=extra_of(part, TEXT_FIELDS))
        case {"type": "image_url", "image_url": {"url": str(url)} as image}:
            inside = extra_of(image, frozenset({"url"})) or {}
            extra = inside | (extra_of(part, IMAGE_URL_FIELDS) or {})
            return Image(source=source_of(url), extra=extra or None)
        case {"type": "file", "file": {"file_data": str(url), **rest}} if not rest:
            source = source_of(url)
            return Document(source=source) if source["type"] == "base64" else Opaque(raw=part)
    return block_from_wire(part)


def decode_tool(raw: Json) -> JsonObject:
    function = raw.get("function") if isinstance(raw, dict) else None
    if not isinstance(function, dict) or "parameters" not in function:
        return raw if isinstance(raw, dict) else {"type": "unknown", "value": raw}
    return {("input_schema" if k == "parameters" else k): v for k, v in function.items()}


class ChatWriter:
    def __init__(self, lost: Counter[str]) -> None:
        self._lost = lost

    def message(self, message: Message) -> Iterator[JsonObject]:
        """Yield one of our messages as the several that the format makes of it."""
        if message.role == "assistant":
            yield self._answer(message.content)
            return
        results, rest = split_results(message.content)
        yield from map(self._result, results)
        if rest:
            yield {"role": "user", "content": self._content(rest)}

    def _answer(self, content: Content) -> JsonObject:
        spoken = [block for block in content if not is_thought(block)]
        self._count("thinking", len(content) - len(spoken))
        calls = [block for block in spoken if isinstance(block, ToolUse)]
        rest = [block for block in spoken if not isinstance(block, ToolUse)]
        self._count("what came between tool calls", spoken != rest + calls)
        wire: JsonObject = {"role": "assistant", "content": self._content(rest) if rest else None}
        if calls:
            wire["tool_calls"] = [_kept_call(call) for call in calls]
        return wire

    def _result(self, block: ToolResult) -> JsonObject:
        self._count("error mark of a result", block.is_error)
        wire: JsonObject = {
            "role": "tool",
            "tool_call_id": block.tool_use_id,
            "content": self._result_content(block.content),
        }
        return with_extra(wire, block.extra, RESULT_FIELDS)

    def _result_content(self, content: ResultContent) -> Json:
        if isinstance(content, str):
            return content
        pictures = sum(isinstance(block, Image | Document) for block in content)
        self._count("picture or file in a result", pictures)
        return [
            {"type": "text", "text": NO_PICTURE}
            if isinstance(block, Image | Document)
            else self._part(block)
            for block in content
        ]

    def _content(self, blocks: Sequence[Block]) -> Json:
        match blocks:
            case [Text(text=text, extra=None)]:
                return text
        return [self._part(block) for block in blocks]

    def _part(self, block: Block) -> JsonObject:
        match block:
            case Text(text=text, extra=extra):
                return with_extra({"type": "text", "text": text}, extra, TEXT_FIELDS)
            case Image(source=source, extra=extra) if url := data_url(source):
                return _image(url, extra or {})
            case Document(source={"type": "base64"} as source, extra=None) if url := data_url(
                source
            ):
                return {"type": "file", "file": {"file_data": url}}
            case Image() | Document():
                self._count("picture or file that is not base64", 1)
                return {"type": "text", "text": NO_PICTURE}
        return block_to_wire(block)

    def _count(self, what: str, times: int) -> None:
        if times:
            self._lost[what] += times


def _image(url: str, extra: JsonObject) -> JsonObject:
    image = {"url": url}
    if isinstance(extra.get("detail"), str):
        image["detail"] = extra["detail"]
        extra = {key: value for key, value in extra.items() if key != "detail"}
    return with_extra({"type": "image_url", "image_url": image}, extra, IMAGE_URL_FIELDS)


def _kept_call(block: ToolUse) -> JsonObject:
    function = {"name": block.name, "arguments": msgspec.json.encode(block.input).decode()}
    fields: JsonObject = {"id": block.id, "type": "function", "function": function}
    return with_extra(fields, block.extra, CALL_FIELDS)


def encode_tool(tool: JsonObject) -> JsonObject:
    if "name" not in tool or "input_schema" not in tool:
        return tool
    fields = {("parameters" if k == "input_schema" else k): v for k, v in tool.items()}
    return {"type": "function", "function": fields}
