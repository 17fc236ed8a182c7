"""One function from view to request.

Messages are turned into the plain values a provider takes once, and kept: a turn costs what
is new. Tools are sorted, keys come in a fixed order, and nothing in here looks at a clock.
Two markers tell the provider what to keep: on the last system block and on the last block of
the last message that may carry one.
"""

from collections.abc import Sequence

from holdfast.entries import Framed
from holdfast.messages import JsonObject, Message, message_to_wire
from holdfast.models.protocol import Request

MARKER: JsonObject = {"type": "ephemeral"}
UNMARKABLE = frozenset({"thinking", "redacted_thinking"})
"""Blocks the API refuses a marker on."""


class Wire:
    """Messages as they go over the wire, rendered once each."""

    def __init__(self) -> None:
        self._known: list[Message] = []
        self._wire: list[JsonObject] = []

    def messages(self, messages: Sequence[Message]) -> list[JsonObject]:
        """Give the wire form of all messages, rendering only those that are new.

        A view renders anew from the first message that changed, so what is the same object
        is an unbroken beginning, and its end is found by halving.
        """
        low, high = 0, min(len(self._known), len(messages))
        while low < high:
            middle = (low + high) // 2
            if self._known[middle] is messages[middle]:
                low = middle + 1
            else:
                high = middle
        self._known[low:] = messages[low:]
        self._wire[low:] = [message_to_wire(message) for message in messages[low:]]
        return self._wire


def build(
    frame: Framed, messages: list[JsonObject], *, model: str, max_output_tokens: int
) -> Request:
    """Put the frame and the messages together."""
    kwargs: JsonObject = {"model": model, "max_tokens": max_output_tokens}
    if frame.sections:
        kwargs["system"] = _system(frame)
    if frame.tools:
        kwargs["tools"] = sorted(frame.tools, key=lambda tool: str(tool.get("name")))
    instructions = [_instructions(frame.instructions)] if frame.instructions else []
    kwargs["messages"] = [*instructions, *messages[:-1], *map(marked, messages[-1:])]
    return Request(kwargs=kwargs | frame.options, betas=frame.betas)


def _system(frame: Framed) -> list[JsonObject]:
    blocks: list[JsonObject] = [
        {"type": "text", "text": section.text} for section in frame.sections
    ]
    blocks[-1] = blocks[-1] | {"cache_control": MARKER}
    return blocks


def _instructions(text: str) -> JsonObject:
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def marked(message: JsonObject) -> JsonObject:
    """Put a marker on the last block of a message that may carry one."""
    content = list(message["content"])
    for i in range(len(content) - 1, -1, -1):
        if content[i].get("type") not in UNMARKABLE:
            content[i] = content[i] | {"cache_control": MARKER}
            break
    return message | {"content": content}
