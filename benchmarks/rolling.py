"""Two gateways, a worker and a database behind a balancer, restarted one after the other under load.

Everything is a process of its own: the simulator as the provider, PostgreSQL, the gateways with
`--drain`, `longhold worker`, and the balancer. The balancer is HAProxy with `deploy/haproxy.cfg`
where it is installed. Elsewhere it is a few lines here, which give each connection to a gateway
whose `/longhold/ready` answers 200. While the clients talk, the gateways take turns: SIGTERM, wait
until the process has ended, start it again.

A client has a stream open all the time: it calls again when its answer is complete. An answer takes
25 seconds (`--seconds`): 550 tokens, about four in an event, an event every 0.2 seconds. So 500
clients are 500 open streams, 20 calls and 2,500 events a second. `gateway_load.py` has more calls
and fewer streams.

`lost` counts calls without a complete answer of status 200, `changed` answers whose text is not
the provider's, `cut` streams that ended early. `unmanaged_share` is the share of calls that passed
unchanged, because another gateway still held the session.

Latency: all clients first call the provider directly. `added_first_byte_*_ms` is the difference of
the percentiles through the gateways and directly, and `added_pause_*_ms` the same of the longest
time between two reads of an answer. Clients, provider, balancer, database and gateways share the
machine, so the difference also has what the gateways take from the others. A tenth more clients
keep calling the provider directly while the gateways are restarted: `control_first_byte_p99_ms` is
what they wait. `cpu_ms_per_call` is the CPU time of each part, which other programs on the machine
hardly change.

    python benchmarks/rolling.py [--clients N] [--calls N] [--restarts N] [--seconds N] [--json]
"""

import asyncio
import gc
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from gateway_load import ANSWER, request
from harness import make_parser, percentile, print_result, read_object, rss_mb, serve
from longhold.core.http import listen
from longhold.core.messages import JsonObject
from postgres_server import PostgresServer
from programs import find

GATEWAYS = 2
DRAIN_SECONDS = 3.0
"""Three times the balancer's interval."""
SETTLE_SECONDS = 4.0
"""Until the balancer has seen twice that a gateway is ready again."""
LOOK_SECONDS = 0.1
SALT = "5eed" * 8
HAPROXY = find("haproxy") or find("/usr/sbin/haproxy")
HAPROXY_CONFIG = Path(__file__).parents[1] / "deploy" / "haproxy.cfg"


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

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

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
async def balance_here(backends: Sequence[Backend]) -> AsyncIterator[str]:
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

    server = await asyncio.start_server(serve_one, "127.0.0.1", 0, backlog=2_048)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await asyncio.sleep(LOOK_SECONDS)  # until the connections' tasks have ended


@asynccontextmanager
async def balance_by_haproxy(backends: Sequence[Backend], place: Path) -> AsyncIterator[str]:
    """Run HAProxy as deployed, but for the addresses."""
    with listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    text = re.sub(r"resolvers docker\n(  .*\n)*", "", HAPROXY_CONFIG.read_text())
    text = text.replace("bind :8788", f"bind 127.0.0.1:{port}")
    check = re.search(r"server-template gateway 4 gateway:8788 (.*) resolvers", text)
    assert check is not None
    servers = [f"  server gateway{n} {one.address} {check[1]}" for n, one in enumerate(backends)]
    text = re.sub(r"  server-template .*", "\n".join(servers), text)
    (place / "haproxy.cfg").write_text(text)
    words = (str(HAPROXY), "-db", "-q", "-f", str(place / "haproxy.cfg"))
    process = await asyncio.create_subprocess_exec(*words)
    try:
        await asyncio.sleep(SETTLE_SECONDS)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def balance(backends: Sequence[Backend], place: Path) -> AsyncIterator[str]:
    watching = asyncio.create_task(watch(backends))
    await until(lambda: all(one.is_ready for one in backends))
    made = balance_by_haproxy(backends, place) if HAPROXY else balance_here(backends)
    async with made as url:
        yield url
    watching.cancel()


