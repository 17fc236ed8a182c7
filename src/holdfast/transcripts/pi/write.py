"""Write what a model sees as a session of the pi coding agent that can be read back.

One branch, entries numbered from one, so the same view always gives the same file. Blocks
pi has no shape for are wrapped whole. The system prompt and the tools are not part of a
session; usage is written as zero, because a view does not hold it for each answer.
"""

from collections.abc import Iterator
from itertools import count

from holdfast.messages import (
    Block,
    Content,
    Image,
    JsonObject,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from holdfast.transcripts.parts import with_extra, wrap
from holdfast.transcripts.pi.read import (
    CALL_FIELDS,
    IMAGE_FIELDS,
    RESULT_FIELDS,
    TEXT_FIELDS,
    THINKING_FIELDS,
)
from holdfast.transcripts.records import line, possible, timestamp
from holdfast.view import View

VERSION = 3
"""The version of the format that is written."""

_NO_USAGE = {
    "input": 0,
    "output": 0,
    "cacheRead": 0,
    "cacheWrite": 0,
    "totalTokens": 0,
    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0},
}


def write(view: View, *, session: str = "holdfast", directory: str = "") -> Iterator[bytes]:
    writer = _Writer(view.history[-1].at if view.history else 0.0, view.model)
    yield writer.header(session, directory)
    if view.model:
        yield writer.entry("model_change", {"provider": "", "modelId": view.model})
    if view.title:
        yield writer.entry("session_info", {"name": view.title})
    for message in view.messages():
        if message.role == "assistant":
            yield writer.answer(message.content)
        else:
            yield from writer.said(message.content)


class _Writer:
    """Hands out ids by which entries are linked."""

    def __init__(self, at: float, model: str) -> None:
        self._at = possible(at)
        self._model = model
        self._parent: str | None = None
        self._ids = count(1)
        self._tools: dict[str, str] = {}

    def header(self, session: str, directory: str) -> bytes:
        header = {"type": "session", "version": VERSION, "id": session}
        return line({**header, "timestamp": timestamp(self._at), "cwd": directory})

    def entry(self, kind: str, fields: JsonObject) -> bytes:
        id = f"{next(self._ids):08x}"
        head = {"type": kind, "id": id, "parentId": self._parent, "timestamp": timestamp(self._at)}
        self._parent = id
        return line(head | fields)

    def answer(self, content: Content) -> bytes:
        uses = [block for block in content if isinstance(block, ToolUse)]
        self._tools.update((use.id, use.name) for use in uses)
        return self._message(
            {
                "role": "assistant",
                "content": [_part(block) for block in content],
                "api": "",
                "provider": "",
                "model": self._model,
                "usage": _NO_USAGE,
                "stopReason": "toolUse" if uses else "stop",
            }
        )

    def said(self, content: Content) -> Iterator[bytes]:
        """Write results, each by itself, then what was said with them."""
        rest = []
        for block in content:
            if isinstance(block, ToolResult):
                yield self._message(self._result(block))
            else:
                rest.append(_part(block))
        if rest:
            yield self._message({"role": "user", "content": rest})

    def _result(self, block: ToolResult) -> JsonObject:
        content = block.content
        is_text = isinstance(content, str)
        blocks = (Text(text=content),) if isinstance(content, str) else content
        fields: JsonObject = {
            "role": "toolResult",
            "toolCallId": block.tool_use_id,
            "toolName": self._tools.get(block.tool_use_id, ""),
            "content": [_part(inner) for inner in blocks],
            "isError": block.is_error,
        }
        return with_extra(
            fields | ({"isText": True} if is_text else {}), block.extra, RESULT_FIELDS
        )

    def _message(self, message: JsonObject) -> bytes:
        return self.entry("message", {"message": message | {"timestamp": round(self._at * 1000)}})


def _part(block: Block) -> JsonObject:
    match block:
        case Text(text=text, extra=extra):
            return with_extra({"type": "text", "text": text}, extra, TEXT_FIELDS)
        case Thinking(thinking=text, signature=signature, extra=extra):
            thought = {"type": "thinking", "thinking": text}
            signed = thought | ({"thinkingSignature": signature} if signature else {})
            return with_extra(signed, extra, THINKING_FIELDS)
        case RedactedThinking(data=data, extra=extra):
            hidden = {
                "type": "thinking",
                "thinking": "",
                "thinkingSignature": data,
                "redacted": True,
            }
            return with_extra(hidden, extra, THINKING_FIELDS)
        case ToolUse(id=id, name=name, input=data, extra=extra):
            call = {"type": "toolCall", "id": id, "name": name, "arguments": data}
            return with_extra(call, extra, CALL_FIELDS)
        case Image(source=source, extra=extra):
            match source:
                case {"type": "base64", "media_type": str(kind), "data": str(data), **rest} if (
                    not rest
                ):
                    image = {"type": "image", "data": data, "mimeType": kind}
                    return with_extra(image, extra, IMAGE_FIELDS)
    return wrap(block)
