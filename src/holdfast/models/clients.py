"""A caller's own client of a provider's SDK, wrapped as a model.

An asynchronous client streams as any model does. A synchronous one is called in a thread and its
answer yielded when it is whole; an aborted call runs to its end there.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

from holdfast.errors import ConfigError
from holdfast.messages import JsonObject
from holdfast.models.anthropic import AnthropicModel
from holdfast.models.connection import READ_SECONDS, SdkModel
from holdfast.models.openai import OpenAIModel
from holdfast.models.protocol import Event, Model, Request, play
from holdfast.models.responses import reply_from
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
