"""A provider's finished answer as a `Reply`: an SDK's object, a dict, or a reply."""

from collections.abc import Mapping

from holdfast.errors import RequestRejected
from holdfast.messages import Json, JsonObject, Text, ToolUse, content_from_wire, usage_from_wire
from holdfast.models.assemble import parse_input
from holdfast.models.chat_stream import STOP_REASONS, usage_from_chat
from holdfast.models.protocol import Reply


def reply_from(response: object) -> Reply:
    if isinstance(response, Reply):
        return response
    raw = _plain(response)
    if isinstance(raw.get("choices"), list):
        return _from_chat(raw)
    if raw.get("role") != "assistant" or "content" not in raw:
        raise RequestRejected(
            f"settle was given {type(response).__name__}, not an answer; hand in what "
            "messages.create or chat.completions.create returned"
        )
    return Reply(
        response_id=str(raw.get("id") or ""),
        model=str(raw.get("model") or ""),
        content=content_from_wire(raw["content"]),
        stop_reason=str(raw.get("stop_reason") or ""),
        usage=usage_from_wire(raw.get("usage") or {}),
        diagnostics=raw.get("diagnostics"),
        context_management=raw.get("context_management"),
    )


def _plain(response: object) -> JsonObject:
    dump = getattr(response, "model_dump", None)
    value: Json = dump(mode="json", exclude_unset=True) if dump else response
    return dict(value) if isinstance(value, Mapping) else {}


def _from_chat(raw: JsonObject) -> Reply:
    choice = raw["choices"][0]
    reason = str(choice.get("finish_reason"))
    message = choice["message"]
    content: list[Text | ToolUse] = []
    if message.get("content"):
        content.append(Text(text=message["content"]))
    for call in message.get("tool_calls") or ():
        function = call["function"]
        content.append(
            ToolUse(id=call["id"], name=function["name"], input=parse_input(function["arguments"]))
        )
    return Reply(
        response_id=str(raw.get("id") or ""),
        model=str(raw.get("model") or ""),
        content=tuple(content),
        stop_reason=STOP_REASONS.get(reason, reason),
        usage=usage_from_chat(raw.get("usage") or {}),
    )
