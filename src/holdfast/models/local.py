"""A small model in this process, by llama.cpp, with a real prefix cache.

llama.cpp serves the Messages API on loopback; the server is started at the first request. Good
for trying the plumbing with real tokens and a real cache, not for judging answers.
"""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.errors import ConfigError, ModelError
from holdfast.models.anthropic import AnthropicModel
from holdfast.models.capabilities import Capabilities, capabilities
from holdfast.models.connection import load_extra
from holdfast.models.protocol import Event, Request
from holdfast.models.weights import find_weights, installed_path

PREFIX = "local/"
OUTPUT_SHARE = 4
"""At most a quarter of the window is answer: small models wander when they write for long."""
READ_SECONDS = 3600.0
"""Nothing comes while the prompt is read, and a core reads some tens of tokens a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalEngine:
    context_tokens: int | None = None
    """None takes the whole window the model was trained for."""
    threads: int = max(1, (os.cpu_count() or 1) // 2)
    """Half the cores: threads wait for each other busily, and a taken core stalls them all."""
    slots: int = 1
    """Conversations held at once; the window is shared among them."""


ENGINE = LocalEngine()


class LocalModel:
    def __init__(
        self,
        name: str,
        *,
        path: Path | None = None,
        engine: LocalEngine = ENGINE,
        overrides: Mapping[str, object] | None = None,
    ) -> None:
        weights = find_weights(name.removeprefix(PREFIX))
        found = path or installed_path(weights.name)
        if found is None:
            raise ConfigError(
                f"{weights.name} is not installed; holdfast model install {weights.name}"
            )
        self.name = name
        self._path = found
        self._engine = engine
        self._context_tokens = engine.context_tokens or weights.context_tokens
        self.capabilities = _abilities(name, self._context_tokens, overrides)
        self._runtime = load_extra("xllamacpp", extra="local")
        self._lock = asyncio.Lock()
        self._key = secrets.token_hex(16)
        """The server takes requests from us alone, not from every page a browser shows."""
        self._server: Any = None
        self._client: AnthropicModel | None = None

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        client = await self._connected()
        async for event in client.stream(request):
            yield event

    async def count(self, request: Request) -> int | None:
        client = await self._connected()
        return await client.count(request)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()
        server, self._server = self._server, None
        # the last reference stops the server's threads, which takes a moment
        await asyncio.to_thread(lambda held: held.clear(), [server])

    async def _connected(self) -> AnthropicModel:
        async with self._lock:
            if self._client is None:
                self._server = await asyncio.to_thread(self._start)
                self._client = AnthropicModel(
                    self.name,
                    base_url=self._server.listening_address,
                    api_key=self._key,
                    timeout_seconds=READ_SECONDS,
                )
            return self._client

    def _start(self) -> Any:
        params = self._runtime.CommonParams()
        params.model.path = str(self._path)
        params.model_alias = {self.name.removeprefix(PREFIX)}
        params.n_ctx = self._context_tokens
        params.n_parallel = self._engine.slots
        params.cpuparams.n_threads = self._engine.threads
        params.api_keys = [self._key]
        params.ui = False
        params.verbosity = 0
        try:
            return self._runtime.Server(params)
        except RuntimeError as error:
            raise ModelError(
                f"llama.cpp cannot run {self._path.name}: {error} Check memory and the file"
            ) from error


def _abilities(
    name: str, context_tokens: int, overrides: Mapping[str, object] | None
) -> Capabilities:
    """llama.cpp has a plain window, a cache from the first token, and edits nothing on its side."""
    declared: dict[str, object] = {
        "family": "local",
        "window_tokens": context_tokens,
        "max_output_tokens": context_tokens // OUTPUT_SHARE,
        "cache_minimum_tokens": 1,
        "image_limit": 0,
    }
    return capabilities(name, declared | dict(overrides or {}))
