"""Many clients at once through the gateway: delay of the first byte, errors, memory.

Upstream is the simulator, in a process of its own. Every client streams, has a session of its own
and makes several calls, all of them at the same time; the same is done without a gateway.
`added_first_byte_p99_ms` is the difference of the two runs' 99th percentiles. A last part sends a
conversation of about 100,000 tokens, alone: `added_*_ms` are of that.

    python benchmarks/gateway_load.py [--clients N] [--calls N] [--json]
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx2
import msgspec

from holdfast.messages import JsonObject

MODEL = "claude-opus-4-8"
MARK = {"cache_control": {"type": "ephemeral"}}
LONG_MESSAGES, LONG_CALLS = 200, 30
LINE = "one line of a listing with a number in it, such as 4711\n"


@contextmanager
def process(*words: str, home: str) -> Iterator[tuple[str, int]]:
    """Run a command that serves; yield its address and its process id."""
    started = subprocess.Popen(
        [sys.executable, "-m", "holdfast", *words, "--port", "0", "--json"],
        env={**os.environ, "HOLDFAST_HOME": home, "HOLDFAST_WINDOW_LIMIT_TOKENS": "200000"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert started.stdout is not None
    try:
        yield json.loads("".join(iter(started.stdout.readline, "}\n")) + "}")["url"], started.pid
    finally:
        started.terminate()
        started.wait()


def request(messages: Sequence[JsonObject]) -> bytes:
    *first, last = messages
    marked = [*first, {**last, "content": [{"type": "text", "text": last["content"], **MARK}]}]
    system = [{"type": "text", "text": "You answer. " * 500, **MARK}]
    body = {"model": MODEL, "max_tokens": 64, "stream": True, "system": system, "messages": marked}
    return msgspec.json.encode(body)


async def called(
    client: httpx2.AsyncClient, url: str, session: str, messages: Sequence[JsonObject]
) -> tuple[float, bool]:
    """Return the seconds to the first byte of an answer, and whether it came to its end."""
    headers = {
        "x-api-key": "nobody's",
        "anthropic-version": "2023-06-01",
        "content-type": "application/json",
        "x-claude-code-session-id": session,
    }
    began, first, last = time.perf_counter(), 0.0, b""
    body = request(messages)
    async with client.stream("POST", f"{url}/v1/messages", content=body, headers=headers) as got:
        async for chunk in got.aiter_raw():
            first = first or time.perf_counter() - began
            last = (last + chunk)[-200:]
    return first, got.status_code == 200 and b"message_stop" in last


async def crowd(url: str, clients: int, calls: int) -> tuple[list[float], int]:
    limits = httpx2.Limits(max_connections=None)
    async with httpx2.AsyncClient(timeout=120.0, limits=limits) as client:

        async def one(number: int) -> list[tuple[float, bool]]:
            messages: list[JsonObject] = [{"role": "user", "content": f"I am {number}. Hello."}]
            done = []
            for call in range(calls):
                done.append(await called(client, url, f"s{number}", messages))
                messages += [
                    {"role": "assistant", "content": "Yes."},
                    {"role": "user", "content": f"Go on, for the {call}th time. {LINE * 40}"},
                ]
            return done

        found = [one for many in await asyncio.gather(*map(one, range(clients))) for one in many]
    return [seconds for seconds, _ in found], sum(not is_whole for _, is_whole in found)


async def long_session(url: str) -> list[float]:
    """Call again and again with a growing list of about 100,000 tokens."""
    messages: list[JsonObject] = []
    for n in range(LONG_MESSAGES):
        role = "user" if n % 2 == 0 else "assistant"
        messages.append({"role": role, "content": f"{n}: {LINE * 34}"})
    messages.append({"role": "user", "content": "Go on."})
    seconds = []
    async with httpx2.AsyncClient(timeout=120.0) as client:
        for n in range(LONG_CALLS):
            found, _ = await called(client, url, "long", messages)
            seconds.append(found)
            messages += [
                {"role": "assistant", "content": "Yes."},
                {"role": "user", "content": str(n)},
            ]
    return seconds[1:]


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return 1_000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def rss_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1_024 for line in lines if line.startswith("VmRSS"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--calls", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as home,
        process("simulator", "--brain", "echo", home=home) as (up, _),
    ):
        direct, _ = asyncio.run(crowd(up, given.clients, given.calls))
        alone = asyncio.run(long_session(up))
        with process("gateway", "--upstream", up, home=home) as (url, pid):
            through, errors = asyncio.run(crowd(url, given.clients, given.calls))
            memory = rss_mb(pid)
            long = asyncio.run(long_session(url))
    added = [a - b for a, b in zip(sorted(long), sorted(alone), strict=True)]
    found = {
        "clients": given.clients,
        "errors": errors,
        "direct_first_byte_p99_ms": round(percentile(direct, 0.99), 1),
        "first_byte_p99_ms": round(percentile(through, 0.99), 1),
        "added_first_byte_p99_ms": round(percentile(through, 0.99) - percentile(direct, 0.99), 1),
        "added_p50_ms": round(percentile(added, 0.5), 1),
        "added_p99_ms": round(percentile(added, 0.99), 1),
        "rss_mb": round(memory, 1),
    }
    print(json.dumps(found) if given.json else json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
