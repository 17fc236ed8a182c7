"""A brain that repeats recorded answers: the same session again, under other rules.

Ids of tool calls are kept, so that recorded results still match; thinking is signed again, as
another server's signatures are not valid here.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from holdfast.simulator.brains import Brain, BrainAnswer, BrainRequest, text, thinking
from holdfast.simulator.request import JsonObject

EXHAUSTED = "The recording has ended."


class ReplayBrain:
    """Returns recorded answers by their place in the conversation."""

    def __init__(self, recorded: Iterable[Sequence[JsonObject]]) -> None:
        self._recorded = [tuple(_replayable(blocks)) for blocks in recorded]

    def answer(self, request: BrainRequest) -> BrainAnswer:
        """Return the answer that followed as many assistant messages as the request has."""
        if request.purpose == "summary":
            return BrainAnswer(blocks=(text("Summary of a replayed conversation."),))
        given = sum(message["role"] == "assistant" for message in request.messages)
        if given >= len(self._recorded):
            return BrainAnswer(blocks=(text(EXHAUSTED),))
        return BrainAnswer(blocks=self._recorded[given])


def _replayable(blocks: Sequence[JsonObject]) -> Iterable[JsonObject]:
    """Keep what a model writes; drop what only a server writes."""
    for block in blocks:
        match block.get("type"):
            case "thinking":
                yield thinking(str(block.get("thinking", "")))
            case "text" if block.get("text"):
                yield text(str(block["text"]))
            case "tool_use":
                yield {key: block[key] for key in ("type", "id", "name", "input")}


if TYPE_CHECKING:
    _: Brain = ReplayBrain([])
