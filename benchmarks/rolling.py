"""Two gateways, a worker and a database behind a balancer, restarted one after the other under load.

Everything is a process of its own: the simulator as the provider, PostgreSQL, the gateways with
`--drain`, `longhold worker`, and a balancer that gives each connection to a gateway whose
`/longhold/ready` answers 200. Clients hold a stream open nearly all the time, as agents do. While
they talk, the gateways take turns: SIGTERM, wait until the process has ended, start it again.

`lost` counts calls without a complete answer of status 200, `changed` answers whose text is not
the provider's, `cut` streams that ended early. `added_first_byte_p99_ms` is the difference of the
99th percentiles of a run with and a run without balancer and gateways. `unmanaged_share` is the
share of calls that passed unchanged, because another gateway still held the session.

    python benchmarks/rolling.py [--clients N] [--calls N] [--restarts N] [--json]
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from gateway_load import ANSWER, request
from harness import make_parser, percentile, print_result, read_object, serve
from longhold.core.messages import JsonObject
from postgres_server import PostgresServer

GATEWAYS = 2
DRAIN_SECONDS = 1.0
"""Ten times the balancer's interval."""
LOOK_SECONDS = 0.1
SALT = "5eed" * 8


async def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline, "a gateway was not ready within a minute"
        await asyncio.sleep(LOOK_SECONDS)


@dataclass(slots=True)
class Backend:
    """One gateway process and its address, which stays the same over restarts."""

    command: Sequence[str]
    env: dict[str, str]
    address: str = ""
    is_ready: bool = False
    process: "subprocess.Popen[str] | None" = None

    def start(self) -> None:
        port = self.address.rpartition(":")[2] or "0"
        self.process = subprocess.Popen(
            [*self.command, "--port", port], env=self.env, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        printed = json.loads(read_object(self.process.stdout))
        self.address = urlsplit(printed["url"]).netloc

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    async def restart(self) -> float:
        """Restart the process. Return the seconds until it was ready again."""
        began = time.monotonic()
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(self.process.wait)
        await asyncio.to_thread(self.start)
        await until(lambda: self.is_ready)
        return time.monotonic() - began


async def look(backend: Backend) -> bool:
    host, _, port = backend.address.partition(":")
    try:
        reader, writer = await asyncio.open_connection(host, int(port))
    except OSError:
        return False
    try:
        writer.write(f"GET /longhold/ready HTTP/1.1\r\nhost: {backend.address}\r\n\r\n".encode())
        return b" 200 " in await asyncio.wait_for(reader.readline(), 5)
    except (OSError, TimeoutError):
        return False
    finally:
        writer.close()


async def watch(backends: Sequence[Backend]) -> None:
    """Ask the gateways at their pace, each on a task of its own, as balancers do."""

    async def one(backend: Backend) -> None:
        while True:
            backend.is_ready = await look(backend)
            await asyncio.sleep(LOOK_SECONDS)

    await asyncio.gather(*map(one, backends))


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def balance(backends: Sequence[Backend]) -> AsyncIterator[str]:
    """Give each connection to the ready gateway with the fewest of them."""
    in_use: Counter[str] = Counter()

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ready = [one for one in backends if one.is_ready]
        if not ready:
            writer.close()
            return
        chosen = min(ready, key=lambda one: in_use[one.address])
        in_use[chosen.address] += 1
        try:
            host, _, port = chosen.address.partition(":")
            back_reader, back_writer = await asyncio.open_connection(host, int(port))
            await asyncio.gather(pump(reader, back_writer), pump(back_reader, writer))
        finally:
            in_use[chosen.address] -= 1
            writer.close()

    watching = asyncio.create_task(watch(backends))
    server = await asyncio.start_server(serve_one, "127.0.0.1", 0, backlog=2_048)
    await until(lambda: all(one.is_ready for one in backends))
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        watching.cancel()
        await asyncio.sleep(LOOK_SECONDS)  # until the connections' tasks have ended


@dataclass(slots=True)
class Outcome:
    first_bytes: list[float] = field(default_factory=list)
    lost: int = 0
    changed: int = 0
    cut: int = 0
    unmanaged: int = 0


def text_of_stream(body: bytes) -> str:
    """Join the text of an answer's events."""
    parts = []
    for line in body.splitlines():
        if line.startswith(b"data: ") and b'"text_delta"' in line:
            parts.append(msgspec.json.decode(line[6:])["delta"]["text"])
    return "".join(parts)


class Client:
    """An agent: it keeps its list, and its connection as long as the server lets it."""

    def __init__(self, url: str, session: str, outcome: Outcome) -> None:
        self._netloc = urlsplit(url).netloc
        self._session, self._outcome = session, outcome
        self._messages: list[JsonObject] = []
        self._open: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def talk(self, words: Sequence[str], *, until: asyncio.Event | None = None) -> None:
        """Say these words, and then go on until the event is set."""
        said, n = iter(words), 0
        while (word := next(said, None)) is not None or (until and not until.is_set()):
            n += 1
            self._messages.append({"role": "user", "content": word or f"Go on, {n}."})
            await self._call()
        if self._open:
            self._open[1].close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._open and not self._open[0].at_eof():
            return self._open
        host, _, port = self._netloc.partition(":")
        self._open = await asyncio.open_connection(host, int(port), limit=2**22)
        return self._open

    async def _call(self) -> None:
        body = request(self._messages)
        head = (
            f"POST /v1/messages HTTP/1.1\r\nhost: {self._netloc}\r\n"
            f"x-api-key: {self._session}\r\nanthropic-version: 2023-06-01\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
            f"x-claude-code-session-id: {self._session}\r\n\r\n"
        )
        began = time.perf_counter()
        status, headers, received, first = b"", b"", b"", 0.0
        try:
            reader, writer = await self._connect()
            writer.write(head.encode() + body)
            status = await reader.readline()
            headers = (await reader.readuntil(b"\r\n\r\n")).lower()
            while not received.endswith(b"\r\n0\r\n\r\n"):
                chunk = await reader.read(65_536)
                first = first or time.perf_counter() - began
                if not chunk:
                    break
                received += chunk
        except (OSError, asyncio.IncompleteReadError):
            self._open = None
        if b"connection: close" in headers:
            writer.close()
            self._open = None
        self._judge(status, headers, received, first)

    def _judge(self, status: bytes, headers: bytes, received: bytes, first: float) -> None:
        is_whole = b"event: message_stop" in received
        said = text_of_stream(_join_chunks(received))
        outcome = self._outcome
        outcome.first_bytes.append(first)
        outcome.lost += b" 200 " not in status
        outcome.cut += b" 200 " in status and not is_whole
        outcome.changed += is_whole and said != ANSWER
        outcome.unmanaged += b"x-longhold-passed" in headers
        if is_whole:
            self._messages.append({"role": "assistant", "content": said})
        else:
            self._messages.pop()


def _join_chunks(received: bytes) -> bytes:
    """Undo the chunked transfer encoding."""
    parts, rest = [], received
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size or b"0", 16)
        if not length:
            break
        parts.append(rest[:length])
        rest = rest[length + 2 :]
    return b"".join(parts)


