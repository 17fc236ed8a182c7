"""A caller's own client of a provider's SDK as a model, and its finished answers as replies.

An asynchronous client streams as any model does. A synchronous one is called in a thread and its
answer yielded when it is whole; an aborted call runs to its end there.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, cast

from holdfast.errors import ConfigError, RequestRejected
from holdfast.messages import Json, JsonObject, Text, ToolUse, content_from_wire
from holdfast.models.anthropic import AnthropicModel
from holdfast.models.assemble import parse_input, reply_of
from holdfast.models.chat_stream import STOP_REASONS, usage_from_chat
from holdfast.models.connection import READ_SECONDS, SdkModel
from holdfast.models.openai import OpenAIModel
from holdfast.models.protocol import Event, Model, Reply, Request, play
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
        return _from_chat(raw)
    if raw.get("role") != "assistant" or "content" not in raw:
        raise RequestRejected(
            f"settle was given {type(response).__name__}, not an answer; hand in what "
            "messages.create or chat.completions.create returned"
        )
    return reply_of(raw, content_from_wire(raw["content"]), raw.get("usage") or {})


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
