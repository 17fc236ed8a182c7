"""How long the head of a request may be, and how long it may take to arrive.

The server itself waits for ever and keeps what it has got. Bodies have their own limits, where they
are read.
"""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from holdfast.settings import GatewaySettings


def limited_heads(settings: GatewaySettings) -> type[HttpToolsProtocol]:
    """Return a protocol that closes connections whose next head is too long or too slow."""

    class LimitedHeads(HttpToolsProtocol):
        """Between `connection_made` or `on_message_begin` and `on_headers_complete` a head is due."""

        _due: asyncio.TimerHandle | None = None
        _head_bytes = 0

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._expect_head()

        def connection_lost(self, exc: Exception | None) -> None:
            self._end_head()
            super().connection_lost(exc)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._expect_head()

        def on_headers_complete(self) -> None:
            self._end_head()
            super().on_headers_complete()

        def data_received(self, data: bytes) -> None:
            if self._due is not None:
                self._head_bytes += len(data)
                if self._head_bytes > settings.head_bytes and b"\r\n\r\n" not in data:
                    self.send_400_response(f"The head is over {settings.head_bytes} bytes.")
                    return
            super().data_received(data)

        def _expect_head(self) -> None:
            if self._due is None:
                self._head_bytes = 0
                self._due = self.loop.call_later(settings.body_seconds, self.transport.close)

        def _end_head(self) -> None:
            if self._due is not None:
                self._due.cancel()
                self._due = None

    return LimitedHeads
