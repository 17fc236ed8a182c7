"""Chat completion lists, read and written: a request, the bare list, or one message per line.

Read: leading system messages are the frame; later ones are hidden messages. Calls in the old
style, which had no ids, get some. Of a message's fields the model never reads, only the id is kept.

Written: a request that can be sent. What the format cannot hold is left out and counted: thinking
and its signatures, the error mark of a result, pictures and files inside a result and files that
are not base64 (a note stands there instead), and, in one answer, the place of what came between
tool calls (it is put before them). All else reads back the same.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import msgspec

from longhold.core.log.entries import AnyEntry, Framed, Section
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
    block_from_wire,
    block_to_wire,
    is_thought,
    text_of,
)
from longhold.core.view import View
from longhold.core.view.block_roles import to_spoken
from longhold.session.importing.dialogue import Dialogue
from longhold.session.importing.parts import (
    IMAGE_URL_FIELDS,
    TEXT_FIELDS,
    arguments_of,
    content_of,
    data_url,
    extra_of,
    source_of,
    split_results,
    with_extra,
)
from longhold.session.importing.provider import provider_of
from longhold.session.importing.records import count, document, message_list
from longhold.session.importing.writer import ImportAccount, TranscriptWriter

NAME = "openai"

NO_PICTURE = "(A picture or a file stood here. This format cannot hold it in this place.)"
"""Stands in for what cannot be written, so that it is not taken for absent."""

SYSTEM_ROLES = ("system", "developer")

CALL_FIELDS = frozenset({"id", "type", "function"})
RESULT_FIELDS = frozenset({"role", "content", "tool_call_id", "name", "id"})

_FRAME = frozenset({"tools", "model", "max_tokens", "max_completion_tokens", "stream"})
"""Fields of a request that have a place of their own, or, like streaming, none in a frame."""


def sniff(first: bytes) -> bool:
    return provider_of(first) == NAME


def read(lines: Iterable[bytes], writer: TranscriptWriter) -> Iterator[AnyEntry]:
    request, messages = message_list(lines, writer.account)
    sections: list[Section] = []
    first = []
    for number, message in messages:
        if message.get("role") not in SYSTEM_ROLES:
            first.append((number, message))
            break
        text = text_of(chat_parts(message.get("content")))
        sections.append(Section(name=message["role"], text=text))
    reader = _Reader(writer)
    yield from reader.dialogue.begin(request, _frame(request, tuple(sections)))
    for number, message in chain(first, messages):
        yield from reader.message(message, number)


def _frame(request: JsonObject, sections: tuple[Section, ...]) -> Framed:
    limit = request.get("max_completion_tokens") or request.get("max_tokens")
    tools = request.get("tools")
    return Framed(
        sections=sections,
        tools=tuple(_tool(tool) for tool in tools) if isinstance(tools, list) else (),
        options={key: value for key, value in request.items() if key not in _FRAME},
        max_output_tokens=count(limit),
    )


class _Reader:
    def __init__(self, writer: TranscriptWriter) -> None:
        self.dialogue = Dialogue(writer)
        self._writer = writer
        self._function_call = ""
        """The id that was made up for the last call in the old style, which had none."""

    def message(self, message: JsonObject, number: int) -> Iterator[AnyEntry]:
        match message.get("role"):
            case "assistant":
                origin = str(message.get("id") or "")
                yield from self.dialogue.replied(self._answer(message), origin=origin)
            case "tool":
                yield self._result(message, str(message.get("tool_call_id") or ""))
            case "function":
                yield self._result(message, self._function_call)
            case _:
                content = chat_parts(message.get("content"))
                yield from self.dialogue.spoken(message, number, content, SYSTEM_ROLES)

    def _answer(self, message: JsonObject) -> Content:
        blocks: list[Block] = []
        thought = message.get("reasoning_content")
        if isinstance(thought, str) and thought:
            blocks.append(Thinking(thinking=thought))
        blocks += chat_parts(message.get("content"))
        if refusal := message.get("refusal"):
            blocks.append(Opaque(raw={"type": "refusal", "refusal": refusal}))
        calls = message.get("tool_calls")
        blocks += [self._call(call) for call in calls] if isinstance(calls, list) else []
        if isinstance(function := message.get("function_call"), dict):
            self._function_call = f"function-call-{self._writer.last + 1}"
            blocks.append(self._call({"id": self._function_call, "function": function}))
        return tuple(blocks)

    def _call(self, raw: Json) -> Block:
        match raw:
            case {"function": {"name": str(name), "arguments": str(text)}}:
                return ToolUse(
                    id=str(raw.get("id") or ""),
                    name=name,
                    input=arguments_of(text, self._writer.account),
                    extra=extra_of(raw, CALL_FIELDS),
                )
            case {"custom": {"name": str(name), "input": str(text)}}:
                return ToolUse(id=str(raw.get("id") or ""), name=name, input={"input": text})
        return block_from_wire(raw)

    def _result(self, message: JsonObject, tool_use_id: str) -> AnyEntry:
        content = message.get("content")
        result = ToolResult(
            tool_use_id=tool_use_id,
            content=content if isinstance(content, str) else to_spoken(chat_parts(content)),
            extra=extra_of(message, RESULT_FIELDS),
        )
        return self.dialogue.ran(result, origin=str(message.get("id") or ""))


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


def _tool(raw: Json) -> JsonObject:
    function = raw.get("function") if isinstance(raw, dict) else None
    if not isinstance(function, dict) or "parameters" not in function:
        return raw if isinstance(raw, dict) else {"type": "unknown", "value": raw}
    return {("input_schema" if k == "parameters" else k): v for k, v in function.items()}


def write(view: View, account: ImportAccount | None = None, **_where: str) -> Iterator[bytes]:
    writer = _Writer(account or ImportAccount())
    frame = view.frame or Framed()
    messages = (wire for message in view.messages() for wire in writer.message(message))
    return document(_request(view.model, frame), chain(_system(frame), messages))


def losses(view: View) -> Counter[str]:
    account = ImportAccount()
    deque(write(view, account), maxlen=0)
    return account.skipped


class _Writer:
    def __init__(self, account: ImportAccount) -> None:
        self._skipped = account.skipped

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
            wire["tool_calls"] = [_call(call) for call in calls]
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
            self._skipped[what] += times


def _image(url: str, extra: JsonObject) -> JsonObject:
    image = {"url": url}
    if isinstance(extra.get("detail"), str):
        image["detail"] = extra["detail"]
        extra = {key: value for key, value in extra.items() if key != "detail"}
    return with_extra({"type": "image_url", "image_url": image}, extra, IMAGE_URL_FIELDS)


def _call(block: ToolUse) -> JsonObject:
    function = {"name": block.name, "arguments": msgspec.json.encode(block.input).decode()}
    fields: JsonObject = {"id": block.id, "type": "function", "function": function}
    return with_extra(fields, block.extra, CALL_FIELDS)


def _tool_to_wire(tool: JsonObject) -> JsonObject:
    if "name" not in tool or "input_schema" not in tool:
        return tool
    fields = {("parameters" if k == "input_schema" else k): v for k, v in tool.items()}
    return {"type": "function", "function": fields}


def _request(model: str, frame: Framed) -> JsonObject:
    fields: JsonObject = {
        "model": model,
        "max_completion_tokens": frame.max_output_tokens,
        "tools": [_tool_to_wire(tool) for tool in frame.tools],
    }
    return {key: value for key, value in fields.items() if value} | frame.options


def _system(frame: Framed) -> Iterator[JsonObject]:
    for section in frame.sections:
        role = section.name if section.name in SYSTEM_ROLES else "system"
        yield {"role": role, "content": section.text}
    if frame.instructions:
        yield {"role": "system", "content": frame.instructions}
