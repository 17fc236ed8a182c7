"""Brains provide the content of answers, as plain blocks without ids and signatures."""

from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from longhold.core.messages import Text, Thinking, ToolUse, block_to_wire
from longhold.core.models.protocol import Model, Request, collect
from longhold.core.models.scripted import ScriptedAnswer, read_script, read_status
from longhold.core.request.billing.api_request import ERROR_TYPES, ApiError, JsonObject
from longhold.errors import ConfigError
from longhold.simulator.faults import InjectedFault

Purpose = Literal["message", "summary"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrainRequest:
    """The prompt as the model would read it, in the format of the Messages API."""

    model: str
    system: tuple[JsonObject, ...]
    tools: tuple[JsonObject, ...]
    messages: tuple[JsonObject, ...]  # `role` and `content`, which is always a list of blocks
    max_tokens: int
    purpose: Purpose = "message"  # `summary` if the server needs a summary of the conversation
    instructions: str | None = None
    forced_tool: str | None = None  # the tool that `tool_choice` requires, or `any`


@dataclass(frozen=True, slots=True, kw_only=True)
class BrainAnswer:
    blocks: tuple[JsonObject, ...] = ()  # text, thinking or tool_use blocks without ids
    stop_reason: str | None = None  # None means `tool_use` if a tool is called, else `end_turn`


class Brain(Protocol):
    """Writes the simulator's answers. It may raise an `ApiError` to refuse a request."""

    def answer(self, request: BrainRequest) -> BrainAnswer | Awaitable[BrainAnswer]: ...


def text(content: str) -> JsonObject:
    return {"type": "text", "text": content}


def thinking(content: str) -> JsonObject:
    return {"type": "thinking", "thinking": content}


def tool_use(name: str, arguments: JsonObject) -> JsonObject:
    return {"type": "tool_use", "name": name, "input": arguments}


def plain_block(block: JsonObject) -> JsonObject:
    """Drop the id and the signature, because the simulator creates its own."""
    return {key: value for key, value in block.items() if key not in ("id", "signature")}


class ModelBrain:
    def __init__(self, model: Model) -> None:
        self._model = model

    async def answer(self, request: BrainRequest) -> BrainAnswer:
        kwargs: JsonObject = {
            "model": self._model.name,
            "max_tokens": min(request.max_tokens, self._model.capabilities.max_output_tokens),
            "system": list(request.system),
            "messages": list(request.messages),
        }
        if request.tools:
            kwargs["tools"] = list(request.tools)
        reply = await collect(self._model.stream(Request(kwargs=kwargs)))
        spoken = [b for b in reply.content if isinstance(b, Text | Thinking | ToolUse)]
        return BrainAnswer(
            blocks=tuple(plain_block(block_to_wire(block)) for block in spoken),
            stop_reason=reply.stop_reason or None,
        )


EXHAUSTED = "The recording has ended."


class ReplayBrain:
    def __init__(self, recorded: Iterable[Sequence[JsonObject]]) -> None:
        self._recorded = [tuple(_keep_replayable(blocks)) for blocks in recorded]

    def answer(self, request: BrainRequest) -> BrainAnswer:
        if request.purpose == "summary":
            return BrainAnswer(blocks=(text("Summary of a replayed conversation."),))
        given = sum(message["role"] == "assistant" for message in request.messages)
        if given >= len(self._recorded):
            return BrainAnswer(blocks=(text(EXHAUSTED),))
        return BrainAnswer(blocks=self._recorded[given])


def _keep_replayable(blocks: Sequence[JsonObject]) -> Iterable[JsonObject]:
    """Keep the blocks that a model writes, and drop the blocks that a server writes."""
    for block in blocks:
        match block.get("type"):
            case "thinking":
                yield thinking(str(block.get("thinking", "")))
            case "text" if block.get("text"):
                yield text(str(block["text"]))
            case "tool_use":
                yield {key: block[key] for key in ("type", "id", "name", "input")}


class EchoBrain:
    def answer(self, request: BrainRequest) -> BrainAnswer:
        count = len(request.messages)
        head = _last_text(request)[:60]
        return BrainAnswer(blocks=(text(f"Message {count} received: {head!r}."),))


def _last_text(request: BrainRequest) -> str:
    for block in reversed(request.messages[-1]["content"] if request.messages else ()):
        if block.get("type") == "text":
            return str(block["text"])
    return ""


Line = BrainAnswer | ApiError


class ScriptedBrain:
    """Plays a script of `core.models.scripted` without its `usage:`. After its end it refuses."""

    def __init__(self, script: str | Sequence[Line], *, repeats: bool = False) -> None:
        self._lines = parse_script(script) if isinstance(script, str) else tuple(script)
        self._repeats = repeats
        self._next = 0
        self.requests: list[BrainRequest] = []

    def answer(self, request: BrainRequest) -> BrainAnswer:
        self.requests.append(request)
        if self._next >= len(self._lines) and self._repeats and self._lines:
            self._next = 0
        if self._next >= len(self._lines):
            raise ApiError(500, f"the script has no answer number {self._next + 1}")
        line = self._lines[self._next]
        self._next += 1
        if isinstance(line, ApiError):
            raise line
        return line


def parse_script(script: str) -> tuple[Line, ...]:
    return tuple(map(_to_line, read_script(script)))


def _to_line(answer: ScriptedAnswer) -> Line:
    if answer.error is None:
        blocks = (plain_block(block_to_wire(block)) for block in answer.blocks)
        return BrainAnswer(blocks=tuple(blocks), stop_reason=answer.stop_reason)
    word = answer.error.split()[0]
    if not word.isdigit() or int(word) not in ERROR_TYPES:
        allowed = ", ".join(map(str, ERROR_TYPES))
        raise ConfigError(f"the simulator cannot answer with error {word!r}; it has {allowed}")
    status, headers = read_status(answer.error)
    seconds = headers.get("retry-after")
    return InjectedFault(
        status=status, retry_after_seconds=float(seconds) if seconds else None
    ).error()
