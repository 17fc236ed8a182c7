"""Brains supply the content of answers, as plain blocks without ids and signatures."""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Literal, Protocol

from longhold.core.request.billing.api_request import JsonObject

Purpose = Literal["message", "summary"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrainRequest:
    """The prompt as the model would read it, in the shapes of the Messages API."""

    model: str
    system: tuple[JsonObject, ...]
    tools: tuple[JsonObject, ...]
    messages: tuple[JsonObject, ...]  # `role` and `content`, which is always a list of blocks
    max_tokens: int
    purpose: Purpose = "message"  # `summary` if the server needs a summary of the conversation
    instructions: str | None = None
    forced_tool: str | None = None  # The tool that `tool_choice` requires; `any` for any tool.


@dataclass(frozen=True, slots=True, kw_only=True)
class BrainAnswer:
    blocks: tuple[JsonObject, ...] = ()  # of type text, thinking or tool_use, without ids
    stop_reason: str | None = None  # None means `tool_use` if a tool is called, else `end_turn`


class Brain(Protocol):
    """Writes the answers of the simulator. May raise an `ApiError` to refuse."""

    def answer(self, request: BrainRequest) -> BrainAnswer | Awaitable[BrainAnswer]: ...


def text(content: str) -> JsonObject:
    return {"type": "text", "text": content}


def thinking(content: str) -> JsonObject:
    return {"type": "thinking", "thinking": content}


def tool_use(name: str, arguments: JsonObject) -> JsonObject:
    return {"type": "tool_use", "name": name, "input": arguments}


def plain_block(block: JsonObject) -> JsonObject:
    """Drop the id and the signature, because the simulator creates them."""
    return {key: value for key, value in block.items() if key not in ("id", "signature")}
