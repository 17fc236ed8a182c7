"""Chat endpoints through OpenAI's SDK: OpenAI itself, vLLM, llama.cpp, Ollama and the like.

A request of the Messages API is converted (`chat`), sent by the SDK, and the chunks of the answer
are put together to the same events as Claude's (`chat_stream`).
"""

import os
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from holdfast.errors import RequestRejected
from holdfast.messages import JsonObject
from holdfast.models.chat import chat_kwargs
from holdfast.models.chat_stream import ChatAssembly
from holdfast.models.connection import (
    CONNECT_SECONDS,
    NO_KEY,
    SdkModel,
    check_is_stream,
    is_loopback,
    load_extra,
)
from holdfast.models.protocol import Event, Model, Request
from holdfast.models.translate import translated

if TYPE_CHECKING:
    from openai import AsyncOpenAI

PREFIX = "openai/"
OPENAI_HOST = "api.openai.com"
"""Takes only `max_completion_tokens`; most other servers know only `max_tokens`."""


class OpenAIModel(SdkModel):
    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        is_openai = urlsplit(str(self._client.base_url)).hostname == OPENAI_HOST
        self._limit_field = "max_completion_tokens" if is_openai else "max_tokens"

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        assembly: ChatAssembly | None = None
        with translated(lambda: assembly is not None and assembly.has_begun):
            stream = await self._send(self._convert(request))
            assembly = ChatAssembly(stream.response.headers.get("x-request-id", ""))
            try:
                async for chunk in stream:
                    for event in assembly.feed(chunk.to_dict()):
                        yield event
                for event in assembly.end():
                    yield event
            finally:
                await stream.close()

    async def count(self, request: Request) -> int | None:
        return None  # a chat endpoint cannot count a prompt beforehand

    def _convert(self, request: Request) -> JsonObject:
        kwargs = {**request.kwargs, "model": request.kwargs["model"].removeprefix(PREFIX)}
        return chat_kwargs(
            kwargs,
            limit_field=self._limit_field,
            takes_breakpoints=self.capabilities.cache_breakpoints,
        )

    async def _send(self, chat: JsonObject) -> Any:
        stream = await self._client.chat.completions.create(
            **chat, stream=True, stream_options={"include_usage": True}
        )
        try:
            check_is_stream(stream.response.headers)
        except RequestRejected:
            await stream.close()
            raise
        return stream

    def _connect(
        self, base_url: str | None, api_key: str | None, timeout_seconds: float
    ) -> "AsyncOpenAI":
        sdk = load_extra("openai", extra="openai")
        key = (
            api_key
            or os.environ.get("OPENAI_API_KEY")
            or (NO_KEY if is_loopback(base_url) else None)
        )
        with translated():
            client: AsyncOpenAI = sdk.AsyncOpenAI(
                base_url=base_url,
                api_key=key,
                max_retries=0,
                timeout=sdk.Timeout(timeout_seconds, connect=CONNECT_SECONDS),
            )
        return client


if TYPE_CHECKING:

    def _conforms(model: OpenAIModel) -> Model:
        return model
