"""Render a response as server-sent events, in the API's order and format. `wire` applies faults."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from longhold.core.request.billing.api_request import JsonObject
from longhold.simulator.simulation import ServedOutcome


class StreamEvent(NamedTuple):
    name: str
    data: JsonObject

    def encode(self) -> bytes:
        return b"event: %s\ndata: %s\n\n" % (self.name.encode(), msgspec.json.encode(self.data))


def message_events(outcome: ServedOutcome, delta_chars: int) -> Iterator[StreamEvent]:
    message = outcome.message
    # The usage in the first event already includes the prompt.
    opening = {**message, "content": [], "stop_reason": None, "stop_sequence": None}
    managed = {"context_management": opening.pop("context_management", None)}
    opening["usage"] = outcome.usage.to_json(is_start=True)
    yield _event("message_start", message=opening)
    yield _event("ping")
    for index, block in enumerate(message["content"]):
        yield from _block_events(index, block, delta_chars)
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": message["stop_sequence"]}
    more = managed if "context_management" in message else {}
    yield _event("message_delta", delta=delta, usage=message["usage"], **more)
    yield _event("message_stop")


def slices(text: str, size: int) -> Sequence[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def _event(name: str, **fields: object) -> StreamEvent:
    return StreamEvent(name, {"type": name, **fields})


def _block_events(index: int, block: JsonObject, size: int) -> Iterator[StreamEvent]:
    empty, deltas = _unroll(block, size)
    yield _event("content_block_start", index=index, content_block=empty)
    for delta in deltas:
        yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _unroll(block: JsonObject, size: int) -> tuple[JsonObject, list[JsonObject]]:
    match block["type"]:
        case "text":
            texts = slices(str(block["text"]), size)
            return {**block, "text": ""}, [{"type": "text_delta", "text": t} for t in texts]
        case "thinking":
            texts = slices(str(block["thinking"]), size)
            deltas: list[JsonObject] = [{"type": "thinking_delta", "thinking": t} for t in texts]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
            return {**block, "thinking": "", "signature": ""}, deltas
        case "tool_use":
            arguments = msgspec.json.encode(block["input"]).decode()
            parts = ["", *slices(arguments, size)]
            return {**block, "input": {}}, [
                {"type": "input_json_delta", "partial_json": part} for part in parts
            ]
        case "compaction":
            delta = {**block, "type": "compaction_delta"}
            return {**block, "content": None}, [delta]
        case _:
            return block, []