@dataclass(slots=True)
class Outcome:
    first_bytes: list[float] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    """The longest of each answer."""
    lost: int = 0
    changed: int = 0
    cut: int = 0
    unmanaged: int = 0

    @property
    def failed(self) -> int:
        return self.lost + self.changed + self.cut


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
        status, headers, received, reads = b"", b"", bytearray(), [time.perf_counter()]
        try:
            reader, writer = await self._connect()
            writer.write(head.encode() + body)
            status = await reader.readline()
            headers = (await reader.readuntil(b"\r\n\r\n")).lower()
            while not received.endswith(b"\r\n0\r\n\r\n"):
                chunk = await reader.read(65_536)
                reads.append(time.perf_counter())
                if not chunk:
                    break
                received += chunk
        except (OSError, asyncio.IncompleteReadError):
            self._open = None
        if b"connection: close" in headers:
            writer.close()
            self._open = None
        self._judge(status, headers, bytes(received), reads)

    def _judge(self, status: bytes, headers: bytes, received: bytes, reads: list[float]) -> None:
        is_whole = b"event: message_stop" in received
        said = text_of_stream(_join_chunks(received))
        outcome = self._outcome
        waits = [after - before for before, after in pairwise(reads)]
        outcome.first_bytes.append(waits[0] if waits else 0.0)
        outcome.pauses.append(max(waits[1:], default=0.0))
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
    parts, at = [], 0
    while (end := received.find(b"\r\n", at)) >= 0 and (length := int(received[at:end], 16)):
        parts.append(received[end + 2 : end + 2 + length])
        at = end + length + 4
    return b"".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    clients: int
    calls: int
    """Calls of each client, or more if the restarts take longer."""
    restarts: int
    seconds: float
    """An answer takes so long."""

    @property
    def controls(self) -> range:
        return range(self.clients, self.clients + max(1, self.clients // 10))


async def crowd(
    url: str, numbers: Sequence[int], load: Load, until: asyncio.Event | None = None
) -> Outcome:
    """Have clients talk, each from its own moment of an answer's time on."""
    outcome = Outcome()

    async def one(place: int, number: int) -> None:
        await asyncio.sleep(load.seconds * place / len(numbers))
        client = Client(url, f"s{number}", outcome)
        await client.talk([f"I am {number}, call {n}." for n in range(load.calls)], until=until)

    await asyncio.gather(*(one(place, number) for place, number in enumerate(numbers)))
    return outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Rolled:
    through: Outcome
    control: Outcome
    restarts: list[float]
    cpu_seconds: dict[str, float]


class Stage:
    """The processes, and the CPU time that each kind has used."""

    def __init__(self, stack: ExitStack, home: Path, seconds: float) -> None:
        provider = (str(Path(__file__).with_name("gateway_load.py")), "--provider", "--seconds")
        up, self._provider = stack.enter_context(serve(*provider, str(seconds), home=home))
        self.home, self.provider, self.quick = home, up["slow"], up["quick"]
        self._database = PostgresServer()
        stack.callback(self._database.stop)
        longhold = (sys.executable, "-m", "longhold")
        shared = os.environ | {"LONGHOLD_STORE": self._database.url, "LONGHOLD_SALT": SALT}
        words = ("--upstream", self.provider, "--drain", f"{DRAIN_SECONDS:g}", "--json")
        self.backends = [
            Backend((*longhold, "gateway", *words), shared | {"LONGHOLD_HOME": f"{home}/{n}"})
            for n in range(GATEWAYS)
        ]
        for one in self.backends:
            stack.callback(one.stop)
            one.start()
        self.worker = subprocess.Popen(
            [*longhold, "worker"], env=shared | {"LONGHOLD_HOME": f"{home}/worker"}
        )
        stack.callback(self.worker.wait, 30)
        stack.callback(self.worker.terminate)

    def cpu_seconds(self) -> dict[str, float]:
        """Of gateways that ended, the system has added up the time."""
        used, ended = os.times(), resource.getrusage(resource.RUSAGE_CHILDREN)
        gateways = sum(cpu_seconds(one.pid) for one in self.backends)
        return {
            "gateways": gateways + ended.ru_utime + ended.ru_stime,
            "database": cpu_seconds(self._database.pid),
            "provider": cpu_seconds(self._provider),
            "clients": used.user + used.system,
        }

    async def roll(self, load: Load) -> Rolled:
        async with balance(self.backends, self.home) as url:
            ended, before = asyncio.Event(), self.cpu_seconds()
            talking = asyncio.gather(
                crowd(url, range(load.clients), load, ended),
                crowd(self.provider, load.controls, load, ended),
            )
            await asyncio.sleep(load.seconds + 1.0)  # until every client has begun
            seconds: list[float] = []
            for n in range(load.restarts):
                seconds.append(await self.backends[n % GATEWAYS].restart())
                print(f"restart {n + 1} of {load.restarts}: {seconds[-1]:.1f} s", file=sys.stderr)
                await asyncio.sleep(SETTLE_SECONDS)
            ended.set()
            through, control = await talking
            after = self.cpu_seconds()
        used = {name: after[name] - before[name] for name in after}
        return Rolled(through=through, control=control, restarts=seconds, cpu_seconds=used)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process, its children and those of them that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    own = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return own + sum(cpu_seconds(int(child)) for child in children)


def compare(name: str, through: Sequence[float], direct: Sequence[float]) -> JsonObject:
    found: JsonObject = {}
    for label, share in (("p50", 0.5), ("p99", 0.99)):
        base = percentile(direct, share)
        found[f"direct_{name}_{label}_ms"] = round(1_000 * base, 1)
        found[f"added_{name}_{label}_ms"] = round(1_000 * (percentile(through, share) - base), 1)
    return found


def measure(load: Load) -> JsonObject:
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stage = Stage(stack, home, load.seconds)
        asyncio.run(crowd(stage.quick, [0], load))  # loads what is loaded once
        direct = asyncio.run(crowd(stage.provider, range(load.controls.stop), load))
        rolled = asyncio.run(stage.roll(load))
        is_worker_alive = stage.worker.poll() is None
        memory = max(rss_mb(one.pid) for one in stage.backends)
    through, calls_made = rolled.through, len(rolled.through.first_bytes)
    return {
        "clients": load.clients,
        "answer_seconds": load.seconds,
        "balancer": "haproxy" if HAPROXY else "python",
        "calls": calls_made,
        "restarts": len(rolled.restarts),
        "lost": through.lost,
        "changed": through.changed,
        "cut": through.cut,
        "unmanaged_share": round(through.unmanaged / calls_made, 4),
        "direct_failed": direct.failed + rolled.control.failed,
        **compare("first_byte", through.first_bytes, direct.first_bytes),
        **compare("pause", through.pauses, direct.pauses),
        "control_first_byte_p99_ms": round(1_000 * percentile(rolled.control.first_bytes, 0.99), 1),
        "cpu_ms_per_call": {
            name: round(1_000 * used / calls_made, 1) for name, used in rolled.cpu_seconds.items()
        },
        "gateway_rss_mb": round(memory),
        "restart_p50_s": round(percentile(rolled.restarts, 0.5), 1),
        "worker_alive": is_worker_alive,
    }


def main() -> None:
    given = make_parser(__doc__, clients=500, calls=2, restarts=20, seconds=25.0).parse_args()
    load = Load(
        clients=given.clients, calls=given.calls, restarts=given.restarts, seconds=given.seconds
    )
    gc.disable()  # a pause of the clients is not the gateway's
    print_result(measure(load), given.json)


if __name__ == "__main__":
    main()
