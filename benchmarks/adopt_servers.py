"""Longhold in services: four workers without sticky routing, many conversations, no database.

`workers`: `uvicorn --workers 4` for each way and store, 500 turns each, on any worker. An `error`
is an answer other than 200 or the answer of another turn. `lost` counts turns that are not in a log
exactly once, `run_twice` tool calls that ran again. `crowd`: 140 concurrent conversations in each
adapter at default settings, while the model takes half a second. `outage`: the database is down for
8 seconds while sessions open, resume, run tools, ask, record and close. `lag` is how late a timer
on the same loop fires. `--only` selects a part.

    python benchmarks/adopt_servers.py [--turns 500] [--crowd 140] [--away 8] [--only outage] [--json]
"""

import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx2

from adopting.provider import WINDOW, run_provider
from harness import make_parser, percentile, print_result, temporary_home
from longhold import Session
from longhold.core.http import LOOPBACK, listen
from longhold.core.log.entries import Replied, Said
from longhold.core.log.store import FileStore, Store
from longhold.core.log.stores import open_store
from longhold.core.messages import text_of
from postgres_server import PostgresServer

HERE = Path(__file__).parent
sys.path[:] = [path for path in sys.path if path != str(HERE)]  # a folder is called as a framework

WAYS = ("session", "langchain", "pydantic_ai", "openai_agents")
MODEL = "claude-sonnet-4-6"
WORKERS = 4
CONVERSATIONS = 10
START_SECONDS = 120.0
TURN_SECONDS = 120.0
TICK_SECONDS = 0.005
ANSWER_SECONDS = 0.5
"""How long the model takes in the crowd, so that all conversations are in use at once."""


@contextmanager
def serve(way: str, provider: str, place: Path, home: Path, store: str) -> Iterator[str]:
    """Run the service with four workers until the block ends."""
    with listen(LOOPBACK, 0) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "web:app", "--app-dir", str(HERE / "adopting")]
    command += ["--workers", str(WORKERS), "--port", str(port), "--log-level", "warning"]
    told = {"ADOPT_WAY": way, "ADOPT_PROVIDER": provider, "ADOPT_PLACE": str(place)}
    told |= {"LONGHOLD_HOME": str(home)} | ({"LONGHOLD_STORE": store} if store else {})
    with (place / "server.log").open("wb") as log:
        server = subprocess.Popen(
            command, env=os.environ | told, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield f"http://{LOOPBACK}:{port}"
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)


