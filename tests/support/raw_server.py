"""A raw HTTP server on loopback that sends exactly the bytes of a test."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Act = Callable[[asyncio.StreamWriter], Awaitable[None]]

HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nrequest-id: req_1\r\n"
    b"x-request-id: req_1\r\ntransfer-encoding: chunked\r\n\r\n"
)


@dataclass
class Wire:
    """What a server did and heard."""

    url: str = ""
    bodies: list[bytes] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    connections: int = 0

    @property
    def requests(self) -> list[dict]:
        return [json.loads(body) for body in self.bodies]


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def sse(event: dict, *, name: bool = True) -> bytes:
    head = f"event: {event['type']}\n" if name else ""
    return f"{head}data: {json.dumps(event)}\n\n".encode()


async def _read_request(reader: asyncio.StreamReader, wire: Wire) -> bool:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except (asyncio.IncompleteReadError, ConnectionError):
        return False
    length = next(
        (
            int(line.split(":")[1])
            for line in head.split("\r\n")
            if line.lower().startswith("content-length")
        ),
        0,
    )
    wire.heads.append(head)
    wire.bodies.append(await reader.readexactly(length))
    return True


@asynccontextmanager
async def serving(*acts: Act) -> AsyncIterator[Wire]:
    """Answer request number n with act number n, the last one for all that follow."""
    wire = Wire()
    writers: list[asyncio.StreamWriter] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire.connections += 1
        writers.append(writer)
        try:
            while await _read_request(reader, wire):
                await acts[min(len(wire.bodies), len(acts)) - 1](writer)
                if writer.is_closing():
                    break
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    wire.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield wire
    finally:
        server.close()
        for writer in writers:
            writer.close()


class Say:
    """The things a server may do, as acts."""

    @staticmethod
    def whole(*events: dict, name: bool = True, done: bool = False) -> Act:
        """Stream all events and end well."""

        async def act(writer: asyncio.StreamWriter) -> None:
            tail = b"data: [DONE]\n\n" if done else b""
            data = b"".join(sse(event, name=name) for event in events) + tail
            writer.write(HEAD + chunk(data) + chunk(b""))
            await writer.drain()

        return act

    @staticmethod
    def bytewise(*events: dict, name: bool = True, done: bool = False) -> Act:
        """Stream all events in pieces of one byte."""

        async def act(writer: asyncio.StreamWriter) -> None:
            tail = b"data: [DONE]\n\n" if done else b""
            writer.write(HEAD)
            for byte in b"".join(sse(event, name=name) for event in events) + tail:
                writer.write(chunk(bytes([byte])))
                await writer.drain()
            writer.write(chunk(b""))
            await writer.drain()

        return act

    @staticmethod
    def cut(*events: dict, name: bool = True) -> Act:
        """Stream some events and drop the connection."""

        async def act(writer: asyncio.StreamWriter) -> None:
            writer.write(HEAD + b"".join(chunk(sse(event, name=name)) for event in events))
            await writer.drain()
            writer.close()

        return act

    @staticmethod
    def stalled(*events: dict, name: bool = True) -> Act:
        """Stream some events and then say nothing, with the connection open."""

        async def act(writer: asyncio.StreamWriter) -> None:
            writer.write(HEAD + b"".join(chunk(sse(event, name=name)) for event in events))
            await writer.drain()
            await asyncio.sleep(3600)

        return act

    @staticmethod
    def pinging(*events: dict) -> Act:
        """Stream some events and then ping for as long as somebody listens."""

        async def act(writer: asyncio.StreamWriter) -> None:
            writer.write(HEAD + b"".join(chunk(sse(event)) for event in events))
            while not writer.is_closing():
                writer.write(chunk(sse({"type": "ping"})))
                await writer.drain()
                await asyncio.sleep(0.01)

        return act

    @staticmethod
    def raw(data: bytes) -> Act:
        """Say these very bytes and close."""

        async def act(writer: asyncio.StreamWriter) -> None:
            writer.write(data)
            await writer.drain()
            writer.close()

        return act

    @staticmethod
    def status(code: int, body: dict | str, **headers: str) -> Act:
        """Fail with a status and a body."""

        async def act(writer: asyncio.StreamWriter) -> None:
            data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            lines = [f"HTTP/1.1 {code} X", "content-type: application/json", "request-id: req_1"]
            lines += ["x-request-id: req_1", f"content-length: {len(data)}"]
            lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
            writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
            await writer.drain()

        return act
