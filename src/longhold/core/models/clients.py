"""Use a caller's SDK client as a model, and convert its answers to replies."""

from collections.abc import AsyncIterable, Awaitable, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias, cast
from urllib.parse import urlsplit

from longhold.core.messages import Json, JsonObject, Text
from longhold.core.messages.usage import fields_of
from longhold.core.models.assemble import Assembly, ChatAssembly, reply_from_responses, reply_of
from longhold.core.models.protocol import Finished, Model, Reply
from longhold.core.wire.messages import block_in, guard_reading, objects, tame
from longhold.errors import ConfigError, RequestRejected


def wrap_client(client: object, name: str) -> Model:
    """Wrap an Anthropic or OpenAI SDK client as a model. A `Model` is returned unchanged."""
    if hasattr(client, "stream") and hasattr(client, "capabilities"):
        return cast(Model, client)
    # These are imported here because a session needs at most one of them.
    match _sdk_of(client):
        case "anthropic", kind:
            from longhold.core.models.anthropic import AnthropicModel, ThreadedAnthropic

            return (AnthropicModel if kind == _ASYNC else ThreadedAnthropic)(name, client=client)
        case "openai", kind:
            from longhold.core.models.openai import OpenAIModel, ThreadedOpenAI

            return (OpenAIModel if kind == _ASYNC else ThreadedOpenAI)(name, client=client)
    raise ConfigError(
        f"client is a {type(client).__name__}; pass a client of the anthropic or openai SDK, "
        "or a model from longhold.core.models.open_model"
    )


def _sdk_of(client: object) -> tuple[Literal["anthropic", "openai"], str] | None:
    kinds = {(base.__module__.partition(".")[0], base.__name__) for base in type(client).__mro__}
    return next((kind for kind in _CLIENTS if kind in kinds), None)


_ASYNC = "AsyncAPIClient"
_SDKS: tuple[Literal["anthropic", "openai"], ...] = ("anthropic", "openai")
_CLIENTS = tuple((sdk, kind) for sdk in _SDKS for kind in (_ASYNC, "SyncAPIClient"))
OPENAI_HOST = "api.openai.com"  # accepts only `max_completion_tokens`

DialectName: TypeAlias = Literal["anthropic", "openai", "responses"]


def dialect_of(client: object) -> DialectName | None:
    """Return the dialect of an SDK client. OpenAI clients use Chat Completions."""
    found = _sdk_of(client)
    return found[0] if found else None


def is_openais_own(client: object) -> bool:
    return urlsplit(str(getattr(client, "base_url", ""))).hostname == OPENAI_HOST


async def read_response(response: object) -> Reply:
    if isinstance(response, dict | Reply):
        return reply_from(response)
    for name in ("get_final_message", "get_final_completion", "get_final_response"):
        final = getattr(response, name, None)
        if final is not None:
            response = final()
            if isinstance(response, Awaitable):
                response = await response
            return reply_from(response)
    if isinstance(response, AsyncIterable):
        return reply_from_events([event async for event in response])
    is_list = isinstance(response, Sequence) and not isinstance(response, str | bytes)
    is_stream = hasattr(response, "__next__") or hasattr(response, "response")
    if isinstance(response, Iterable) and (is_list or is_stream):
        return reply_from_events(list(response))
    return reply_from(response)


def reply_from_events(events: Sequence[object]) -> Reply:
    if not events:
        raise RequestRejected(
            "record got a stream without events; if you already read it, pass its events"
        )
    plain = [_dump_plain(event) for event in events]
    whole = (raw["response"] for raw in reversed(plain) if isinstance(raw.get("response"), dict))
    if raw := next(whole, None):
        return reply_from_responses(raw)
    is_chat = any("choices" in raw for raw in plain)
    assembly: ChatAssembly | Assembly = ChatAssembly() if is_chat else Assembly()
    done = [event for raw in plain for event in assembly.feed(raw)]
    replies = [event.reply for event in (*done, *assembly.end()) if isinstance(event, Finished)]
    return replies[-1]


def reply_from(response: object) -> Reply:
    if isinstance(response, Reply):
        return response
    raw = _dump_plain(response)
    if isinstance(raw.get("choices"), list):
        with guard_reading():
            return _from_chat(raw)
    if isinstance(raw.get("output"), list):
        with guard_reading():
            return reply_from_responses(raw)
    if raw.get("role") != "assistant" or "content" not in raw:
        raise RequestRejected(
            f"record got {type(response).__name__}, not an answer; pass the result of "
            "messages.create, chat.completions.create or responses.create"
        )
    content = raw["content"]
    blocks = (Text(text=content),) if isinstance(content, str) else map(block_in, objects(content))
    with guard_reading():
        return reply_of(raw, tuple(blocks), raw.get("usage"))


def _dump_plain(response: object) -> JsonObject:
    dump = getattr(response, "model_dump", None)
    value: Json = dump(mode="json", exclude_unset=True, warnings=False) if dump else response
    return dict(tame(dict(value))) if isinstance(value, Mapping) else {}


def _from_chat(raw: JsonObject) -> Reply:
    """Convert a complete chat answer by treating it as a stream of one chunk."""
    first = next(iter(objects(raw["choices"])), {})
    message = fields_of(first.get("message"))
    calls = [call | {"index": i} for i, call in enumerate(objects(message.get("tool_calls")))]
    choice = {
        "delta": {**message, "tool_calls": calls},
        "finish_reason": first.get("finish_reason") or "stop",
    }
    assembly = ChatAssembly()
    assembly.feed({**raw, "choices": [choice]})
    *_, finished = assembly.end()
    assert isinstance(finished, Finished), "the stream ended without a reply"
    return finished.reply