async def drive(url: str, turns: int) -> dict[str, Any]:
    """Let ten users talk at once, each request on a connection of its own."""
    problems: Counter[str] = Counter()
    workers: set[int] = set()
    each = max(1, turns // CONVERSATIONS)

    async def ask(id: str, turn: int) -> None:
        words = f"[[turn {turn} tools=1 rounds=1]] A question of {id}."
        async with httpx2.AsyncClient(timeout=TURN_SECONDS) as http:
            answer = await http.post(f"{url}/turn", json={"id": id, "words": words})
        if answer.status_code != 200:
            problems[f"status {answer.status_code}"] += 1
        elif not answer.json()["said"].startswith(f"Turn {turn} is done"):
            problems["another turn's answer"] += 1
        else:
            workers.add(answer.json()["worker"])

    async def talk(n: int) -> None:
        for turn in range(each):
            await ask(f"user-{n}", (n + 1) * 1_000 + turn)

    await _await_workers(url)
    await asyncio.gather(*(talk(n) for n in range(CONVERSATIONS)))
    return {
        "turns": each * CONVERSATIONS,
        "errors": sum(problems.values()),
        "problems": dict(problems),
        "workers": len(workers),
    }


async def _await_workers(url: str) -> None:
    """Wait until each worker has answered, because they start one after the other."""
    until, seen = time.monotonic() + START_SECONDS, set[int]()
    while len(seen) < WORKERS and time.monotonic() < until:
        async with httpx2.AsyncClient() as http:
            try:
                seen.add((await http.get(url)).json()["worker"])
            except httpx2.TransportError:
                await asyncio.sleep(0.2)


def measure_workers(way: str, turns: int, database: PostgresServer | None) -> dict[str, Any]:
    with temporary_home() as home, tempfile.TemporaryDirectory() as name:
        place, root = Path(name), home / "home"
        url = database.url if database else ""
        with run_provider(summarises=True) as (provider, wire):
            with serve(way, provider, place, root, url) as service:
                found = asyncio.run(drive(service, turns))
            seen = wire.figures()
        log = (place / "server.log").read_text()
        if found["errors"]:
            print(log[-4_000:], file=sys.stderr)
        store = open_store(url) if url else FileStore(root)
        found |= _read_logs(store, turns)
        ran = Counter((place / "ran.txt").read_text().split())
        if database:
            store.erase(everything=True)
        store.close()
    found["run_twice"] = sum(count - 1 for count in ran.values())
    return found | {"illegal": seen["illegal"], "warnings": len(re.findall("Warning", log))}


def _read_logs(store: Store, turns: int) -> dict[str, Any]:
    lost = 0
    for n in range(CONVERSATIONS):
        entries = store.load(f"user-{n}").entries
        said = Counter(
            found[1]
            for one in entries
            if isinstance(one, Said)
            and (found := re.search(r"\[\[turn (\d+) ", text_of(one.content)))
        )
        done = {
            found[1]
            for one in entries
            if isinstance(one, Replied)
            and (found := re.search(r"Turn (\d+) is done", text_of(one.content)))
        }
        asked = [str((n + 1) * 1_000 + turn) for turn in range(max(1, turns // CONVERSATIONS))]
        lost += sum(said[turn] != 1 or turn not in done for turn in asked)
    return {"lost": lost}


def measure_crowd(count: int) -> dict[str, Any]:
    return {way: asyncio.run(_crowd(way, count)) for way in WAYS[1:]}


async def _crowd(way: str, count: int) -> dict[str, Any]:
    with temporary_home() as home, run_provider(summarises=True) as (url, wire):
        wire.simulation.settings = wire.simulation.settings.__class__(
            accepts_unknown_models=True, first_byte_delay_seconds=ANSWER_SECONDS
        )
        os.environ |= {"ADOPT_WAY": way, "ADOPT_PROVIDER": url, "ADOPT_PLACE": str(home)}
        sys.modules.pop("adopting.web", None)
        web = import_module("adopting.web")

        async def talk(n: int) -> str:
            return str(await web.way.turn(f"c{n}", f"[[turn {n} tools=1 rounds=1]] Now?"))

        answers = await asyncio.gather(*map(talk, range(count)), return_exceptions=True)
        for problem in (one for one in answers if isinstance(one, BaseException)):
            traceback.print_exception(problem)
        entries = [FileStore().load(f"c{n}").entries for n in range(count)]
    wrong = [
        type(one).__name__ if isinstance(one, BaseException) else "answer"
        for n, one in enumerate(answers)
        if isinstance(one, BaseException) or not one.startswith(f"Turn {n} is done")
    ]
    said = sum(isinstance(one, Said) for log in entries for one in log)
    return {"conversations": count, "errors": dict(Counter(wrong)), "lost": count - said}


class LaggingClock:
    """Measures how late the event loop wakes a task."""

    def __init__(self) -> None:
        self.lags: list[float] = []

    async def run(self) -> None:
        while True:
            due = time.perf_counter() + TICK_SECONDS
            await asyncio.sleep(TICK_SECONDS)
            self.lags.append(time.perf_counter() - due)


def measure_outage(seconds: float) -> dict[str, Any]:
    server = PostgresServer()
    try:
        with temporary_home() as home:
            return asyncio.run(_outage(server, home, seconds))
    finally:
        server.stop()


async def _outage(server: PostgresServer, home: Path, seconds: float) -> dict[str, Any]:
    store = await asyncio.to_thread(open_store, server.url)
    options: Any = {"directory": home, "store": store, "window": WINDOW}
    sessions = [await Session.aopen(MODEL, id=f"s{n}", **options) for n in range(8)]
    closed = await Session.aopen(MODEL, id="closed", **options)
    await closed.aclose()
    for session in sessions:
        await _call(session)
    clock = LaggingClock()
    ticking = asyncio.create_task(clock.run())
    await asyncio.sleep(0.5)
    quiet = list(clock.lags)
    clock.lags.clear()
    await asyncio.to_thread(server.crash)
    over = threading.Event()

    def restart() -> None:
        time.sleep(seconds)
        server.start()
        over.wait()  # the server ends with the thread that started it

    threading.Thread(target=restart, daemon=True).start()
    began = time.monotonic()
    works: dict[str, Callable[[], Awaitable[object]]] = {
        "arunning": lambda: _run_tool(sessions[0]),
        "turn": lambda: _finish_turn(sessions[1]),
        "aclose": sessions[2].aclose,
        "aopen": lambda: Session.aopen(MODEL, id="new", **options),
        "aresume": lambda: Session.aresume("closed", **options),
        "adapter": lambda: _use_adapter(options),
    }
    results = await asyncio.gather(*(work() for work in works.values()), return_exceptions=True)
    took = time.monotonic() - began
    ticking.cancel()
    for session in (one for one in (*sessions, *results) if isinstance(one, Session)):
        await session.aclose()
    await asyncio.to_thread(store.close)
    over.set()
    failed = dict(zip(works, results, strict=True))
    return {
        "away_seconds": seconds,
        "took_seconds": round(took, 1),
        "failed": {k: repr(v) for k, v in failed.items() if isinstance(v, BaseException)},
        "lag_p99_ms": round(percentile(clock.lags, 0.99) * 1e3, 1),
        "lag_max_ms": round(max(clock.lags) * 1e3, 1),
        "quiet_lag_p99_ms": round(percentile(quiet, 0.99) * 1e3, 1),
    }


def _reply(id: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    stop = "tool_use" if blocks[0]["type"] == "tool_use" else "end_turn"
    usage = {"input_tokens": 100, "output_tokens": 5}
    said = {"id": id, "role": "assistant", "model": MODEL, "content": list(blocks)}
    return said | {"stop_reason": stop, "usage": usage}


async def _call(session: Session) -> None:
    session.user("Look it up.")
    await session.prepare()
    use = {"type": "tool_use", "id": f"t-{session.id}", "name": "lookup", "input": {}}
    await session.record(_reply(f"r-{session.id}", use))


async def _run_tool(session: Session) -> None:
    async with session.arunning(f"t-{session.id}"):
        pass


async def _finish_turn(session: Session) -> None:
    session.tool_result(f"t-{session.id}", "a row " * 5_000)
    await session.prepare()
    await session.record(_reply("last", {"type": "text", "text": "It is there."}))


async def _use_adapter(options: Any) -> None:
    from longhold.adapters.sessions import Sessions

    sessions = Sessions("anthropic", None, options)
    async with sessions.use("adapted", MODEL) as session:
        await session.follow([{"role": "user", "content": "Hello."}])
        await session.record(_reply("adapted", {"type": "text", "text": "Hello."}))


def main() -> None:
    parser = make_parser(__doc__, turns=500, crowd=140, away=8.0)
    parser.add_argument("--only", nargs="+", default=["workers", "crowd", "outage"])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    options = parser.parse_args()
    found: dict[str, Any] = {}
    if "outage" in options.only:
        found["outage"] = measure_outage(options.away)
    if "crowd" in options.only:
        found["crowd"] = measure_crowd(options.crowd)
    if "workers" in options.only:
        database = PostgresServer()
        try:
            for way in options.ways:
                for name, server in (("files", None), ("postgres", database)):
                    found[f"{way}, {name}"] = measure_workers(way, options.turns, server)
        finally:
            database.stop()
    print_result(found, options.json)


if __name__ == "__main__":
    main()
