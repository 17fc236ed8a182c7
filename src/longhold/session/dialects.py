"""Messages API, chat completions, Responses: one conversation in three dialects.

A dialect reads one message of a caller's list and words a request. In between everything is
blocks, so a message has the same key whichever dialect it came in, as a string or as a block.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

import msgspec
from msgspec import structs

from longhold.core.messages import (
    Block,
    Content,
    Json,
    JsonObject,
    Opaque,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    block_to_wire,
    is_blank,
    is_thought,
)
from longhold.core.models.capabilities import Capabilities
from longhold.core.models.clients import DialectName, dialect_of, is_openais_own
from longhold.core.models.protocol import Request
from longhold.core.view.block_roles import to_spoken
from longhold.core.wire.chat import SYSTEM_ROLES, chat_kwargs, chat_parts, chat_tool
from longhold.core.wire.messages import parse_input
from longhold.core.wire.responses import (
    CONTEXT_ITEMS,
    OUTPUT_ITEMS,
    REASONING,
    blocks_of_item,
    parse_content,
    responses_kwargs,
    responses_tool,
    result_of,
)
from longhold.errors import InvalidArgument
from longhold.session.arguments import check_block, check_content

KEY_BYTES = 12
"""Two different messages of one conversation never share a key of this length."""

_encoder = msgspec.json.Encoder(order="sorted")

Speaker = Literal["user", "assistant", "system"]


@dataclass(frozen=True, slots=True)
class Heard:
    """One message of a caller's list."""

    role: Speaker
    content: Content
    """Results of tools are among the user's blocks, whatever the dialect."""

    @property
    def key(self) -> str:
        """Name it by its content; thinking, which callers may leave out, does not count."""
        said = [_strip_block(block) for block in self.content if not _is_reasoning(block)]
        data = _encoder.encode((self.role, [block for block in said if block]))
        return blake2b(data, digest_size=KEY_BYTES).hexdigest()

    @property
    def results(self) -> list[ToolResult]:
        return [block for block in self.content if isinstance(block, ToolResult)]

    @property
    def rest(self) -> Content:
        return tuple(b for b in self.content if not isinstance(b, ToolResult) and not is_blank(b))


def _is_reasoning(block: Block) -> bool:
    is_item = isinstance(block, Opaque) and block.raw.get("type") == REASONING
    return is_item or is_thought(block) or is_blank(block)


def _strip_block(block: Block) -> JsonObject:
    wire = {key: value for key, value in block_to_wire(block).items() if value is not None}
    match wire.get("content"):
        case [{"type": "text", "text": str(text)}] if isinstance(block, ToolResult):
            wire["content"] = text
    return wire


@dataclass(frozen=True, slots=True)
class Dialect:
    name: DialectName
    hear: Callable[[JsonObject, str], Heard]
    """Read one message; the second argument names it in errors."""
    tool: Callable[[JsonObject], JsonObject]
    """Word a tool's definition."""


def render_request(
    request: Request, dialect: DialectName, able: Capabilities, client: object
) -> Request:
    match dialect:
        case "openai":
            is_theirs = is_openais_own(client) if client is not None else able.family == "openai"
            field = "max_completion_tokens" if is_theirs else "max_tokens"
            takes = able.cache_breakpoints
            return Request(
                kwargs=chat_kwargs(request.kwargs, limit_field=field, takes_breakpoints=takes)
            )
        case "responses":
            return Request(kwargs=responses_kwargs(request.kwargs))
    return request


def chosen_dialect(said: str | None, client: object, able: Capabilities) -> DialectName | None:
    """Return what was said, else what the client speaks, else what the model's family does."""
    if said:
        return dialect_named(said).name
    if client is not None and (found := dialect_of(client)):
        return found
    if able.family == "openai":
        return "openai"
    return "anthropic" if able.family in ("anthropic", "simulator", "local") else None


def dialect_named(name: str) -> Dialect:
    if name not in DIALECTS:
        raise InvalidArgument("dialect", f"{name!r} is none; there are {', '.join(DIALECTS)}")
    return DIALECTS[name]


