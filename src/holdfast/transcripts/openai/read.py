"""Read a chat completion list, message by message, into entries.

A file is a request (`messages` with `tools`, `model` and so on), the bare list of messages,
or one message per line. Leading system messages are the frame; later ones are said, hidden.
Calls in the old style, which had no ids, get some. Of a message's fields the model never
reads, only the id is kept.
"""

from collections.abc import Iterable, Iterator

from holdfast.log.entries import AnyEntry, Section, Switched
from holdfast.messages import (
    Block,
    Content,
    Document,
    Image,
    Json,
    JsonObject,
    Opaque,
    Text,
    Thinking,
    ToolUse,
    block_from_wire,
    text_of,
)
from holdfast.transcripts.dialogue import Dialogue
from holdfast.transcripts.parts import arguments_of, content_of, extra_of, source_of
from holdfast.transcripts.provider import provider_of
from holdfast.transcripts.records import count, message_list
from holdfast.transcripts.writer import TranscriptWriter

SYSTEM_ROLES = ("system", "developer")

TEXT_FIELDS = frozenset({"type", "text"})
IMAGE_FIELDS = frozenset({"type", "image_url"})
CALL_FIELDS = frozenset({"id", "type", "function"})
RESULT_FIELDS = frozenset({"role", "content", "tool_call_id", "name", "id"})

_FRAME = frozenset({"tools", "model", "max_tokens", "max_completion_tokens", "stream"})
"""Fields of a request that have a place of their own, or, like streaming, none in a frame."""


def sniff(first: bytes) -> bool:
    return provider_of(first) == "openai"


def read(lines: Iterable[bytes], scribe: TranscriptWriter) -> Iterator[AnyEntry]:
    request, messages = message_list(lines, scribe.account)
    reader = _Reader(scribe)
    for number, message in messages:
        role = message.get("role")
        if reader.is_opening and role in SYSTEM_ROLES:
            reader.sections.append(Section(name=role, text=text_of(_parts(message.get("content")))))
            continue
        yield from reader.open(request)
        yield from reader.message(message, number)
    yield from reader.open(request)


class _Reader:
    """What must be remembered from one message to the next."""

    def __init__(self, scribe: TranscriptWriter) -> None:
        self.sections: list[Section] = []
        self.is_opening = True
        self._scribe = scribe
        self._account = scribe.account
        self._dialogue = Dialogue(scribe)
        self._function_call = ""
        """The id that was made up for the last call in the old style, which had none."""

    def open(self, request: JsonObject) -> Iterator[AnyEntry]:
        """Write the frame, once all that belongs to it has been read."""
        if not self.is_opening:
            return
        self.is_opening = False
        limit = request.get("max_completion_tokens") or request.get("max_tokens")
        tools = request.get("tools")
        if request or self.sections:
            yield self._dialogue.framed(
                tuple(self.sections),
                tuple(_tool(tool) for tool in tools) if isinstance(tools, list) else (),
                options={key: value for key, value in request.items() if key not in _FRAME},
                max_output_tokens=count(limit),
            )
        model = request.get("model")
        if isinstance(model, str) and model:
            yield self._scribe.write(Switched(model=model))

    def message(self, message: JsonObject, number: int) -> Iterator[AnyEntry]:
        origin = str(message.get("id") or "")
        match message.get("role"):
            case "assistant":
                yield from self._dialogue.replied(self._answer(message), origin=origin)
            case "tool":
                yield self._result(message, str(message.get("tool_call_id") or ""), origin)
            case "function":
                yield self._result(message, self._function_call, origin)
            case "user":
                yield from self._dialogue.said(_parts(message.get("content")), origin=origin)
            case str(role):
                if role not in SYSTEM_ROLES:
                    self._account.repaired[f"message of the role {role}"] += 1
                content = _parts(message.get("content"))
                yield from self._dialogue.said(content, origin=origin, hidden=True)
            case _:
                self._account.malformed.append((number, "a message without a role"))

    def _answer(self, message: JsonObject) -> Content:
        blocks: list[Block] = []
        thought = message.get("reasoning_content")
        if isinstance(thought, str) and thought:
            blocks.append(Thinking(thinking=thought))
        blocks += _parts(message.get("content"))
        if refusal := message.get("refusal"):
            blocks.append(Opaque(raw={"type": "refusal", "refusal": refusal}))
        calls = message.get("tool_calls")
        blocks += [self._call(call) for call in calls] if isinstance(calls, list) else []
        if isinstance(function := message.get("function_call"), dict):
            self._function_call = f"function-call-{self._scribe.last + 1}"
            blocks.append(self._call({"id": self._function_call, "function": function}))
        return tuple(blocks)

    def _call(self, raw: Json) -> Block:
        match raw:
            case {"function": {"name": str(name), "arguments": str(text)}}:
                return ToolUse(
                    id=str(raw.get("id") or ""),
                    name=name,
                    input=arguments_of(text, self._account),
                    extra=extra_of(raw, CALL_FIELDS),
                )
            case {"custom": {"name": str(name), "input": str(text)}}:
                return ToolUse(id=str(raw.get("id") or ""), name=name, input={"input": text})
        return block_from_wire(raw)

    def _result(self, message: JsonObject, tool_use_id: str, origin: str) -> AnyEntry:
        content = message.get("content")
        return self._dialogue.ran(
            tool_use_id,
            content if isinstance(content, str) else _parts(content),
            extra=extra_of(message, RESULT_FIELDS),
            origin=origin,
        )


def _parts(raw: Json) -> Content:
    return content_of(raw, _block)


def _block(part: Json) -> Block:
    match part:
        case {"type": "text", "text": str(text)}:
            return Text(text=text, extra=extra_of(part, TEXT_FIELDS))
        case {"type": "image_url", "image_url": {"url": str(url)} as image}:
            inside = extra_of(image, frozenset({"url"})) or {}
            extra = inside | (extra_of(part, IMAGE_FIELDS) or {})
            return Image(source=source_of(url), extra=extra or None)
        case {"type": "file", "file": {"file_data": str(url), **rest}} if not rest:
            source = source_of(url)
            return Document(source=source) if source["type"] == "base64" else Opaque(raw=part)
    return block_from_wire(part)


def _tool(raw: Json) -> JsonObject:
    """Convert a tool's description to the shape that frames hold."""
    function = raw.get("function") if isinstance(raw, dict) else None
    if not isinstance(function, dict) or "parameters" not in function:
        return raw if isinstance(raw, dict) else {"type": "unknown", "value": raw}
    return {("input_schema" if k == "parameters" else k): v for k, v in function.items()}
