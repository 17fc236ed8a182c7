"""The Messages API's rules for a list of messages. The tests check them for every view."""

from collections.abc import Callable, Iterator, Sequence

from longhold.core.messages import (
    Block,
    Message,
    Opaque,
    ToolResult,
    ToolUse,
    block_from_wire,
    block_to_wire,
    is_blank,
    is_thought,
)
from longhold.core.messages.blocks import KNOWN_TYPES

Messages = Sequence[Message]


def resolve_block(block: Block) -> Block:
    """Convert an opaque block to the type in its JSON, or return it if its shape does not fit."""
    return block_from_wire(block.raw) if isinstance(block, Opaque) else block


def is_malformed(block: Block) -> bool:
    block = resolve_block(block)
    return isinstance(block, Opaque) and block.raw.get("type") in KNOWN_TYPES


def _list_inner(block: Block) -> Sequence[Block]:
    if not isinstance(block, ToolResult) or isinstance(block.content, str):
        return ()
    return tuple(map(resolve_block, block.content))


def _uses(message: Message) -> list[str]:
    content = message.content if message.role == "assistant" else ()
    return [block.id for block in content if isinstance(block, ToolUse)]


def _answers(message: Message) -> list[str]:
    return [b.tool_use_id for b in message.content if isinstance(b, ToolResult)]


def _find_unpaired(messages: Messages) -> Iterator[str]:
    for i, message in enumerate(messages):
        asked = _uses(message)
        answered = _answers(messages[i + 1]) if i + 1 < len(messages) else []
        if asked and sorted(asked) != sorted(answered):
            yield f"message {i}: tool uses {asked} are answered by {answered}"
        if _answers(message) and (i == 0 or not _uses(messages[i - 1])):
            yield f"message {i}: tool results without a tool use before them"


def _find_late_results(messages: Messages) -> Iterator[str]:
    for i, message in enumerate(messages):
        flags = [isinstance(block, ToolResult) for block in message.content]
        if flags != sorted(flags, reverse=True):
            yield f"message {i}: a tool result comes after other content"


def _find_same_ids(messages: Messages) -> Iterator[str]:
    seen: set[str] = set()
    for i, message in enumerate(messages):
        for id in _uses(message):
            if id in seen:
                yield f"message {i}: tool use id {id!r} is used twice"
            seen.add(id)


def _find_wrong_roles(messages: Messages) -> Iterator[str]:
    if messages and messages[0].role != "user":
        yield "message 0: the first message must be the user's"
    for i in range(1, len(messages)):
        if messages[i].role == messages[i - 1].role:
            yield f"message {i}: two {messages[i].role} messages in a row"


def _find_misplaced(messages: Messages) -> Iterator[str]:
    for i, message in enumerate(messages):
        for block in message.content:
            theirs = is_thought(block) or isinstance(block, ToolUse)
            if (theirs and message.role == "user") or (
                isinstance(block, ToolResult) and message.role == "assistant"
            ):
                yield f"message {i}: {type(block).__name__} in a message with role {message.role}"
            for inner in _list_inner(block):
                if is_thought(inner) or isinstance(inner, ToolUse | ToolResult):
                    yield f"message {i}: {type(inner).__name__} in a tool result"


def _find_malformed(messages: Messages) -> Iterator[str]:
    for i, message in enumerate(messages):
        inside = [inner for block in message.content for inner in _list_inner(block)]
        for block in filter(is_malformed, (*message.content, *inside)):
            yield f"message {i}: {block_to_wire(block)['type']} block with an unexpected shape"


def _find_empty(messages: Messages) -> Iterator[str]:
    for i, message in enumerate(messages):
        if not message.content:
            yield f"message {i}: no content"
        if any(is_blank(block) for block in message.content):
            yield f"message {i}: an empty text block"


def _find_bare_thinking(messages: Messages) -> Iterator[str]:
    for i, message in enumerate(messages):
        if message.content and all(is_thought(block) for block in message.content):
            yield f"message {i}: contains only thinking"


RULES: dict[str, Callable[[Messages], Iterator[str]]] = {
    "results follow their tool uses": _find_unpaired,
    "tool results come first": _find_late_results,
    "tool use ids are unique": _find_same_ids,
    "roles alternate, the user first": _find_wrong_roles,
    "blocks fit the role": _find_misplaced,
    "blocks have the shape of their type": _find_malformed,
    "nothing is empty": _find_empty,
    "thinking is not alone": _find_bare_thinking,
}


def violations(messages: Messages) -> list[str]:
    """List every broken rule. The API accepts the messages if the list is empty."""
    plain = [
        Message(message.role, tuple(map(resolve_block, message.content))) for message in messages
    ]
    return [f"{name}: {place}" for name, broken in RULES.items() for place in broken(plain)]
