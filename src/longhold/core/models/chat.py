"""A Messages API request converted for a chat endpoint.

The same request always becomes the same bytes. What a chat endpoint has no place for is left out
only where it steers (cache markers, thinking); content is never dropped: a block without a
counterpart is written as text.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from longhold.core.messages import Block, Content, Json, JsonObject, Text, Thinking, ToolUse, Usage
from longhold.core.messages.usage import count_of, fields_of
from longhold.core.models.assemble import (
    NAMELESS,
    early_end_error,
    objects,
    parse_input,
    text_in,
    word,
)
from longhold.core.models.protocol import (
    BlockFinished,
    Event,
    Finished,
    Pulse,
    Reply,
    Started,
    TextDelta,
    ThinkingDelta,
)
from longhold.errors import RequestRejected

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


def outcome_text(result: JsonObject) -> str:
    """Return a result as text; its pictures follow in the next user message."""
    lines = []
    for part in wire_blocks(result.get("content")):
        is_picture = part["type"] in {"image", "document"}
        lines.append(f"[{part['type']}: see below]" if is_picture else _text(part))
    text = "\n".join(lines)
    return f"Error: {text}" if result.get("is_error") else text


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
    return {"type": "text", "text": _text(block)}


def _text(block: JsonObject) -> str:
    """Return a block as text; one without a counterpart is written as JSON."""
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "compaction", "content": str(text)}:
            return text
        case {"type": "document", "source": {"type": "text", "data": str(text)}}:
            return text
    bare = {key: value for key, value in block.items() if key != "cache_control"}
    return msgspec.json.encode(bare).decode()


def join_text(blocks: Iterable[JsonObject]) -> str:
    return "\n\n".join(_text(block) for block in blocks)


def wire_blocks(content: Json) -> list[JsonObject]:
    if content is None:
        return []
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


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

_REASONING_FIELDS = ("reasoning_content", "reasoning")
"""vLLM and llama.cpp use the first, Ollama and routers the second."""


@dataclass(slots=True)
class _TextBlock:
    kind: Literal["text", "thinking"]
    pieces: list[str] = field(default_factory=list)

    def finish(self) -> Block:
        text = "".join(self.pieces)
        return Text(text=text) if self.kind == "text" else Thinking(thinking=text)


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    def finish(self, otherwise_id: str) -> Block:
        text = "".join(self.pieces)
        name = self.name or NAMELESS
        return ToolUse(id=self.id or otherwise_id, name=name, input=parse_input(text))


class ChatAssembly:
    def __init__(self, request_id: str = "") -> None:
        self.request_id = request_id
        self._id = ""
        self._model = ""
        self._speech: _TextBlock | None = None
        self._calls: list[_Call] = []
        self._places: dict[str, _Call] = {}
        self._content: list[Block] = []
        self._reason = ""
        self._has_refused = False
        self._usage = Usage()
        self.has_begun = False

    def feed(self, chunk: JsonObject) -> Sequence[Event]:
        events: list[Event] = [] if self.has_begun else [self._start(chunk)]
        if chunk.get("usage"):
            self._usage = usage_from_chat(chunk["usage"])
        for choice in objects(chunk.get("choices")):
            if choice.get("index"):
                continue
            events += self._take(fields_of(choice.get("delta")))
            self._reason = word(choice.get("finish_reason")) or self._reason
        return events or (Pulse(),)

    def end(self) -> Sequence[Event]:
        if not self._reason:
            raise early_end_error(self.request_id, has_begun=self.has_begun)
        events = [*self._hush()]
        for number, call in enumerate(self._calls):
            events += self._add(call.finish(f"call_{self._id}_{number}"))
        return (*events, Finished(reply=self._reply(tuple(self._content))))

    def _start(self, chunk: JsonObject) -> Event:
        self.has_begun = True
        self._id = word(chunk.get("id"))
        self._model = word(chunk.get("model"))
        return Started(response_id=self._id, model=self._model)

    def _take(self, delta: Mapping[str, Json]) -> list[Event]:
        events: list[Event] = []
        for name in _REASONING_FIELDS:
            if text := text_in(delta.get(name)):
                events += self._speak("thinking", text)
                break
        if text := text_in(delta.get("content")):
            events += self._speak("text", text)
        if text := text_in(delta.get("refusal")):
            self._has_refused = True
            events += self._speak("text", text)
        for part in objects(delta.get("tool_calls")):
            events += self._hush()
            self._extend_call(part)
        return events

    def _speak(self, kind: Literal["text", "thinking"], text: str) -> list[Event]:
        events = self._hush() if self._speech and self._speech.kind != kind else []
        if self._speech is None:
            self._speech = _TextBlock(kind)
        self._speech.pieces.append(text)
        index = len(self._content)
        delta = TextDelta if kind == "text" else ThinkingDelta
        return [*events, delta(index=index, text=text)]

    def _hush(self) -> list[Event]:
        speech, self._speech = self._speech, None
        return self._add(speech.finish()) if speech else []

    def _add(self, block: Block) -> list[Event]:
        self._content.append(block)
        return [BlockFinished(index=len(self._content) - 1, block=block)]

    def _extend_call(self, part: JsonObject) -> None:
        """Add a piece to its call; some servers number every call 0 and tell them apart by id."""
        place, id = word(part.get("index")), word(part.get("id"))
        call = self._places.get(place)
        if call is None or (id and call.id and id != call.id):
            call = self._places[place] = _Call()
            self._calls.append(call)
        function = fields_of(part.get("function"))
        call.id = call.id or id
        call.name = call.name or word(function.get("name"))
        arguments = function.get("arguments")
        if isinstance(arguments, dict):  # some servers send the object itself
            arguments = msgspec.json.encode(arguments).decode()
        call.pieces.append(text_in(arguments))

    def _reply(self, content: Content) -> Reply:
        reason = STOP_REASONS.get(self._reason, self._reason)
        if self._has_refused:
            reason = "refusal"
        elif self._calls and reason == "end_turn":
            reason = "tool_use"
        return Reply(
            response_id=self._id,
            model=self._model,
            content=content,
            stop_reason=reason,
            usage=self._usage,
            request_id=self.request_id,
        )


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