async def crowd(url: str, clients: int, calls: int, until: asyncio.Event | None = None) -> Outcome:
    """Have clients talk, each from its own moment of the first five seconds on."""
    outcome = Outcome()

    async def one(number: int) -> None:
        await asyncio.sleep(5.0 * number / clients)
        client = Client(url, f"s{number}", outcome)
        await client.talk([f"I am {number}, call {n}." for n in range(calls)], until=until)

    await asyncio.gather(*map(one, range(clients)))
    return outcome


async def roll(
    backends: Sequence[Backend], clients: int, calls: int, restarts: int
) -> tuple[Outcome, list[float]]:
    async with balance(backends) as url:
        ended = asyncio.Event()
        talking = asyncio.create_task(crowd(url, clients, calls, ended))
        await asyncio.sleep(6.0)  # until every client has begun
        seconds: list[float] = []
        for n in range(restarts):
            seconds.append(await backends[n % GATEWAYS].restart())
            print(f"restart {n + 1} of {restarts}: {seconds[-1]:.1f} s", file=sys.stderr)
        ended.set()
        return await talking, seconds


def measure(clients: int, calls: int, restarts: int) -> JsonObject:
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        provider = (str(Path(__file__).with_name("gateway_load.py")), "--provider")
        up, _ = stack.enter_context(serve(*provider, home=home))
        direct = asyncio.run(crowd(up["paced"], clients, calls))
        database = PostgresServer()
        stack.callback(database.stop)
        longhold = (sys.executable, "-m", "longhold")
        shared = os.environ | {"LONGHOLD_STORE": database.url, "LONGHOLD_SALT": SALT}
        words = ("--upstream", up["paced"], "--drain", f"{DRAIN_SECONDS:g}", "--json")
        backends = [
            Backend((*longhold, "gateway", *words), shared | {"LONGHOLD_HOME": f"{home}/{n}"})
            for n in range(GATEWAYS)
        ]
        for one in backends:
            stack.callback(one.stop)
            one.start()
        worker = subprocess.Popen(
            [*longhold, "worker"], env=shared | {"LONGHOLD_HOME": f"{home}/worker"}
        )
        stack.callback(lambda: (worker.terminate(), worker.wait(30)))
        through, seconds = asyncio.run(roll(backends, clients, calls, restarts))
        is_worker_alive = worker.poll() is None
    added = percentile(through.first_bytes, 0.99) - percentile(direct.first_bytes, 0.99)
    calls_made = len(through.first_bytes)
    return {
        "clients": clients,
        "calls": calls_made,
        "restarts": len(seconds),
        "lost": through.lost,
        "changed": through.changed,
        "cut": through.cut,
        "unmanaged_share": round(through.unmanaged / calls_made, 4),
        "direct_lost": direct.lost + direct.cut + direct.changed,
        "direct_first_byte_p99_ms": round(1_000 * percentile(direct.first_bytes, 0.99), 1),
        "added_first_byte_p99_ms": round(1_000 * added, 1),
        "restart_p50_s": round(percentile(seconds, 0.5), 1),
        "worker_alive": is_worker_alive,
    }


def main() -> None:
    given = make_parser(__doc__, clients=500, calls=2, restarts=20).parse_args()
    print_result(measure(given.clients, given.calls, given.restarts), given.json)


if __name__ == "__main__":
    main()
