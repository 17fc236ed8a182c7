"""The smallest brain: reports how much it was sent. For load tests and examples."""

from typing import TYPE_CHECKING

from holdfast.simulator.brains import Brain, BrainAnswer, BrainRequest, text


class EchoBrain:
    """Answers every request with one short deterministic sentence."""

    def answer(self, request: BrainRequest) -> BrainAnswer:
        """Report how many messages there were, and how the last one begins."""
        count = len(request.messages)
        head = _last_text(request)[:60]
        return BrainAnswer(blocks=(text(f"Message {count} received: {head!r}."),))


def _last_text(request: BrainRequest) -> str:
    for block in reversed(request.messages[-1]["content"] if request.messages else ()):
        if block.get("type") == "text":
            return str(block["text"])
    return ""


if TYPE_CHECKING:
    _: Brain = EchoBrain()
