"""Many clients at once through the gateway: delay of the first byte, errors, memory.

Upstream is the simulator, in a process of its own. An answer begins after half a second and takes
about five, a dozen tokens every tenth of a second, so that all clients have a stream open at the
same time; each calls again when its answer is over. Everything is done without a gateway first:
`added_first_byte_*_ms` is the difference of the two runs' percentiles. `burst_*` is the same with
answers that come at once and clients that all call in the same instant: how long the last one
waits. A last part sends a conversation of about 100,000 tokens, alone: `added_*_ms` are of that.

    python benchmarks/gateway_load.py [--clients N] [--calls N] [--json]
"""

import asyncio
import gc
import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlsplit

import msgspec

from harness import make_parser, percentile, print_result, rss_mb, run_gateway, serve
from longhold.core.http import listen, server_of
from longhold.core.messages import JsonObject
from longhold.simulator import BrainAnswer, BrainRequest, SimulatorClock, SimulatorSettings
from longhold.simulator.brains import text
from longhold.simulator.server import application
from longhold.simulator.simulation import Simulation

MODEL = "claude-opus-4-8"
MARK = {"cache_control": {"type": "ephemeral"}}
LONG_MESSAGES, LONG_CALLS = 200, 60
LONG_LINES = 17
"""From 80,000 tokens at the first call to 115,000 at the last."""
LINE = "one line of a listing with a number in it, such as 4711\n"
FIRST_SECONDS, BETWEEN_SECONDS = 0.5, 0.1
ANSWER = "I looked at it, and it is as it should be. " * 50
"""About 550 tokens, in 45 pieces."""
SLOW_CHARS = 18
"""About four tokens, as most events of the APIs have."""
END = b"event: message_stop"


class Talker:
    """Gives the same answer to everything."""

    def answer(self, request: BrainRequest) -> BrainAnswer:
        return BrainAnswer(blocks=(text(ANSWER),))


def serve_provider(seconds: float) -> None:
    """Be the provider: three addresses, by the time over an answer, `seconds` for the slowest."""
    paced = SimulatorSettings(
        first_byte_delay_seconds=FIRST_SECONDS, between_events_seconds=BETWEEN_SECONDS
    )
    between = (seconds - FIRST_SECONDS) * SLOW_CHARS / len(ANSWER)
    slow = replace(paced, between_events_seconds=between, delta_chars=SLOW_CHARS)
    servers, listeners = [], []
    for settings in (paced, SimulatorSettings(), slow):
        simulation = Simulation(Talker(), settings, SimulatorClock())
        servers.append(server_of(application(simulation)))
        listeners.append(listen("127.0.0.1", 0))
    urls = [f"http://127.0.0.1:{one.getsockname()[1]}" for one in listeners]
    print(
        json.dumps(dict(zip(("paced", "quick", "slow"), urls, strict=True)), indent=0), flush=True
    )

    async def all_of_them() -> None:
        pairs = zip(servers, listeners, strict=True)
        await asyncio.gather(*(server.serve([listener]) for server, listener in pairs))

    gc.disable()  # a pause of the provider is not the gateway's
    asyncio.run(all_of_them())


def request(messages: Sequence[JsonObject]) -> bytes:
    *first, last = messages
    marked = [*first, {**last, "content": [{"type": "text", "text": last["content"], **MARK}]}]
    system = [{"type": "text", "text": "You answer. " * 500, **MARK}]
    body = {
        "model": MODEL,
        "max_tokens": 1_000,
        "stream": True,
        "system": system,
        "messages": marked,
    }
    return msgspec.json.encode(body)


