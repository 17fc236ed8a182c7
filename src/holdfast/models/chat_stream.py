"""A chat endpoint's chunks, put together to the same events and reply as Claude's.

A text block ends where the next kind begins; tool calls end together, when the endpoint says why
it stopped, because servers differ in how they interleave them. Prompt counts include cached tokens
there and exclude them here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from holdfast.messages import Block, Content, Json, JsonObject, Text, Thinking, ToolUse, Usage
from holdfast.messages.usage import count_of, fields_of
from holdfast.models.assemble import NAMELESS, ended_early, parse_input
from holdfast.models.incoming import objects, text_in, word
from holdfast.models.protocol import (
    BlockFinished,
    Event,
    Finished,
    Pulse,
    Reply,
    Started,
    TextDelta,
    ThinkingDelta,
)

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
        """Take one chunk and return the events it completes."""
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
        """Finish the answer; raise if the endpoint did not say why it stopped."""
        if not self._reason:
            raise ended_early(self.request_id, has_begun=self.has_begun)
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
        """End the text or reasoning that is open, if any."""
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
