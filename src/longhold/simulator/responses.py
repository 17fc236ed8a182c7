"""The Responses endpoint. It has the chat endpoint's rules, with that API's items and events."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import msgspec

from longhold.core.messages import Json
from longhold.core.request.billing.api_request import Caller, JsonObject, invalid_request
from longhold.core.wire import responses
from longhold.simulator.brains import BrainRequest
from longhold.simulator.finishing import new_id
from longhold.simulator.openai import (
    ChatEndpoint,
    ChatReply,
    ServedAnswer,
    brain_request,
    check_role,
    record_answer,
)
from longhold.simulator.stream import StreamEvent, slices

STORED = ("previous_response_id", "conversation")
FREEFORM = {"type": "object", "properties": {"input": {"type": "string"}}}
DELTAS = {
    "message": "response.output_text",
    "function_call": "response.function_call_arguments",
    "custom_tool_call": "response.custom_tool_call_input",
}
FULL_TEXT = {"message": "text", "function_call": "arguments", "custom_tool_call": "input"}


async def create_response(chat: ChatEndpoint, body: JsonObject, caller: Caller) -> ChatReply:
    for field in STORED:
        if body.get(field):
            raise invalid_request(f"Unsupported parameter: '{field}'.", "unsupported_parameter")
    able = chat.check_request(body, "input")
    given = body["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    for index, item in enumerate(items):
        if responses.is_input_message(item):
            check_role(item.get("role"), f"input[{index}]")
    tools = {tool["name"]: tool for tool in _tools(body, items)}
    room = body.get("max_output_tokens") or able.max_output_tokens
    parts = (body.get("instructions") or "", *(body.get("tools") or ()), *items)
    served = await chat.serve(
        able, caller, parts, room, partial(_build_brain_request, body, items, tools)
    )
    response = _response(body, served, tools)
    is_stream = bool(body.get("stream"))
    events = _events(response, chat.delta_chars) if is_stream else ()
    chunks = [event.encode() for event in events] or [msgspec.json.encode(response)]
    record = record_answer(response["id"], "responses", served)
    return ChatReply(chunks, is_stream, served.match, record)


def _tools(body: JsonObject, items: Iterable[JsonObject]) -> Iterator[JsonObject]:
    late = [item["tools"] for item in items if item.get("type") == "additional_tools"]
    for tool in (*(body.get("tools") or ()), *(tool for tools in late for tool in tools)):
        if tool.get("type") == "namespace":
            yield from ({**one, "namespace": tool["name"]} for one in tool["tools"])
        elif tool.get("type") in ("function", "custom"):
            yield tool


def _build_brain_request(
    body: JsonObject, items: Iterable[JsonObject], tools: Mapping[str, JsonObject], room: int
) -> BrainRequest:
    instructions = {"role": "system", "content": body.get("instructions") or ""}
    functions = [{"parameters": FREEFORM, **tool} for tool in tools.values()]
    heard = map(responses.decode_item, (instructions, *items))
    return brain_request(str(body["model"]), heard, functions, room)


def _response(
    body: JsonObject, served: ServedAnswer, tools: Mapping[str, JsonObject]
) -> JsonObject:
    is_cut = served.reason == "max_tokens"
    return {
        "id": new_id("resp_"),
        "object": "response",
        "created_at": int(served.started),
        "status": "incomplete" if is_cut else "completed",
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "model": body["model"],
        "output": [_item(block, tools) for block in served.fitted.blocks],
        "parallel_tool_calls": bool(body.get("parallel_tool_calls", True)),
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools") or [],
        "usage": served.usage("input_tokens", "output_tokens"),
    }


def _item(block: JsonObject, tools: Mapping[str, JsonObject]) -> JsonObject:
    if block["type"] == "text":
        part = {"type": "output_text", "text": block["text"], "annotations": [], "logprobs": []}
        item = {"type": "message", "id": new_id("msg_"), "role": "assistant", "content": [part]}
        return {**item, "status": "completed"}
    tool = tools.get(block["name"], {})
    is_custom = tool.get("type") == "custom"
    id = block.get("id") or new_id("call_")
    call = responses.encode_call(id, block["name"], block["input"], is_custom=is_custom)
    if namespace := tool.get("namespace"):
        call["namespace"] = namespace
    return {**call, "id": new_id("ctc_" if is_custom else "fc_"), "status": "completed"}


def _events(response: JsonObject, size: int) -> Iterator[StreamEvent]:
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    last = f"response.{response['status']}"
    events = [
        ("response.created", {"response": begun}),
        *(
            event
            for index, item in enumerate(response["output"])
            for event in _item_events(item, index, size)
        ),
        (last, {"response": response}),
    ]
    for number, (name, fields) in enumerate(events):
        yield StreamEvent(name, {"type": name, "sequence_number": number, **fields})


def _item_events(item: JsonObject, index: int, size: int) -> Iterator[tuple[str, dict[str, Json]]]:
    kind = item["type"]
    name, field, at = DELTAS[kind], FULL_TEXT[kind], {"output_index": index}
    of_item = {**at, "item_id": item["id"]}
    if kind == "message":
        [part] = item["content"]
        empty, full = {**item, "content": []}, part["text"]
        of_item |= {"content_index": 0, "logprobs": []}
        opened = {**of_item, "part": {**part, "text": ""}}
    else:
        empty, full = {**item, field: ""}, item[field]
    yield "response.output_item.added", {**at, "item": {**empty, "status": "in_progress"}}
    if kind == "message":
        yield "response.content_part.added", opened
    for text in slices(full, size):
        yield f"{name}.delta", {**of_item, "delta": text}
    yield f"{name}.done", {**of_item, field: full}
    if kind == "message":
        yield "response.content_part.done", {**of_item, "part": part}
    yield "response.output_item.done", {**at, "item": item}
