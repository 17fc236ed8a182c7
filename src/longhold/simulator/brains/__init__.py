"""Brains supply the content of answers; the simulator does everything around them.

A brain reads a `BrainRequest`, the conversation as the model would read it, and returns a
`BrainAnswer`: plain blocks, unsigned and without ids. It may be asynchronous. `scripted`, `echo`,
`replay` and `digest` are included; anything with an `answer` method will do.
"""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Literal, Protocol

from longhold.core.request.billing.request import JsonObject

Purpose = Literal["message", "summary"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrainRequest:
    """What the model would read, in the Messages API's shapes."""

    model: str
    system: tuple[JsonObject, ...]
    tools: tuple[JsonObject, ...]
    messages: tuple[JsonObject, ...]
    """Dictionaries of `role` and `content`, the content always a list of blocks."""
    max_tokens: int
    purpose: Purpose = "message"
    """`summary` when the server itself needs the conversation summarised."""
    instructions: str | None = None
    """The client's own summary prompt, if it gave one."""
    forced_tool: str | None = None
    """The tool a `tool_choice` demands; `any` when any tool will do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrainAnswer:
    blocks: tuple[JsonObject, ...] = ()
    """Blocks of type text, thinking or tool_use; ids and signatures are added later."""
    stop_reason: str | None = None
    """Why it ends; by default `tool_use` if a tool is called, else `end_turn`."""


class Brain(Protocol):
    """It may raise an `ApiError` to refuse."""

    def answer(self, request: BrainRequest) -> BrainAnswer | Awaitable[BrainAnswer]:
        """Answer one request, at once or later."""
        ...


def text(content: str) -> JsonObject:
    return {"type": "text", "text": content}


def thinking(content: str) -> JsonObject:
    return {"type": "thinking", "thinking": content}


def tool_use(name: str, arguments: JsonObject) -> JsonObject:
    return {"type": "tool_use", "name": name, "input": arguments}


def plain_block(block: JsonObject) -> JsonObject:
    """Drop the id and the signature, which the simulator makes itself."""
    return {key: value for key, value in block.items() if key not in ("id", "signature")}
