"""Write what a model sees as a chat completion request that can be sent as it is.

What the format cannot hold is left out and counted in the account: thinking and its
signatures, the error mark of a result, pictures and files inside a result and files that
are not base64 (a note stands there instead), and, in one answer, the place of what came
between tool calls (it is put before them). All else reads back the same.
"""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from itertools import chain

import msgspec

from holdfast.log.entries import Framed
from holdfast.messages import (
    Block,
    Content,
    Document,
    Image,
    Json,
    JsonObject,
    Message,
    ResultContent,
    Text,
    ToolResult,
    ToolUse,
    block_to_wire,
    is_thought,
)
from holdfast.transcripts.openai.read import (
    CALL_FIELDS,
    IMAGE_FIELDS,
    RESULT_FIELDS,
    SYSTEM_ROLES,
    TEXT_FIELDS,
)
from holdfast.transcripts.parts import data_url, with_extra
from holdfast.transcripts.records import document
from holdfast.transcripts.writer import ImportAccount
from holdfast.view import View

NO_PICTURE = "(A picture or a file stood here. This format cannot hold it in this place.)"
"""Stands in for what cannot be written, so that nobody takes its absence for its content."""


def write(view: View, account: ImportAccount | None = None) -> Iterator[bytes]:
    writer = _Writer(account or ImportAccount())
    frame = view.frame or Framed()
    messages = (wire for message in view.messages() for wire in writer.message(message))
    return document(_request(view.model, frame), chain(_system(frame), messages))


def losses(view: View) -> Counter[str]:
    account = ImportAccount()
    deque(write(view, account), maxlen=0)
    return account.skipped


class _Writer:
    """Writes messages and counts what had to be left out."""

    def __init__(self, account: ImportAccount) -> None:
        self._skipped = account.skipped

    def message(self, message: Message) -> Iterator[JsonObject]:
        """Yield one of our messages as the several that the format makes of it."""
        if message.role == "assistant":
            yield self._answer(message.content)
            return
        rest = []
        for block in message.content:
            if isinstance(block, ToolResult):
                yield self._result(block)
            else:
                rest.append(block)
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
    """Write a picture, its detail inside the URL's object."""
    image = {"url": url}
    if isinstance(extra.get("detail"), str):
        image["detail"] = extra["detail"]
        extra = {key: value for key, value in extra.items() if key != "detail"}
    return with_extra({"type": "image_url", "image_url": image}, extra, IMAGE_FIELDS)


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
