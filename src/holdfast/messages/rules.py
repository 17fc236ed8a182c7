"""What the Messages API demands of a list of messages, each demand written once.

A rule knows two things: where a list breaks it (`broken`), and whether cutting a list in
two before message i would break it (`splits`). The legal cut points are where no rule is
split; every stage cuts only there. A block counts as what its type says, also where it is
held as opaque JSON. The view holds these rules by construction; the tests and the request
builder ask here whether it really does.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from holdfast.messages import (
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

Messages = Sequence[Message]

NAMED_BLOCKS = frozenset(
    {"text", "thinking", "redacted_thinking", "image", "document", "tool_use", "tool_result"}
)
"""Types of blocks whose shape the API checks; it lets no other shape through under these names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRule:
    """One demand: its name, where it is broken, and which cuts would break it."""

    name: str
    broken: Callable[[Messages], Iterator[str]]
    splits: Callable[[Messages, int], bool]


def taken_at_its_word(block: Block) -> Block:
    """Take a block for what its type says, however it is held; what it cannot be stays opaque."""
    return block_from_wire(block.raw) if isinstance(block, Opaque) else block


def is_malformed(block: Block) -> bool:
    """Say whether a block has the name of one that the API knows, and not its shape."""
    block = taken_at_its_word(block)
    return isinstance(block, Opaque) and str(block.raw.get("type")) in NAMED_BLOCKS


def _plain(messages: Messages) -> list[Message]:
    return [
        Message(message.role, tuple(map(taken_at_its_word, message.content)))
        for message in messages
    ]


def _inside(block: Block) -> Sequence[Block]:
    """List the blocks in a result."""
    if not isinstance(block, ToolResult) or isinstance(block.content, str):
        return ()
    return tuple(map(taken_at_its_word, block.content))


def _uses(message: Message) -> list[str]:
    return (
        [b.id for b in message.content if isinstance(b, ToolUse)]
        if message.role == "assistant"
        else []
    )


def _answers(message: Message) -> list[str]:
    return [b.tool_use_id for b in message.content if isinstance(b, ToolResult)]


def _unpaired(messages: Messages) -> Iterator[str]:
    for i, message in enumerate(messages):
        asked = _uses(message)
        answered = _answers(messages[i + 1]) if i + 1 < len(messages) else []
        if asked and sorted(asked) != sorted(answered):
            yield f"message {i}: tool uses {asked} are answered by {answered}"
        if _answers(message) and (i == 0 or not _uses(messages[i - 1])):
            yield f"message {i}: tool results without a tool use before them"


def _results_late(messages: Messages) -> Iterator[str]:
    for i, message in enumerate(messages):
        flags = [isinstance(block, ToolResult) for block in message.content]
        if flags != sorted(flags, reverse=True):
            yield f"message {i}: a tool result comes after other content"


def _same_ids(messages: Messages) -> Iterator[str]:
    seen: set[str] = set()
    for i, message in enumerate(messages):
        for id in _uses(message):
            if id in seen:
                yield f"message {i}: tool use id {id!r} is used twice"
            seen.add(id)


def _wrong_roles(messages: Messages) -> Iterator[str]:
    if messages and messages[0].role != "user":
        yield "message 0: the first message must be the user's"
    for i in range(1, len(messages)):
        if messages[i].role == messages[i - 1].role:
            yield f"message {i}: two {messages[i].role} messages in a row"


def _wrong_place(messages: Messages) -> Iterator[str]:
    for i, message in enumerate(messages):
        for block in message.content:
            theirs = is_thought(block) or isinstance(block, ToolUse)
            if (theirs and message.role == "user") or (
                isinstance(block, ToolResult) and message.role == "assistant"
            ):
                yield f"message {i}: {type(block).__name__} in a message of the {message.role}"
            for inner in _inside(block):
                if is_thought(inner) or isinstance(inner, ToolUse | ToolResult):
                    yield f"message {i}: {type(inner).__name__} in a tool result"


def _malformed(messages: Messages) -> Iterator[str]:
    for i, message in enumerate(messages):
        inside = [inner for block in message.content for inner in _inside(block)]
        for block in filter(is_malformed, (*message.content, *inside)):
            yield f"message {i}: {block_to_wire(block)['type']} block of another shape"


def _empty(messages: Messages) -> Iterator[str]:
    for i, message in enumerate(messages):
        if not message.content:
            yield f"message {i}: no content"
        if any(is_blank(block) for block in message.content):
            yield f"message {i}: an empty text block"


def _bare_thought(messages: Messages) -> Iterator[str]:
    for i, message in enumerate(messages):
        if message.content and all(is_thought(block) for block in message.content):
            yield f"message {i}: thinking without anything it led to"


def _never(messages: Messages, i: int) -> bool:
    return False


def _splits_pair(messages: Messages, i: int) -> bool:
    return 0 < i <= len(messages) and bool(_uses(messages[i - 1]))


RULES: tuple[ApiRule, ...] = (
    ApiRule(name="tool uses are answered at once", broken=_unpaired, splits=_splits_pair),
    ApiRule(name="tool results come first", broken=_results_late, splits=_never),
    ApiRule(name="tool use ids are unique", broken=_same_ids, splits=_never),
    ApiRule(name="roles alternate, the user first", broken=_wrong_roles, splits=_never),
    ApiRule(name="blocks stand with their role", broken=_wrong_place, splits=_never),
    ApiRule(name="blocks are what they are called", broken=_malformed, splits=_never),
    ApiRule(name="nothing is empty", broken=_empty, splits=_never),
    ApiRule(name="thinking leads to something", broken=_bare_thought, splits=_never),
)


def violations(messages: Messages) -> list[str]:
    """List every broken rule in plain words; an empty list is a list the API accepts."""
    plain = _plain(messages)
    return [f"{rule.name}: {what}" for rule in RULES for what in rule.broken(plain)]


def legal_cuts(messages: Messages) -> list[int]:
    """List the positions before which the list may be cut: where no rule is split.

    What is cut off is replaced by a message of the user's, so the rest may begin with either
    role; where it begins with the user's, the two are one message. What stands before a cut
    may be sent as it is.
    """
    plain = _plain(messages)
    return [i for i in range(len(plain) + 1) if not any(rule.splits(plain, i) for rule in RULES)]