class Client:
    """One connection that is used again; a library would be most of what two cores do here."""

    def __init__(self, url: str, session: str) -> None:
        self._address = urlsplit(url)
        self._session = session
        self._messages: list[JsonObject] = []

    async def open(self) -> "Client":
        host, port = self._address.hostname, self._address.port
        self._reader, self._writer = await asyncio.open_connection(host, port, limit=2**22)
        return self

    def close(self) -> None:
        self._writer.close()

    async def call(self, *messages: JsonObject) -> tuple[float, bool]:
        """Return the seconds to the first byte of an answer, and whether it came to its end."""
        self._messages += messages
        body = request(self._messages)
        head = (
            f"POST /v1/messages HTTP/1.1\r\nhost: {self._address.netloc}\r\n"
            f"x-api-key: nobody's\r\nanthropic-version: 2023-06-01\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
            f"x-claude-code-session-id: {self._session}\r\n\r\n"
        )
        began = time.perf_counter()
        self._writer.write(head.encode() + body)
        status = await self._reader.readline()
        await self._reader.readuntil(b"\r\n\r\n")
        first, last = 0.0, b""
        while not last.endswith(b"\r\n0\r\n\r\n"):
            chunk = await self._reader.read(65_536)
            first = first or time.perf_counter() - began
            if not chunk:
                break
            last = (last + chunk)[-200:]
        self._messages.append({"role": "assistant", "content": ANSWER})
        return first, b" 200 " in status and END in last


async def crowd(url: str, clients: int, calls: int, *, seconds: float) -> tuple[list[float], int]:
    """Have clients call, each beginning at its moment within `seconds`."""

    async def one(number: int) -> list[tuple[float, bool]]:
        await asyncio.sleep(seconds * number / clients)
        client = await Client(url, f"s{number}").open()
        said = [f"I am {number}. Hello.", *(f"Go on, {n}. {LINE * 40}" for n in range(1, calls))]
        done = [await client.call({"role": "user", "content": words}) for words in said]
        client.close()
        return done

    found = [one for many in await asyncio.gather(*map(one, range(clients))) for one in many]
    return [seconds for seconds, _ in found], sum(not is_whole for _, is_whole in found)


async def long_session(url: str) -> list[float]:
    """Call again and again with a growing list of about 100,000 tokens."""
    messages: list[JsonObject] = []
    for n in range(LONG_MESSAGES):
        role = "user" if n % 2 == 0 else "assistant"
        messages.append({"role": role, "content": f"{n}: {LINE * LONG_LINES}"})
    client = await Client(url, "long").open()
    await client.call(*messages, {"role": "user", "content": "Go on."})
    seconds = [
        (await client.call({"role": "user", "content": str(n)}))[0] for n in range(LONG_CALLS)
    ]
    client.close()
    return seconds


def measured(clients: int, calls: int) -> JsonObject:
    spread = FIRST_SECONDS + BETWEEN_SECONDS * len(ANSWER) / SimulatorSettings().delta_chars
    found: JsonObject = {"clients": clients}
    with (
        tempfile.TemporaryDirectory() as home,
        serve(__file__, "--provider", home=home) as (up, _),
    ):
        asyncio.run(crowd(up["quick"], 1, 1, seconds=0.0))  # loads what is loaded once
        direct, _ = asyncio.run(crowd(up["paced"], clients, calls, seconds=spread))
        burst, _ = asyncio.run(crowd(up["quick"], clients, 1, seconds=0.0))
        alone = asyncio.run(long_session(up["quick"]))
        with run_gateway(up["paced"], home) as (url, pid):
            through, errors = asyncio.run(crowd(url, clients, calls, seconds=spread))
            found |= {"errors": errors, "rss_mb": round(rss_mb(pid), 1)}
        with run_gateway(up["quick"], home) as (url, _):
            burst_through, _ = asyncio.run(crowd(url, clients, 1, seconds=0.0))
            long = asyncio.run(long_session(url))
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        found[f"direct_first_byte_{name}_ms"] = round(1_000 * percentile(direct, share), 1)
        for key, one, other in (
            ("added_first_byte", direct, through),
            ("burst_added", burst, burst_through),
            ("added", alone, long),
        ):
            added = percentile(other, share) - percentile(one, share)
            found[f"{key}_{name}_ms"] = round(1_000 * added, 1)
    return found


def main() -> None:
    parser = make_parser(__doc__, clients=200, calls=3)
    parser.add_argument("--provider", action="store_true", help="be the provider of a measurement")
    parser.add_argument("--seconds", type=float, default=25.0, help="its slowest answers take")
    given = parser.parse_args()
    if given.provider:
        serve_provider(given.seconds)
        return
    found = measured(given.clients, given.calls)
    print_result(found, given.json)


if __name__ == "__main__":
    main()
