"""Chat Completions endpoints through OpenAI's SDK: OpenAI, vLLM, llama.cpp, Ollama and others."""

import os
from collections.abc import AsyncIterator
from typing import Any, ClassVar
from urllib.parse import urlsplit

from longhold.core.http import is_loopback
from longhold.core.messages import JsonObject
from longhold.core.models.assemble import ChatAssembly
from longhold.core.models.clients import OPENAI_HOST
from longhold.core.models.connection import NO_KEY, SdkModel, ThreadedModel
from longhold.core.models.protocol import Request
from longhold.core.settings.reading import OPENAI, saved_key
from longhold.core.wire.chat import encode_request

PREFIX = "openai/"


class OpenAIModel(SdkModel):
    PACKAGE, CLIENT, ASSEMBLY = "openai", "AsyncOpenAI", ChatAssembly
    REQUEST_ID = "x-request-id"
    STREAMING: ClassVar[JsonObject] = {"stream": True, "stream_options": {"include_usage": True}}

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        is_openai = urlsplit(str(self._client.base_url)).hostname == OPENAI_HOST
        self._limit_field = "max_completion_tokens" if is_openai else "max_tokens"

    async def count(self, request: Request) -> int | None:
        return None  # chat endpoints cannot count a prompt

    def _connect(self, base_url: str | None, api_key: str | None, timeout_seconds: float) -> Any:
        otherwise = NO_KEY if is_loopback(urlsplit(base_url or "").hostname or "") else None
        is_theirs = not (base_url or os.environ.get("OPENAI_BASE_URL"))
        saved = saved_key(OPENAI) if is_theirs else None
        key = api_key or os.environ.get(OPENAI) or saved or otherwise
        return super()._connect(base_url, key, timeout_seconds)

    def _route(self, request: Request) -> tuple[Any, JsonObject]:
        kwargs = {**request.kwargs, "model": request.kwargs["model"].removeprefix(PREFIX)}
        return self._client.chat.completions.create, encode_request(
            kwargs,
            limit_field=self._limit_field,
            takes_breakpoints=self.capabilities.cache_breakpoints,
        )

    async def _events(self, stream: Any, assembly: ChatAssembly) -> AsyncIterator[JsonObject]:
        async for chunk in stream:
            yield chunk.to_dict(warnings=False)


class ThreadedOpenAI(ThreadedModel, OpenAIModel): ...
