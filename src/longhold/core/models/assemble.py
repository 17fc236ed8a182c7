"""The Messages API's stream of JSON events, put together to blocks and a reply.

No I/O and no SDK. Unknown fields, block types and delta types survive. An event that is repeated
word for word is ignored where that can be detected; one that contradicts what came before raises
`StreamBroken`.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from longhold.core.messages import (
    INVALID_INPUT,
    Block,
    Content,
    Json,
    JsonObject,
    block_from_wire,
    usage_from_wire,
)
from longhold.core.messages.usage import fields_of
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
from longhold.errors import StreamBroken

MOST_DEPTH = 100
"""No tool takes deeper input, and JSON readers give up at about a thousand."""
TOO_DEEP = "(nested too deeply)"
MOST_BITS = 10_000
"""Of an integer; Python writes none much longer as text."""

_MISREAD = (AttributeError, TypeError, ValueError, LookupError, RecursionError, OverflowError)


def tame(value: Any, depth: int = MOST_DEPTH) -> Json:
    """Return a value as JSON that every reader takes: no NaN, no huge integer, not too deep."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int | float):
        return _number(value)
    if depth <= 0:
        return TOO_DEEP
    if isinstance(value, dict):
        return {
            str(key): one if type(one) is str else tame(one, depth - 1)
            for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [tame(one, depth - 1) for one in value]
    return str(value)


def _number(value: int | float) -> int | float | None:
    if isinstance(value, int):
        return value if value.bit_length() <= MOST_BITS else None
    return value if math.isfinite(value) else None


def _is_deep(value: Json, depth: int = MOST_DEPTH) -> bool:
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return depth <= 0 or any(_is_deep(one, depth - 1) for one in inner)
    return False


def word(value: Json) -> str:
    return str(value) if isinstance(value, str | int | float) else ""


def text_in(value: Json) -> str:
    """Read text; some servers send it as a list of parts."""
    if isinstance(value, list):
        return "".join(
            text_in(part.get("text")) if isinstance(part, dict) else "" for part in value
        )
    return value if isinstance(value, str) else ""


def objects(value: Json) -> list[JsonObject]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


@contextmanager
def guard_reading() -> Iterator[None]:
    """Raise `StreamBroken` where an answer has a shape that nobody foresaw."""
    try:
        yield
    except _MISREAD as error:
        problem = f"{type(error).__name__}: {error}"
        raise StreamBroken(f"the answer cannot be read ({problem}); send it again") from error


_REPLY_FIELDS = frozenset(
    {"id", "type", "role", "content", "model", "usage", "stop_reason", "stop_sequence"}
    | {"diagnostics", "context_management"}
)
NAMELESS = "unnamed_tool"
"""The name of a tool use that came without one; there is no such tool, which the model is told."""
_DELTA_FRAME = frozenset({"type", "delta", "usage"})


@dataclass(slots=True)
class _Draft:
    raw: JsonObject
    pieces: dict[str, list[str]] = field(default_factory=dict)
    """Text per field, joined once at the end: joining as it comes would be quadratic."""

    def add(self, name: str, text: str) -> None:
        self.pieces.setdefault(name, []).append(text)

    def finish(self) -> Block:
        raw = dict(self.raw)
        for name, pieces in self.pieces.items():
            if name == "partial_json":
                raw["input"] = parse_input("".join(pieces), otherwise=raw.get("input"))
            else:
                raw[name] = text_in(raw.get(name)) + "".join(pieces)
        return block_in(raw)


def parse_input(text: str, *, otherwise: Json = None) -> JsonObject:
    """Parse a tool's input; text that is no JSON object is kept under `INVALID_INPUT`."""
    if not text.strip():
        return otherwise if isinstance(otherwise, dict) else {}
    try:
        parsed = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return {INVALID_INPUT: text}
    if not isinstance(parsed, dict) or _is_deep(parsed):
        return {INVALID_INPUT: text}
    return {key: tame(value) for key, value in parsed.items()}


def block_in(raw: Json) -> Block:
    """Read a block; a tool use without a proper id or name is one all the same."""
    if isinstance(raw, dict) and raw.get("type") == "tool_use":
        raw = raw | {"id": word(raw.get("id")), "name": word(raw.get("name")) or NAMELESS}
    return block_from_wire(raw)


def early_end_error(request_id: str, *, has_begun: bool) -> StreamBroken:
    when = "midway" if has_begun else "before the answer began"
    return StreamBroken(f"the stream ended {when}; send the request again", request_id=request_id)


def reply_of(message: JsonObject, content: Content, usage: Json, request_id: str = "") -> Reply:
    """Return a finished message as a reply; what is not known of it is kept as it came."""
    return Reply(
        response_id=word(message.get("id")),
        model=word(message.get("model")),
        content=content,
        stop_reason=word(message.get("stop_reason")),
        stop_sequence=word(message.get("stop_sequence")) or None,
        usage=usage_from_wire(usage),
        diagnostics=_object(message.get("diagnostics")),
        context_management=_object(message.get("context_management")),
        request_id=request_id,
        extra={key: value for key, value in message.items() if key not in _REPLY_FIELDS},
    )


class Assembly:
    def __init__(self, request_id: str = "") -> None:
        self.request_id = request_id
        self._message: JsonObject = {}
        self._usage: JsonObject = {}
        self._open: dict[int, _Draft] = {}
        self._done: dict[int, Block] = {}
        self._has_finished = False

    @property
    def has_begun(self) -> bool:
        return bool(self._message)

    def feed(self, event: JsonObject) -> Sequence[Event]:
        """Take one event of the wire and return the events it completes."""
        if self._has_finished:
            return ()
        match event:
            case {"type": "message_start", "message": dict(message)}:
                return self._start(message)
            case {"type": "content_block_start", "index": int(index), "content_block": dict(block)}:
                return self._open_block(index, block)
            case {"type": "content_block_delta", "index": int(index), "delta": dict(delta)}:
                return self._extend(index, delta)
            case {"type": "content_block_stop", "index": int(index)}:
                return self._close_block(index)
            case {"type": "message_delta"}:
                return self._conclude(event)
            case {"type": "message_stop"}:
                return self.end()
        return (Pulse(),)

    def end(self) -> Sequence[Event]:
        if self._has_finished:
            return ()
        if not self._message.get("stop_reason") or self._open:
            raise early_end_error(self.request_id, has_begun=self.has_begun)
        self._has_finished = True
        return (Finished(reply=self._reply()),)

    def _start(self, message: JsonObject) -> Sequence[Event]:
        if self.has_begun:
            if message.get("id") == self._message.get("id"):
                return (Pulse(),)
            raise self._contradiction("a second message began inside the first")
        self._message = dict(message)
        self._usage = dict(fields_of(message.get("usage")))
        started = Started(
            response_id=word(message.get("id")),
            model=word(message.get("model")),
            usage=usage_from_wire(self._usage) if self._usage else None,
        )
        return (started,)

    def _open_block(self, index: int, block: JsonObject) -> Sequence[Event]:
        draft = self._open.get(index)
        if index in self._done or (draft and draft.pieces) or (draft and draft.raw != block):
            raise self._contradiction(f"block {index} began twice")
        self._open[index] = _Draft(dict(block))
        return (Pulse(),)

    def _extend(self, index: int, delta: JsonObject) -> Sequence[Event]:
        draft = self._open.get(index)
        if draft is None:
            raise self._contradiction(f"block {index} grew while it was not open")
        match delta:
            case {"type": "text_delta", "text": str(text)}:
                draft.add("text", text)
                return (TextDelta(index=index, text=text),)
            case {"type": "thinking_delta", "thinking": str(text)}:
                draft.add("thinking", text)
                return (ThinkingDelta(index=index, text=text),)
            case {"type": "citations_delta", "citation": citation}:
                draft.raw["citations"] = [*objects(draft.raw.get("citations")), citation]
            case {"type": "signature_delta" | "compaction_delta"}:
                draft.raw |= {name: value for name, value in delta.items() if name != "type"}
            case _:
                _merge(draft, delta)
        return (Pulse(),)

    def _close_block(self, index: int) -> Sequence[Event]:
        draft = self._open.pop(index, None)
        if draft is None:
            if index in self._done:
                return (Pulse(),)
            raise self._contradiction(f"block {index} ended without a beginning")
        block = self._done[index] = draft.finish()
        return (BlockFinished(index=index, block=block),)

    def _conclude(self, event: JsonObject) -> Sequence[Event]:
        if not self.has_begun:
            raise self._contradiction("the answer ended before it began")
        beside = {key: value for key, value in event.items() if key not in _DELTA_FRAME}
        self._message |= _drop_nulls(event.get("delta")) | _drop_nulls(beside)
        self._usage |= _drop_nulls(event.get("usage"))
        return (Pulse(),)

    def _reply(self) -> Reply:
        message = self._message
        whole = map(block_in, objects(message.get("content")))
        streamed = (self._done[index] for index in sorted(self._done))
        return reply_of(message, (*whole, *streamed), self._usage, self.request_id)

    def _contradiction(self, what: str) -> StreamBroken:
        return StreamBroken(
            f"the stream contradicts itself: {what}; send the request again",
            request_id=self.request_id,
        )


def _drop_nulls(fields: Json) -> JsonObject:
    """Leave out nulls: they say nothing new about a field that is already known."""
    return {key: value for key, value in fields_of(fields).items() if value is not None}


def _object(value: Json) -> JsonObject | None:
    return value if isinstance(value, dict) else None


def _merge(draft: _Draft, delta: JsonObject) -> None:
    """Apply an unknown delta by its fields: text is appended, anything else replaces."""
    for name, value in delta.items():
        if name == "type":
            continue
        if isinstance(value, str):
            draft.add(name, value)
        else:
            draft.raw[name] = value
