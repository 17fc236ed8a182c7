"""How many requests per second the simulator serves, growing and cold.

Growing: sessions that have reached 100 KB, each request the last one plus 2 KB, so
all but the new part is known. Cold: 100 KB requests never seen before. The server
runs in this process on one thread; the load comes from another process over plain
sockets, with bodies built beforehand, so that the client does not affect the figure.
"""

import json
import multiprocessing
import random
import socket
import string
import time
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from urllib.parse import urlsplit

from harness import make_parser, percentile, print_result
from longhold.simulator import run_simulator

SESSION_BYTES = 100_000  # the size the claim is about
GROWTH_BYTES = 2_000  # what each request adds
CONNECTIONS = 4  # enough to keep one core busy, few enough that latency means something
SESSIONS = 40  # different sessions, so that no text is shared
REQUESTS_PER_SESSION = 25  # from 100 KB to 150 KB
COLD_REQUESTS = 150  # about a second and a half
MODEL = "claude-sonnet-5-5"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What is measured."""

    requests_per_second: float
    cold_requests_per_second: float
    p99_ms: float
    p50_ms: float
    requests_per_cpu_second: float
    """Requests per second of the server's own processor time: steady on a busy machine."""
    requests: int
    mean_body_bytes: int


def main() -> None:
    """Measure and print."""
    options = make_parser(__doc__).parse_args()
    print_result(asdict(measure()), options.json)


def measure() -> Figures:
    """Run both loads against a fresh simulator."""
    ours, theirs = multiprocessing.Pipe()
    with run_simulator() as simulator:
        load = multiprocessing.get_context("spawn").Process(
            target=generate, args=(theirs, simulator.url)
        )
        load.start()
        ours.recv()
        before = time.process_time()
        ours.send("grow")
        latencies, seconds, sizes = ours.recv()
        cpu_seconds = time.process_time() - before
        ours.send("cold")
        cold_seconds = ours.recv()
        load.join()
    return Figures(
        requests_per_second=len(latencies) / seconds,
        cold_requests_per_second=COLD_REQUESTS / cold_seconds,
        p99_ms=percentile(latencies, 0.99) * 1_000,
        p50_ms=percentile(latencies, 0.5) * 1_000,
        requests_per_cpu_second=len(latencies) / cpu_seconds,
        requests=len(latencies),
        mean_body_bytes=sum(sizes) // len(sizes),
    )


def generate(pipe: Connection, url: str) -> None:
    """The other process: build bodies, warm the sessions up, then fire on demand."""
    chosen = random.Random(7)
    sessions = [_session(chosen) for _ in range(SESSIONS)]
    cold = [_encode(_history(chosen), url) for _ in range(COLD_REQUESTS)]
    lanes: list[list[bytes]] = [[] for _ in range(CONNECTIONS)]
    warm: list[list[bytes]] = [[] for _ in range(CONNECTIONS)]
    for number, bodies in enumerate(sessions):
        encoded = [_encode(messages, url) for messages in bodies]
        warm[number % CONNECTIONS].append(encoded[0])
        lanes[number % CONNECTIONS].extend(encoded[1:])
    _fire(warm, url)
    pipe.send("ready")
    pipe.recv()
    started = time.perf_counter()
    latencies = _fire(lanes, url)
    pipe.send((latencies, time.perf_counter() - started, [len(b) for lane in lanes for b in lane]))
    pipe.recv()
    started = time.perf_counter()
    _fire([cold[index::CONNECTIONS] for index in range(CONNECTIONS)], url)
    pipe.send(time.perf_counter() - started)


def _fire(lanes: list[list[bytes]], url: str) -> list[float]:
    """Keep one request in flight on each connection until all lanes are done."""
    import selectors

    chooser = selectors.DefaultSelector()
    latencies: list[float] = []
    for lane in lanes:
        if lane:
            chooser.register(_connect(url), selectors.EVENT_READ, _Lane(lane))
    for key in list(chooser.get_map().values()):
        key.data.send_next(key.fileobj)
    while chooser.get_map():
        for key, _ in chooser.select():
            lane = key.data
            if not lane.receive(key.fileobj):
                continue
            latencies.append(time.perf_counter() - lane.sent_at)
            if not lane.send_next(key.fileobj):
                chooser.unregister(key.fileobj)
                key.fileobj.close()
    return latencies


class _Lane:
    """One connection's requests, one after the other."""

    def __init__(self, bodies: list[bytes]) -> None:
        self._bodies = iter(bodies)
        self._buffer = b""
        self.sent_at = 0.0

    def send_next(self, connection: socket.socket) -> bool:
        """Send the next request; False when there is none."""
        body = next(self._bodies, None)
        if body is None:
            return False
        self._buffer = b""
        self.sent_at = time.perf_counter()
        connection.sendall(body)
        return True

    def receive(self, connection: socket.socket) -> bool:
        """Read what is there; True once the response is complete."""
        self._buffer += connection.recv(65_536)
        head, gap, body = self._buffer.partition(b"\r\n\r\n")
        if not gap:
            return False
        assert head.startswith(b"HTTP/1.1 200"), self._buffer
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        return len(body) >= length


def _connect(url: str) -> socket.socket:
    parts = urlsplit(url)
    connection = socket.create_connection((parts.hostname or "", parts.port or 80))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _session(chosen: random.Random) -> list[list[dict[str, object]]]:
    """A session's requests: a history of 100 KB, then one exchange more each time."""
    messages = _history(chosen)
    requests = [list(messages)]
    for _ in range(REQUESTS_PER_SESSION):
        messages.append({"role": "assistant", "content": _prose(chosen, GROWTH_BYTES // 2)})
        messages.append({"role": "user", "content": _prose(chosen, GROWTH_BYTES // 2)})
        requests.append(list(messages))
    return requests


def _history(chosen: random.Random) -> list[dict[str, object]]:
    count = SESSION_BYTES // GROWTH_BYTES | 1
    return [
        {"role": "assistant" if i % 2 else "user", "content": _prose(chosen, GROWTH_BYTES)}
        for i in range(count)
    ]


def _prose(chosen: random.Random, size: int) -> str:
    """Lines that look like code: names, numbers and punctuation, never the same twice."""
    lines: list[str] = []
    length = 0
    while length < size:
        name = "".join(chosen.choices(string.ascii_lowercase, k=6))
        line = f"    def {name}(self, index: int) -> str:  # step {chosen.randrange(10_000)} of it"
        lines.append(line)
        length += len(line) + 1
    return "\n".join(lines)[:size]


def _encode(messages: list[dict[str, object]], url: str) -> bytes:
    """Build one HTTP request, its last block marked."""
    *before, last = messages
    block = {"type": "text", "text": last["content"], "cache_control": {"type": "ephemeral"}}
    body = json.dumps(
        {
            "model": MODEL,
            "max_tokens": 1_000,
            "system": [{"type": "text", "text": "You are terse."}],
            "messages": [*before, {"role": "user", "content": [block]}],
        }
    ).encode()
    head = (
        f"POST /v1/messages HTTP/1.1\r\nhost: {urlsplit(url).netloc}\r\n"
        "x-api-key: load\r\nanthropic-version: 2026-10-21\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


if __name__ == "__main__":
    main()
