"""Brains that echo, replay a recording, or pass requests to a model."""

from collections.abc import Iterable, Sequence

from longhold.core.messages import Text, Thinking, ToolUse, block_to_wire
from longhold.core.models.protocol import Model, Request, collect
from longhold.core.request.billing.api_request import JsonObject
from longhold.simulator.brains import BrainAnswer, BrainRequest, plain_block, text, thinking


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
    """Keep the blocks that a model writes, and drop those that a server writes."""
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
