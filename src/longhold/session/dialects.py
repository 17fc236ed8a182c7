"""One conversation in three dialects: the Messages API, chat completions and Responses.

Internally all content is stored as blocks, so a message has the same key in every dialect.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import msgspec
from msgspec import structs

from longhold.core.messages import (
    Block,
    Content,
    JsonObject,
    Opaque,
    Text,
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
from longhold.core.wire import chat, responses
from longhold.core.wire.messages import SYSTEM_ROLES, Speaker, speaker_of
from longhold.errors import InvalidArgument
from longhold.session.arguments import check_block, check_content

KEY_BYTES = 12  # long enough that no two messages of one conversation collide

_encoder = msgspec.json.Encoder(order="sorted")


@dataclass(frozen=True, slots=True)
class Heard:
    role: Speaker
    content: Content
    """The blocks of the message. In every dialect, tool results are among the user's blocks."""

    @property
    def key(self) -> str:
        """A hash of the content. Thinking is excluded, because callers may omit it."""
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
    is_item = isinstance(block, Opaque) and block.raw.get("type") == responses.REASONING
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
    """Reads one message. The second argument is its name in errors."""
    tool: Callable[[JsonObject], JsonObject]


def render_request(
    request: Request, dialect: DialectName, able: Capabilities, client: object
) -> Request:
    match dialect:
        case "openai":
            is_theirs = is_openais_own(client) if client is not None else able.family == "openai"
            field = "max_completion_tokens" if is_theirs else "max_tokens"
            takes = able.cache_breakpoints
            return Request(
                kwargs=chat.encode_request(
                    request.kwargs, limit_field=field, takes_breakpoints=takes
                )
            )
        case "responses":
            return Request(kwargs=responses.encode_request(request.kwargs))
    return request


def chosen_dialect(said: str | None, client: object, able: Capabilities) -> DialectName | None:
    """Return the requested dialect, or else the client's, or else that of the model's family."""
    if said:
        return dialect_named(said).name
    if client is not None and (found := dialect_of(client)):
        return found
    if able.family == "openai":
        return "openai"
    return "anthropic" if able.family in ("anthropic", "simulator", "local") else None


def dialect_named(name: str) -> Dialect:
    if name not in DIALECTS:
        raise InvalidArgument(
            "dialect", f"{name!r} is not a dialect; choose one of {', '.join(DIALECTS)}"
        )
    return DIALECTS[name]


def guessed_dialect(messages: Sequence[JsonObject]) -> DialectName:
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


def _role(message: JsonObject, where: str, known: Sequence[str]) -> str:
    role = message.get("role")
    if role not in known:
        raise InvalidArgument(
            where, f"the role {role!r} is not known; there are {', '.join(known)}"
        )
    return str(role)


def _hear_anthropic(message: JsonObject, where: str) -> Heard:
    role = _role(message, where, ("user", "assistant", "system"))
    return Heard(speaker_of(role), check_content(message.get("content"), f"{where}.content"))


def _hear_chat(message: JsonObject, where: str) -> Heard:
    role = _role(message, where, ("user", "assistant", "tool", "function", *SYSTEM_ROLES))
    for call in message.get("tool_calls") or () if role == "assistant" else ():
        match call:
            case {"id": str(), "function": {"name": str()}}:
                continue
            case {"id": str(), "custom": {"name": str(), "input": str()}}:
                continue
        raise InvalidArgument(f"{where}.tool_calls", "a call has no id or no function name")
    content = tuple(_simplify(block) for block in chat.decode_message(message))
    is_result = role in ("tool", "function")
    return Heard(speaker_of(role), content if is_result else _check_spoken(content, where))


def _simplify(block: Block) -> Block:
    """Drop fields that a program may omit next time, because messages are identified by content."""
    match block:
        case ToolUse():
            return structs.replace(block, extra=None)
        case ToolResult():
            return structs.replace(_write_out(block), extra=None)
        case Opaque(raw={"type": "refusal", "refusal": str(text)}):
            return Text(text=text)
    return block


def _write_out(block: Block) -> Block:
    if not isinstance(block, ToolResult) or isinstance(block.content, str):
        return block
    return structs.replace(block, content=to_spoken(block.content))


def _hear_item(item: JsonObject, where: str) -> Heard:
    is_message = responses.is_input_message(item)
    if is_message:
        _role(item, where, ("user", *SYSTEM_ROLES))
    speaker, content = responses.decode_item(item)
    if is_message:
        _check_spoken(content, where)
    return Heard(speaker, tuple(map(_write_out, content)))


def _check_spoken(content: Content, where: str) -> Content:
    """Check the content of a message. It may be empty, because some servers send empty answers."""
    for block in content:
        check_block(block, where)
    return content


DIALECTS: dict[str, Dialect] = {
    "anthropic": Dialect("anthropic", _hear_anthropic, lambda tool: tool),
    "openai": Dialect("openai", _hear_chat, chat.encode_tool),
    "responses": Dialect("responses", _hear_item, responses.encode_tool),
}
