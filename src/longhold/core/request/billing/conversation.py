"""The rules for a message list, with the API's own wording for each breach.

They concern order and pairing: roles, empty content, tool uses and their results, system
messages in mid-conversation. Parameters are checked in `validate`, markers in `markers`.
"""

from collections.abc import Iterable, Sequence

from longhold.core.models.capabilities import Capabilities
from longhold.core.request.billing.errors import invalid_request
from longhold.core.request.billing.request import ApiMessage, JsonObject

MESSAGE_LIMIT = 100_000  # published


def check_conversation(
    messages: Sequence[ApiMessage], able: Capabilities, *, compacts: bool
) -> None:
    if not messages:
        raise invalid_request("messages: at least one message is required")
    if len(messages) > MESSAGE_LIMIT:
        raise invalid_request(f"messages: at most {MESSAGE_LIMIT} messages are allowed")
    _check_roles(messages, able)
    _check_content(messages)
    _check_pairs(messages)
    if not compacts:
        _check_end(messages[-1], able)


def _check_roles(messages: Sequence[ApiMessage], able: Capabilities) -> None:
    for index, message in enumerate(messages):
        if message.role == "system":
            _check_system_message(messages, index, able)
        elif message.role not in ("user", "assistant"):
            raise invalid_request(
                f"messages.{index}.role: Input should be 'user' or 'assistant', "
                f"got {message.role!r}"
            )
    if messages[0].role != "user" and not _opens_with_compaction(messages[0]):
        raise invalid_request('messages: first message must use the "user" role')


def _check_system_message(messages: Sequence[ApiMessage], index: int, able: Capabilities) -> None:
    """A system message follows a user turn, and is last or followed by the assistant."""
    if not able.system_messages:
        raise invalid_request(
            f"messages.{index}.role: role 'system' is not supported on this model"
        )
    before = messages[index - 1] if index else None
    after = messages[index + 1] if index + 1 < len(messages) else None
    if before is None or before.role != "user":
        raise invalid_request(f"messages.{index}: a system message must follow a user turn")
    if after is not None and after.role != "assistant":
        raise invalid_request(
            f"messages.{index}: a system message must be last or precede the assistant"
        )


def _check_content(messages: Sequence[ApiMessage]) -> None:
    last = len(messages) - 1
    for index, message in enumerate(messages):
        if not message.content and not (index == last and message.role == "assistant"):
            raise invalid_request(
                f"messages.{index}: all messages must have non-empty content except for the "
                "optional final assistant message"
            )
        if isinstance(message.content, str) and not message.content.isspace():
            continue
        for inner, block in enumerate(message.blocks()):
            _check_block(block, index, inner)


def _check_block(block: JsonObject, index: int, inner: int) -> None:
    kind = block.get("type")
    if kind == "text":
        _check_text(block, index, inner)
        return
    path = f"messages.{index}.content.{inner}"
    if not isinstance(kind, str):
        raise invalid_request(f"{path}.type: Field required")
    if kind == "compaction" and block.get("content") == "":
        raise invalid_request(f"{path}.compaction.content: empty string is not allowed")
    if kind == "tool_result" and not isinstance(block.get("tool_use_id"), str):
        raise invalid_request(f"{path}.tool_result.tool_use_id: Field required")


def _check_text(block: JsonObject, index: int, inner: int) -> None:
    text = block.get("text")
    if not isinstance(text, str):
        raise invalid_request(f"messages.{index}.content.{inner}.text.text: Field required")
    if text.isspace():
        raise invalid_request("messages: text content blocks must contain non-whitespace text")
    if not text and block.get("cache_control"):
        raise invalid_request(
            f"messages.{index}.content.{inner}.text: cache_control cannot be set for empty text "
            "blocks"
        )
    if not text:
        raise invalid_request("messages: text content blocks must be non-empty")


