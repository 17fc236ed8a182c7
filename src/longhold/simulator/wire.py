"""ASGI responses, whole or in chunks. After a fault, the server closes the unfinished response."""

import asyncio
from collections.abc import Callable, Sequence

from starlette.types import Receive, Scope, Send

from longhold.core.http import Headers
from longhold.simulator.faults import InjectedFault


class WireResponse:
    def __init__(
        self,
        chunks: Sequence[bytes],
        *,
        headers: Headers,
        begin: Callable[[], None],
        fault: InjectedFault | None = None,
        is_stream: bool = False,
        between_seconds: float = 0.0,
    ) -> None:
        self._chunks = chunks
        self._headers = headers
        self._begin = begin
        self._fault = fault
        self._is_stream = is_stream
        self._between_seconds = between_seconds if is_stream else 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = list(self._headers)
        if not self._is_stream:
            size = sum(len(chunk) for chunk in self._chunks)
            headers.append((b"content-length", str(size).encode()))
        self._begin()
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        kind = self._fault.stream if self._fault else None
        for chunk in self._distort_chunks():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            if self._between_seconds:
                await asyncio.sleep(self._between_seconds)
        if kind == "stall":
            while (await receive())["type"] != "http.disconnect":
                pass
        elif kind != "cut":
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _distort_chunks(self) -> Sequence[bytes]:
        fault, chunks = self._fault, self._chunks
        if fault is None and self._between_seconds:
            return chunks
        if fault is None:
            return [chunks[0], b"".join(chunks[1:])] if len(chunks) > 1 else chunks
        after = fault.after_events
        if not self._is_stream:
            return _distort_body(b"".join(chunks), fault)
        match fault.stream:
            case "cut" | "stall" | "end_early":
                return chunks[:after]
            case "one_byte":
                return [bytes([byte]) for chunk in chunks for byte in chunk]
            case "repeat":
                return [*chunks[:after], *chunks[max(after - 1, 0) :]]
            case _:
                return chunks


def _distort_body(body: bytes, fault: InjectedFault) -> Sequence[bytes]:
    match fault.stream:
        case "cut":
            return [body[: len(body) // 2]]
        case "stall":
            return []
        case "one_byte":
            return [bytes([byte]) for byte in body]
        case _:
            return [body]
