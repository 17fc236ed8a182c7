"""Base classes for models behind a provider's SDK."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, ClassVar

from longhold.core.messages import JsonObject
from longhold.core.models.assemble import Assembly, ChatAssembly
from longhold.core.models.capabilities import capabilities
from longhold.core.models.clients import reply_from
from longhold.core.models.protocol import Event, Request, play
from longhold.core.models.translate import translate_errors
from longhold.core.settings.installation import load_extra
from longhold.core.wire.messages import guard_reading, tame
from longhold.errors import RequestRejected

CONNECT_SECONDS = 5.0  # the default of both SDKs, because a slower host is usually down
READ_SECONDS = 600.0  # The read timeout of both SDKs. `steady` usually gives up earlier.
NO_KEY = "none"  # sent to local servers, which require a key but accept any


class SdkModel:
    """A model behind an SDK client. The client's own retries are disabled."""

    PACKAGE: ClassVar[str]
    CLIENT: ClassVar[str]
    ASSEMBLY: ClassVar[type[Assembly | ChatAssembly]]
    REQUEST_ID: ClassVar[str]
    STREAMING: ClassVar[JsonObject] = {"stream": True}

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_seconds: float = READ_SECONDS,
        overrides: Mapping[str, object] | None = None,
        client: Any = None,
    ) -> None:
        self.name = name
        self.capabilities = capabilities(name, overrides)
        self._is_shared = client is not None
        self._client = (
            client.with_options(max_retries=0)
            if client is not None
            else self._connect(base_url, api_key, timeout_seconds)
        )

    @property
    def sdk_client(self) -> Any:
        return self._client

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        assembly: Assembly | ChatAssembly | None = None
        with translate_errors(lambda: assembly is not None and assembly.has_begun):
            create, kwargs = self._route(request)
            stream = await create(**kwargs, **self.STREAMING)
            try:
                headers = stream.response.headers
                kind = headers.get("content-type", "text/event-stream")
                if not kind.startswith("text/event-stream"):  # another kind of server answered
                    raise RequestRejected(
                        f"the server answered with {kind!r}, not a stream; check base_url"
                    )
                assembly = self.ASSEMBLY(headers.get(self.REQUEST_ID, ""))
                async for raw in self._events(stream, assembly):
                    with guard_reading():
                        events = assembly.feed(tame(raw))
                    for event in events:
                        yield event
                with guard_reading():
                    events = assembly.end()
                for event in events:
                    yield event
            finally:
                await stream.close()

    async def close(self) -> None:
        if not self._is_shared:
            await self._client.close()

    def _connect(self, base_url: str | None, api_key: str | None, timeout_seconds: float) -> Any:
        sdk = load_extra(self.PACKAGE, extra=self.PACKAGE)
        with translate_errors():
            return getattr(sdk, self.CLIENT)(
                base_url=base_url,
                api_key=api_key,
                max_retries=0,
                timeout=sdk.Timeout(timeout_seconds, connect=CONNECT_SECONDS),
            )

    def _route(self, request: Request) -> tuple[Any, JsonObject]:
        raise NotImplementedError

    def _events(self, stream: Any, assembly: Any) -> AsyncIterator[JsonObject]:
        raise NotImplementedError


class ThreadedModel(SdkModel):
    """Calls a synchronous client in a thread. An aborted call still runs to its end there."""

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        create, kwargs = self._route(request)
        with translate_errors():
            response = await asyncio.to_thread(create, **kwargs)
        for event in play(reply_from(response)):
            yield event

    async def count(self, request: Request) -> int | None:
        """Return None. Sizes are estimated, because a count would wait for a thread."""
        return None
