"""Converts between the chat-completions shapes and the Messages shapes that brains read.

Breaches of the chat rules are raised in that API's wording.
"""

from collections.abc import Iterable, Sequence

import msgspec

from longhold.core.request.billing.errors import invalid_request
from longhold.core.request.billing.request import JsonObject


def system_of(messages: Iterable[JsonObject]) -> tuple[JsonObject, ...]:
    return tuple(
        block
        for message in messages
        if message.get("role") in ("system", "developer")
        for block in _parts(message.get("content"))
    )


def conversation_of(messages: Iterable[JsonObject]) -> tuple[JsonObject, ...]:
    """Convert chat messages to Messages messages, with tool results in the user's."""
    turned: list[JsonObject] = []
    for message in messages:
        role, blocks = _convert_message(message)
        if not blocks:
            continue
        if turned and turned[-1]["role"] == role:
            turned[-1]["content"].extend(blocks)
        else:
            turned.append({"role": role, "content": blocks})
    return tuple(turned)


def tools_of(tools: Iterable[JsonObject]) -> tuple[JsonObject, ...]:
    return tuple(
        {
            "name": tool["function"]["name"],
            "description": tool["function"].get("description", ""),
            "input_schema": tool["function"].get("parameters") or {"type": "object"},
        }
        for tool in tools
        if tool.get("type") == "function"
    )


def check_chat(messages: Sequence[JsonObject]) -> None:
    if not messages:
        raise invalid_request("[] is too short - 'messages'", "empty_array")
    open_ids: list[str] = []
    for index, message in enumerate(messages):
        role = message.get("role")
        if role == "tool":
            if message.get("tool_call_id") not in open_ids:
                raise invalid_request(
                    "Invalid parameter: messages with role 'tool' must be a response to a "
                    "preceeding message with 'tool_calls'."
                )
            open_ids.remove(str(message.get("tool_call_id")))
            continue
        _refuse_unanswered(open_ids)
        if role not in ("system", "developer", "user", "assistant"):
            raise invalid_request(
                f"Invalid value: {role!r} - 'messages[{index}].role'", "invalid_value"
            )
        open_ids = [str(call.get("id")) for call in message.get("tool_calls") or ()]
    _refuse_unanswered(open_ids)


def chat_message(blocks: Iterable[JsonObject]) -> JsonObject:
    """Convert an answer to a chat message; thinking is dropped."""
    texts = [str(block["text"]) for block in blocks if block["type"] == "text"]
    message: JsonObject = {
        "role": "assistant",
        "content": "".join(texts) if texts else None,
        "refusal": None,
    }
    calls = [_call(block) for block in blocks if block["type"] == "tool_use"]
    return {**message, "tool_calls": calls} if calls else message


def _refuse_unanswered(open_ids: Sequence[str]) -> None:
    if open_ids:
        raise invalid_request(
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
            f"{', '.join(open_ids)}"
        )


def _convert_message(message: JsonObject) -> tuple[str, list[JsonObject]]:
    match message.get("role"):
        case "user":
            return "user", _parts(message.get("content"))
        case "tool":
            result = {
                "type": "tool_result",
                "tool_use_id": message.get("tool_call_id"),
                "content": _parts(message.get("content")),
            }
            return "user", [result]
        case "assistant":
            uses = [_use(call) for call in message.get("tool_calls") or ()]
            return "assistant", [*_parts(message.get("content")), *uses]
        case _:
            return "", []


def _parts(content: object) -> list[JsonObject]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    if not isinstance(content, list):
        return []
    return [_part(part) for part in content if isinstance(part, dict)]


def _part(part: JsonObject) -> JsonObject:
    if part.get("type") == "image_url":
        url = (part.get("image_url") or {}).get("url")
        return {"type": "image", "source": {"type": "url", "url": url}}
    return {"type": "text", "text": str(part.get("text", ""))}


def _use(call: JsonObject) -> JsonObject:
    function = call.get("function") or {}
    try:
        arguments = msgspec.json.decode(function.get("arguments") or "{}")
    except msgspec.DecodeError:
        arguments = {"arguments": function.get("arguments")}
    return {
        "type": "tool_use",
        "id": call.get("id"),
        "name": function.get("name"),
        "input": arguments,
    }


def _call(block: JsonObject) -> JsonObject:
    return {
        "id": block["id"],
        "type": "function",
        "function": {
            "name": block["name"],
            "arguments": msgspec.json.encode(block["input"]).decode(),
        },
    }