def guessed_dialect(messages: Sequence[JsonObject]) -> DialectName:
    """Tell the dialect of a list by what only one of them has."""
    for message in messages:
        if "role" not in message or message.get("type") == "message":
            return "responses"
        if message.get("role") in ("tool", "developer", "function") or "tool_calls" in message:
            return "openai"
        parts = message.get("content")
        kinds = (
            {str(p.get("type")) for p in parts if isinstance(p, dict)}
            if isinstance(parts, list)
            else set()
        )
        if any(kind.startswith(("input_", "output_")) for kind in kinds):
            return "responses"
        if "image_url" in kinds:
            return "openai"
    return "anthropic"


def is_system(message: Json) -> bool:
    return isinstance(message, dict) and message.get("role") in SYSTEM_ROLES


def _role(message: JsonObject, where: str, known: Sequence[str]) -> str:
    role = message.get("role")
    if role not in known:
        raise InvalidArgument(
            where, f"the role {role!r} is not known; there are {', '.join(known)}"
        )
    return str(role)


def _hear_anthropic(message: JsonObject, where: str) -> Heard:
    role = _role(message, where, ("user", "assistant", "system"))
    speaker: Speaker = (
        "assistant" if role == "assistant" else "system" if role == "system" else "user"
    )
    content = check_content(message.get("content"), f"{where}.content")
    return Heard(speaker, content)


def _hear_chat(message: JsonObject, where: str) -> Heard:
    role = _role(message, where, ("user", "assistant", "tool", "function", *SYSTEM_ROLES))
    match role:
        case "assistant":
            return Heard("assistant", _chat_answer(message, where))
        case "tool" | "function":
            content = message.get("content")
            result = ToolResult(
                tool_use_id=str(message.get("tool_call_id") or message.get("name") or ""),
                content=content if isinstance(content, str) else to_spoken(chat_parts(content)),
            )
            return Heard("user", (result,))
    content = _check_spoken(chat_parts(message.get("content")), where)
    return Heard("system" if role in SYSTEM_ROLES else "user", content)


def _chat_answer(message: JsonObject, where: str) -> Content:
    blocks: list[Block] = []
    if isinstance(thought := message.get("reasoning_content"), str) and thought:
        blocks.append(Thinking(thinking=thought))
    blocks += chat_parts(message.get("content"))
    if isinstance(refusal := message.get("refusal"), str) and refusal:
        blocks.append(Text(text=refusal))
    for call in message.get("tool_calls") or ():
        match call:
            case {"id": str(id), "function": {"name": str(name), **rest}}:
                given = rest.get("arguments") or ""
                data = given if isinstance(given, dict) else parse_input(str(given))
                blocks.append(ToolUse(id=id, name=name, input=data))
            case {"id": str(id), "custom": {"name": str(name), "input": str(text)}}:
                blocks.append(ToolUse(id=id, name=name, input={"input": text}))
            case _:
                raise InvalidArgument(f"{where}.tool_calls", "a call has no id or no function name")
    return _check_spoken(tuple(blocks), where)


def _hear_item(item: JsonObject, where: str) -> Heard:
    kind = item.get("type") or "message"
    if kind in OUTPUT_ITEMS:
        result = result_of(item)
        if not isinstance(result.content, str):
            result = structs.replace(result, content=to_spoken(result.content))
        return Heard("user", (result,))
    if kind in CONTEXT_ITEMS:
        return Heard("system", (Opaque(raw=item),))
    if kind == "message" and item.get("role") != "assistant":
        role = _role(item, where, ("user", *SYSTEM_ROLES))
        content = _check_spoken(parse_content(item.get("content")), where)
        return Heard("system" if role in SYSTEM_ROLES else "user", content)
    return Heard("assistant", tuple(blocks_of_item(item)))


def _check_spoken(content: Content, where: str) -> Content:
    """Check the content of a message; an answer may be empty, as some servers give them."""
    for block in content:
        check_block(block, where)
    return content


DIALECTS: dict[str, Dialect] = {
    "anthropic": Dialect("anthropic", _hear_anthropic, lambda tool: tool),
    "openai": Dialect("openai", _hear_chat, chat_tool),
    "responses": Dialect("responses", _hear_item, responses_tool),
}
