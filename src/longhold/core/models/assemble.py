"""Build blocks and a reply from streamed JSON events of the Messages API and chat endpoints.

Unknown fields are kept. An event that contradicts earlier ones raises `StreamBroken`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from longhold.core.messages import Block, Content, Json, JsonObject, ToolUse, Usage, usage_from_wire
from longhold.core.messages.usage import fields_of
from longhold.core.models import protocol
from longhold.core.wire import chat, responses
from longhold.core.wire.messages import block_in, encode_input, objects, parse_input, text_in, word
from longhold.errors import StreamBroken

_REPLY_FIELDS = frozenset(
    {"id", "type", "role", "content", "model", "usage", "stop_reason", "stop_sequence"}
    | {"diagnostics", "context_management"}
)
_DELTA_FRAME = frozenset({"type", "delta", "usage"})


@dataclass(slots=True)
class _Draft:
    raw: JsonObject
    pieces: dict[str, list[str]] = field(default_factory=dict)  # joined once, in linear time

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


def early_end_error(request_id: str, *, has_begun: bool) -> StreamBroken:
    when = "midway" if has_begun else "before the answer began"
    return StreamBroken(f"the stream ended {when}; send the request again", request_id=request_id)


def reply_of(
    message: JsonObject, content: Content, usage: Json, request_id: str = ""
) -> protocol.Reply:
    return protocol.Reply(
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

    def feed(self, event: JsonObject) -> Sequence[protocol.Event]:
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
        return (protocol.Pulse(),)

    def end(self) -> Sequence[protocol.Event]:
        if self._has_finished:
            return ()
        if not self._message.get("stop_reason") or self._open:
            raise early_end_error(self.request_id, has_begun=self.has_begun)
        self._has_finished = True
        return (protocol.Finished(reply=self._reply()),)

    def _start(self, message: JsonObject) -> Sequence[protocol.Event]:
        if self.has_begun:
            if message.get("id") == self._message.get("id"):
                return (protocol.Pulse(),)
            raise self._contradiction("a second message began before the first ended")
        self._message = dict(message)
        self._usage = dict(fields_of(message.get("usage")))
        started = protocol.Started(
            response_id=word(message.get("id")),
            model=word(message.get("model")),
            usage=usage_from_wire(self._usage) if self._usage else None,
        )
        return (started,)

    def _open_block(self, index: int, block: JsonObject) -> Sequence[protocol.Event]:
        draft = self._open.get(index)
        if index in self._done or (draft and draft.pieces) or (draft and draft.raw != block):
            raise self._contradiction(f"block {index} began twice")
        self._open[index] = _Draft(dict(block))
        return (protocol.Pulse(),)

    def _extend(self, index: int, delta: JsonObject) -> Sequence[protocol.Event]:
        draft = self._open.get(index)
        if draft is None:
            raise self._contradiction(f"block {index} got content while it was not open")
        match delta:
            case {"type": "text_delta", "text": str(text)}:
                draft.add("text", text)
                return (protocol.TextDelta(index=index, text=text),)
            case {"type": "thinking_delta", "thinking": str(text)}:
                draft.add("thinking", text)
                return (protocol.ThinkingDelta(index=index, text=text),)
            case {"type": "citations_delta", "citation": citation}:
                draft.raw["citations"] = [*objects(draft.raw.get("citations")), citation]
            case {"type": "signature_delta" | "compaction_delta"}:
                draft.raw |= {name: value for name, value in delta.items() if name != "type"}
            case _:  # for an unknown type, append strings and replace other values
                for name, value in delta.items():
                    if isinstance(value, str) and name != "type":
                        draft.add(name, value)
                    elif name != "type":
                        draft.raw[name] = value
        return (protocol.Pulse(),)

    def _close_block(self, index: int) -> Sequence[protocol.Event]:
        draft = self._open.pop(index, None)
        if draft is None:
            if index in self._done:
                return (protocol.Pulse(),)
            raise self._contradiction(f"block {index} ended before it began")
        block = self._done[index] = draft.finish()
        return (protocol.BlockFinished(index=index, block=block),)

    def _conclude(self, event: JsonObject) -> Sequence[protocol.Event]:
        if not self.has_begun:
            raise self._contradiction("the answer ended before it began")
        beside = {key: value for key, value in event.items() if key not in _DELTA_FRAME}
        self._message |= _drop_nulls(event.get("delta")) | _drop_nulls(beside)
        self._usage |= _drop_nulls(event.get("usage"))
        return (protocol.Pulse(),)

    def _reply(self) -> protocol.Reply:
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
    """Drop nulls, so that they do not overwrite known fields."""
    return {key: value for key, value in fields_of(fields).items() if value is not None}


def _object(value: Json) -> JsonObject | None:
    return value if isinstance(value, dict) else None


_REASONING_FIELDS = ("reasoning_content", "reasoning")  # Ollama and routers use the second


class ChatAssembly:
    def __init__(self, request_id: str = "") -> None:
        self.request_id = request_id
        self._id = ""
        self._model = ""
        self._speech: _Draft | None = None
        self._calls: list[_Draft] = []
        self._places: dict[str, _Draft] = {}
        self._content: list[Block] = []
        self._reason = ""
        self._has_refused = False
        self._usage = Usage()
        self.has_begun = False

    def feed(self, chunk: JsonObject) -> Sequence[protocol.Event]:
        events: list[protocol.Event] = [] if self.has_begun else [self._start(chunk)]
        if chunk.get("usage"):
            self._usage = chat.decode_usage(chunk["usage"])
        for choice in objects(chunk.get("choices")):
            if choice.get("index"):
                continue
            events += self._take(fields_of(choice.get("delta")))
            self._reason = word(choice.get("finish_reason")) or self._reason
        return events or (protocol.Pulse(),)

    def end(self) -> Sequence[protocol.Event]:
        if not self._reason:
            raise early_end_error(self.request_id, has_begun=self.has_begun)
        events = [*self._hush()]
        for number, call in enumerate(self._calls):
            call.raw["id"] = call.raw["id"] or f"call_{self._id}_{number}"
            events += self._add(call.finish())
        return (*events, protocol.Finished(reply=self._reply(tuple(self._content))))

    def _start(self, chunk: JsonObject) -> protocol.Event:
        self.has_begun = True
        self._id = word(chunk.get("id"))
        self._model = word(chunk.get("model"))
        return protocol.Started(response_id=self._id, model=self._model)

    def _take(self, delta: Mapping[str, Json]) -> list[protocol.Event]:
        events: list[protocol.Event] = []
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

    def _speak(self, kind: Literal["text", "thinking"], text: str) -> list[protocol.Event]:
        events = self._hush() if self._speech and self._speech.raw["type"] != kind else []
        self._speech = self._speech or _Draft({"type": kind})
        self._speech.add(kind, text)
        index = len(self._content)
        delta = protocol.TextDelta if kind == "text" else protocol.ThinkingDelta
        return [*events, delta(index=index, text=text)]

    def _hush(self) -> list[protocol.Event]:
        speech, self._speech = self._speech, None
        return self._add(speech.finish()) if speech else []

    def _add(self, block: Block) -> list[protocol.Event]:
        self._content.append(block)
        return [protocol.BlockFinished(index=len(self._content) - 1, block=block)]

    def _extend_call(self, part: JsonObject) -> None:
        """Add a fragment to its call, although some servers give every call the index 0."""
        place, id = word(part.get("index")), word(part.get("id"))
        call = self._places.get(place)
        if call is None or (id and call.raw["id"] and id != call.raw["id"]):
            call = self._places[place] = _Draft({"type": "tool_use", "id": "", "name": ""})
            self._calls.append(call)
        function = fields_of(part.get("function"))
        call.raw["id"] = call.raw["id"] or id
        call.raw["name"] = call.raw["name"] or word(function.get("name"))
        arguments = function.get("arguments")
        if isinstance(arguments, dict):  # some servers send the object itself
            arguments = encode_input(arguments)
        call.add("partial_json", text_in(arguments))

    def _reply(self, content: Content) -> protocol.Reply:
        reason = chat.STOP_REASONS.get(self._reason, self._reason)
        if self._has_refused:
            reason = "refusal"
        elif self._calls and reason == "end_turn":
            reason = "tool_use"
        return protocol.Reply(
            response_id=self._id,
            model=self._model,
            content=content,
            stop_reason=reason,
            usage=self._usage,
            request_id=self.request_id,
        )


def reply_from_responses(raw: JsonObject) -> protocol.Reply:
    content = tuple(
        block for item in raw.get("output") or () for block in responses.decode_answer(item)
    )
    reason = str((raw.get("incomplete_details") or {}).get("reason") or "")
    has_calls = any(isinstance(block, ToolUse) for block in content)
    return protocol.Reply(
        response_id=str(raw.get("id") or ""),
        model=str(raw.get("model") or ""),
        content=content,
        stop_reason=responses.STOP_REASONS.get(reason, reason)
        or ("tool_use" if has_calls else "end_turn"),
        usage=responses.decode_usage(raw.get("usage")),
    )