def _check_pairs(messages: Sequence[ApiMessage]) -> None:
    """Every tool use is answered at the head of the very next user turn, once."""
    seen: set[str] = set()
    for index, message in enumerate(messages):
        if isinstance(message.content, str):
            continue  # plain text neither asks for a tool nor answers
        if message.role == "assistant":
            asked = _ids(message.blocks(), "tool_use", "id")
            if repeated := [i for n, i in enumerate(asked) if i in seen or i in asked[:n]]:
                raise invalid_request(
                    f"messages.{index}: `tool_use` ids must be unique: {repeated[0]}"
                )
            seen.update(asked)
            if asked:
                _check_answered(messages, index, asked)
        elif message.role == "user":
            _check_expected(messages, index)


def _check_answered(messages: Sequence[ApiMessage], index: int, asked: Sequence[str]) -> None:
    if index + 1 < len(messages) and messages[index + 1].role == "assistant":
        return  # consecutive assistant messages are one turn; the next one is checked
    answered = set(_leading_results(messages, index + 1))
    missing = [i for i in asked if i not in answered]
    if missing:
        raise invalid_request(
            f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately "
            f"after: {', '.join(missing)}. Each `tool_use` block must have a corresponding "
            "`tool_result` block in the next message."
        )


def _check_expected(messages: Sequence[ApiMessage], index: int) -> None:
    """Refuse results without a tool use, and two results for one use."""
    results = _ids(messages[index].blocks(), "tool_result", "tool_use_id")
    if not results:
        return
    asked = set(_list_asked_before(messages, index))
    for inner, block in enumerate(messages[index].blocks()):
        name = block.get("tool_use_id")
        if block.get("type") != "tool_result":
            continue
        if name not in asked:
            raise invalid_request(
                f"messages.{index}.content.{inner}: unexpected `tool_use_id` found in "
                f"`tool_result` blocks: {name}. Each `tool_result` block must have a corresponding "
                "`tool_use` block in the previous message."
            )
        if results.count(str(name)) > 1:
            raise invalid_request(
                f"messages.{index}.content.{inner}: each tool_use must have a single result. "
                f"Found multiple `tool_result` blocks with id: {name}"
            )


def _leading_results(messages: Sequence[ApiMessage], start: int) -> list[str]:
    found: list[str] = []
    for message in messages[start:]:
        if message.role != "user":
            break
        for block in message.blocks():
            if block.get("type") != "tool_result":
                return found
            found.append(str(block.get("tool_use_id")))
    return found


def _list_asked_before(messages: Sequence[ApiMessage], index: int) -> list[str]:
    asked: list[str] = []
    cursor = index - 1
    while cursor >= 0 and messages[cursor].role == "user":
        cursor -= 1
    while cursor >= 0 and messages[cursor].role == "assistant":
        asked += _ids(messages[cursor].blocks(), "tool_use", "id")
        cursor -= 1
    return asked


def _check_end(last: ApiMessage, able: Capabilities) -> None:
    """Refuse a prefill where models take none, and trailing space where they do."""
    if last.role != "assistant" or not last.content or _ends_a_turn(last):
        return
    if not able.prefill:
        raise invalid_request(
            "This model does not support assistant message prefill. The conversation must end "
            "with a user message."
        )
    block = last.blocks()[-1]
    if block.get("type") == "text" and str(block["text"]) != str(block["text"]).rstrip():
        raise invalid_request(
            "messages: final assistant content cannot end with trailing whitespace"
        )


def _ends_a_turn(message: ApiMessage) -> bool:
    """A paused answer (a compaction alone) is resumed by sending it back last."""
    return message.blocks()[-1].get("type") == "compaction"


def _opens_with_compaction(message: ApiMessage) -> bool:
    blocks = message.blocks()
    return bool(blocks) and blocks[0].get("type") == "compaction"


def _ids(blocks: Iterable[JsonObject], kind: str, field: str) -> list[str]:
    return [str(block.get(field)) for block in blocks if block.get("type") == kind]
