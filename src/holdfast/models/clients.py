"""A caller's own client of a provider's SDK as a model, and its finished answers as replies.

An asynchronous client streams as any model does. A synchronous one is called in a thread and its
answer yielded when it is whole; an aborted call runs to its end there.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

from holdfast.errors import ConfigError, RequestRejected
from holdfast.messages import Json, JsonObject, Text
from holdfast.messages.usage import fields_of
from holdfast.models.anthropic import AnthropicModel
from holdfast.models.assemble import block_in, reply_of
from holdfast.models.chat_stream import ChatAssembly
from holdfast.models.connection import READ_SECONDS, SdkModel
from holdfast.models.incoming import objects, readable, tame
from holdfast.models.openai import OpenAIModel
from holdfast.models.protocol import Event, Finished, Model, Reply, Request, play
from holdfast.models.translate import translated


class _ThreadedModel(SdkModel):
    async def stream(self, request: Request) -> AsyncIterator[Event]:
        create, kwargs = self._route(request)
        with translated():
            response = await asyncio.to_thread(create, **kwargs)
        for event in play(reply_from(response)):
            yield event

    async def count(self, request: Request) -> int | None:
        """Answer None: sizes are estimated where a thread would have to wait for them."""
        return None


class ThreadedAnthropic(_ThreadedModel, AnthropicModel):
    def _route(self, request: Request, method: str = "create") -> tuple[Any, JsonObject]:
        """Set a time limit; without one the SDK insists on streaming."""
        endpoint, kwargs = AnthropicModel._route(self, request, method)
        return endpoint, kwargs | {"timeout": READ_SECONDS}


class ThreadedOpenAI(_ThreadedModel, OpenAIModel): ...


def model_over(client: object, name: str) -> Model:
    """Wrap a client of Anthropic's or OpenAI's SDK as a model of this name; a `Model` is returned as it is."""
    if hasattr(client, "stream") and hasattr(client, "capabilities"):
        return cast(Model, client)
    kinds = {(base.__module__.partition(".")[0], base.__name__) for base in type(client).__mro__}
    over: Any = client
    if ("anthropic", "AsyncAPIClient") in kinds:
        return AnthropicModel(name, client=over)
    if ("anthropic", "SyncAPIClient") in kinds:
        return ThreadedAnthropic(name, client=over)
    if ("openai", "AsyncAPIClient") in kinds:
        return OpenAIModel(name, client=over)
    if ("openai", "SyncAPIClient") in kinds:
        return ThreadedOpenAI(name, client=over)
    raise ConfigError(
        f"client is a {type(client).__name__}; give a client of anthropic's or openai's SDK, "
        "or a model from holdfast.models.open_model"
    )


def reply_from(response: object) -> Reply:
    """Read a finished answer: an SDK's object, a dict, or a reply."""
    if isinstance(response, Reply):
        return response
    raw = _plain(response)
    if isinstance(raw.get("choices"), list):
        with readable():
            return _from_chat(raw)
    if raw.get("role") != "assistant" or "content" not in raw:
        raise RequestRejected(
            f"settle was given {type(response).__name__}, not an answer; hand in what "
            "messages.create or chat.completions.create returned"
        )
    content = raw["content"]
    blocks = (Text(text=content),) if isinstance(content, str) else map(block_in, objects(content))
    with readable():
        return reply_of(raw, tuple(blocks), raw.get("usage"))


def _plain(response: object) -> JsonObject:
    dump = getattr(response, "model_dump", None)
    value: Json = dump(mode="json", exclude_unset=True, warnings=False) if dump else response
    return dict(tame(dict(value))) if isinstance(value, Mapping) else {}


def _from_chat(raw: JsonObject) -> Reply:
    """Read a whole answer of a chat endpoint as a stream of one chunk."""
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
    assert isinstance(finished, Finished), "an answer ends with its reply"
    return finished.reply
