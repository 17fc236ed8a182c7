"""The Chat Completions codec for requests, messages, calls and tools.

The same request always encodes to the same bytes. Encoding drops cache breakpoints and thinking,
but never content. `ChatWriter` writes messages that can be read back. It counts lost parts.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import structs

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
    Thinking,
    ToolResult,
    ToolUse,
    Usage,
    block_from_wire,
    block_to_wire,
    content_from_wire,
    is_thought,
    narrow_content,
)
from longhold.core.messages.usage import fields_of
from longhold.core.wire import messages
from longhold.errors import RequestRejected

NO_PICTURE = "(A picture or a file stood here. This format cannot hold it in this place.)"
"""Replaces content that cannot be written, so that its absence is visible."""

_CALL_FIELDS = frozenset({"id", "type", "function"})
_RESULT_FIELDS = frozenset({"role", "content", "tool_call_id", "name", "id"})

_EFFORTS = frozenset({"low", "medium", "high"})

_BREAKPOINT: JsonObject = {"mode": "explicit"}


def encode_request(
    kwargs: JsonObject,
    *,
    limit_field: str = "max_completion_tokens",
    takes_breakpoints: bool = False,
) -> JsonObject:
    """Convert a Messages API request. `limit_field` is the endpoint's name for the output limit.

    `takes_breakpoints` keeps the system prompt's breakpoints, which end its shared part.
    """
    chat: JsonObject = {
        "model": kwargs["model"],
        "messages": list(_encode_messages(kwargs, takes_breakpoints)),
    }
    if tools := kwargs.get("tools"):
        chat["tools"] = [encode_tool(tool) for tool in tools]
        chat |= _encode_choice(kwargs.get("tool_choice") or {})
    if kwargs.get("max_tokens") is not None:
        chat[limit_field] = kwargs["max_tokens"]
    if kwargs.get("stop_sequences"):
        chat["stop"] = list(kwargs["stop_sequences"])
    chat |= {name: kwargs[name] for name in messages.SAME_NAME if name in kwargs}
    return chat | output_options(kwargs.get("output_config") or {})


def _encode_messages(kwargs: JsonObject, takes_breakpoints: bool) -> Iterator[JsonObject]:
    if system := messages.wire_blocks(kwargs.get("system")):
        parts = _system_parts(system)
        is_plain = not takes_breakpoints or len(parts) == 1
        content: Json = "\n\n".join(part["text"] for part in parts) if is_plain else parts
        yield {"role": "system", "content": content}
    for message in kwargs["messages"]:
        blocks = messages.wire_blocks(message["content"])
        match message["role"]:
            case "assistant":
                yield from filter(None, [encode_answer(blocks)])
            case "user":
                yield from _encode_user(blocks)
            case role:
                yield {"role": role, "content": messages.join_text(blocks)}


def _system_parts(system: Sequence[JsonObject]) -> list[JsonObject]:
    parts: list[JsonObject] = []
    texts: list[str] = []
    for i, block in enumerate(system):
        texts.append(block.get("text", ""))
        if "cache_control" in block or i == len(system) - 1:
            end = {"prompt_cache_breakpoint": _BREAKPOINT} if "cache_control" in block else {}
            parts.append({"type": "text", "text": "\n\n".join(texts)} | end)
            texts.clear()
    return parts


def encode_answer(blocks: Sequence[JsonObject], between: str = "\n\n") -> JsonObject | None:
    texts = [
        messages.block_text(block)
        for block in blocks
        if block["type"] not in messages.UNSPOKEN | {"tool_use"}
    ]
    calls = [
        _encode_call(block["id"], block["name"], block["input"])
        for block in blocks
        if block["type"] == "tool_use"
    ]
    if not texts and not calls:
        return None
    message = {"role": "assistant", "content": between.join(texts) if texts else None}
    return message | ({"tool_calls": calls} if calls else {})


def _encode_user(blocks: Sequence[JsonObject]) -> Iterator[JsonObject]:
    results = [block for block in blocks if block["type"] == "tool_result"]
    rest = [block for block in blocks if block["type"] != "tool_result"]
    pictures = [
        part
        for result in results
        for part in messages.wire_blocks(result.get("content"))
        if part["type"] in {"image", "document"}
    ]
    for result in results:
        yield _encode_result(result["tool_use_id"], messages.outcome_text(result))
    if parts := [_encode_part(block) for block in (*pictures, *rest)]:
        yield {"role": "user", "content": messages.join_parts(parts)}


def _encode_call(id: str, name: str, data: JsonObject) -> JsonObject:
    function = {"name": name, "arguments": messages.encode_input(data)}
    return {"id": id, "type": "function", "function": function}


def _encode_part(block: JsonObject) -> JsonObject:
    url = messages.url_of(block.get("source"))
    match block:
        case {"type": "image"} if url:
            return {"type": "image_url", "image_url": {"url": url}}
        case {"type": "document", "source": {"type": "base64"}} if url:
            name = block.get("title") or "document.pdf"
            return {"type": "file", "file": {"filename": name, "file_data": url}}
    return {"type": "text", "text": messages.block_text(block)}


def _encode_result(id: str, content: Json) -> JsonObject:
    return {"role": "tool", "tool_call_id": id, "content": content}


def encode_tool(tool: JsonObject) -> JsonObject:
    """Convert a tool definition. A definition in Chat Completions format is returned unchanged."""
    if "input_schema" in tool:
        names = ("name", "description", "input_schema", "strict")
        fields = {name: tool[name] for name in names if name in tool}
        return write_tool({k: v for k, v in fields.items() if v or k != "description"})
    if tool.get("type") == "custom" or "function" in tool:
        return tool
    raise RequestRejected(
        f"the tool {tool.get('name')!r} runs on Anthropic's side; leave it out for this model"
    )


def _encode_choice(choice: JsonObject) -> JsonObject:
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
    if config.get("effort") in _EFFORTS:
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


def decode_usage(value: Json) -> Usage:
    usage = messages.decode_usage(value, "prompt_tokens", "completion_tokens")
    details = {k: v for k, v in fields_of(value).items() if k.endswith("_details") and v}
    return structs.replace(usage, extra=details or None)


def decode_message(message: JsonObject) -> Content:
    match message.get("role"):
        case "assistant":
            return decode_answer(message)
        case "tool" | "function":
            id = message.get("tool_call_id") or message.get("name") or ""
            return (decode_result(message, str(id)),)
    return decode_content(message.get("content"))


def decode_answer(message: JsonObject, parse: messages.Parse = messages.parse_input) -> Content:
    blocks: list[Block] = []
    if isinstance(thought := message.get("reasoning_content"), str) and thought:
        blocks.append(Thinking(thinking=thought))
    blocks += decode_content(message.get("content"))
    if refusal := message.get("refusal"):
        blocks.append(Opaque(raw={"type": "refusal", "refusal": refusal}))
    if isinstance(calls := message.get("tool_calls"), list):
        blocks += [decode_call(call, parse) or block_from_wire(call) for call in calls]
    return tuple(blocks)


def decode_call(raw: Json, parse: messages.Parse = messages.parse_input) -> ToolUse | None:
    match raw:
        case {"function": {"name": str(name)} as function}:
            data, extra = (
                messages.read_arguments(function, parse),
                messages.extra_of(raw, _CALL_FIELDS),
            )
        case {"custom": {"name": str(name), "input": str(text)}}:
            data, extra = {"input": text}, None
        case _:
            return None
    return ToolUse(id=str(raw.get("id") or ""), name=name, input=data, extra=extra)


def decode_result(message: JsonObject, tool_use_id: str) -> ToolResult:
    content = message.get("content")
    return ToolResult(
        tool_use_id=tool_use_id,
        content=content if isinstance(content, str) else narrow_content(decode_content(content)),
        extra=messages.extra_of(message, _RESULT_FIELDS),
    )


def decode_content(raw: Json) -> Content:
    return content_from_wire(raw, _decode_part)


def _decode_part(part: Json) -> Block:
    match part:
        case {"type": "text", "text": str(text)}:
            return Text(text=text, extra=messages.extra_of(part, messages.TEXT_FIELDS))
        case {"type": "image_url", "image_url": {"url": str(url)} as image}:
            inside = messages.extra_of(image, frozenset({"url"})) or {}
            extra = inside | (messages.extra_of(part, messages.IMAGE_URL_FIELDS) or {})
            return Image(source=messages.source_of(url), extra=extra or None)
        case {"type": "file", "file": {"file_data": str(url), **rest}} if not rest:
            source = messages.source_of(url)
            return Document(source=source) if source["type"] == "base64" else Opaque(raw=part)
    return block_from_wire(part)


def decode_tool(raw: Json) -> JsonObject:
    function = raw.get("function") if isinstance(raw, dict) else None
    if not isinstance(function, dict) or "parameters" not in function:
        return raw if isinstance(raw, dict) else {"type": "unknown", "value": raw}
    return messages.rename(function, "parameters", "input_schema")


class ChatWriter:
    def __init__(self, lost: Counter[str]) -> None:
        self._lost = lost

    def message(self, message: Message) -> Iterator[JsonObject]:
        if message.role == "assistant":
            yield self._answer(message.content)
            return
        results, rest = messages.split_results(message.content)
        yield from map(self._result, results)
        if rest:
            yield {"role": "user", "content": self._content(rest)}

    def _answer(self, content: Content) -> JsonObject:
        spoken = [block for block in content if not is_thought(block)]
        self._count("thinking", len(content) - len(spoken))
        calls = [block for block in spoken if isinstance(block, ToolUse)]
        rest = [block for block in spoken if not isinstance(block, ToolUse)]
        self._count("text between tool calls", spoken != rest + calls)
        wire: JsonObject = {"role": "assistant", "content": self._content(rest) if rest else None}
        if calls:
            wire["tool_calls"] = [_write_call(call) for call in calls]
        return wire

    def _result(self, block: ToolResult) -> JsonObject:
        self._count("error flag of a result", block.is_error)
        wire = _encode_result(block.tool_use_id, self._result_content(block.content))
        return messages.with_extra(wire, block.extra, _RESULT_FIELDS)

    def _result_content(self, content: ResultContent) -> Json:
        if isinstance(content, str):
            return content
        return [
            self._replace("picture or file in a result")
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
                return messages.with_extra(
                    {"type": "text", "text": text}, extra, messages.TEXT_FIELDS
                )
            case Image(source=source, extra=extra) if url := messages.data_url(source):
                return _write_image(url, extra or {})
            case Document(source={"type": "base64"} as source, extra=None) if (
                url := messages.data_url(source)
            ):
                return {"type": "file", "file": {"file_data": url}}
            case Image() | Document():
                return self._replace("picture or file that is not base64")
        return block_to_wire(block)

    def _replace(self, what: str) -> JsonObject:
        self._count(what, 1)
        return {"type": "text", "text": NO_PICTURE}

    def _count(self, what: str, times: int) -> None:
        if times:
            self._lost[what] += times


def _write_image(url: str, extra: JsonObject) -> JsonObject:
    image = {"url": url}
    if isinstance(extra.get("detail"), str):
        image["detail"] = extra["detail"]
        extra = {key: value for key, value in extra.items() if key != "detail"}
    return messages.with_extra(
        {"type": "image_url", "image_url": image}, extra, messages.IMAGE_URL_FIELDS
    )


def _write_call(block: ToolUse) -> JsonObject:
    return messages.with_extra(
        _encode_call(block.id, block.name, block.input), block.extra, _CALL_FIELDS
    )


def write_tool(tool: JsonObject) -> JsonObject:
    if "name" not in tool or "input_schema" not in tool:
        return tool
    return {"type": "function", "function": messages.rename(tool, "input_schema", "parameters")}
