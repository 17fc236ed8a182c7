"""A brain backed by a model: local ones make the simulator a small real provider.

The cache, the prices and the rules stay the simulator's.
"""

from typing import TYPE_CHECKING

from holdfast.messages import Text, Thinking, ToolUse, block_to_wire
from holdfast.models.protocol import Model, Request, collect
from holdfast.simulator.brains import Brain, BrainAnswer, BrainRequest
from holdfast.simulator.request import JsonObject


class ModelBrain:
    def __init__(self, model: Model) -> None:
        self._model = model

    async def answer(self, request: BrainRequest) -> BrainAnswer:
        """Ask the model; drop the ids and signatures it made."""
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
        return BrainAnswer(blocks=tuple(map(_plain, spoken)), stop_reason=reply.stop_reason or None)


def _plain(block: Text | Thinking | ToolUse) -> JsonObject:
    wire = block_to_wire(block)
    return {key: value for key, value in wire.items() if key not in ("id", "signature")}


if TYPE_CHECKING:

    def _conforms(model: Model) -> None:
        _: Brain = ModelBrain(model)
