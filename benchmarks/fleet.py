"""Many processes on one database: the cost of an append, and losses by kills, pauses and crashes.

A PostgreSQL server of its own is started, with all that makes it durable on. First four processes
hold 50 sessions each: `append_p50_ms` is an entry of 5 KB at 250 a second and process, until it is
committed; `turns_per_second` is whole turns, as fast as they go: what the user says, a call with a
tool, its result, an answer. Then the same processes take up sessions of a common pool, while one of
them is killed, paused for longer than its lease, or cut off again and again, and the server crashes
once. Every turn says a word of its own, and is acknowledged in a file after it was settled.

`lost` are words acknowledged that no log has, `doubled` those that a log has twice, `gaps` missing
numbers; `tool_before_commit` counts tools that ran while another connection did not see the entry
that says so; `takeover_s` is the longest time from a kill until its session was open elsewhere.

    python benchmarks/fleet.py [--seconds 40] [--sessions 200] [--processes 4] [--json]
"""

import argparse
import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psycopg

from harness import make_parser, print_result
from longhold import Session
from longhold.core.log.entries import Began, Said
from longhold.core.log.stores.postgres import PostgresStore
from longhold.core.messages import Text, text_of
from longhold.core.settings import NotesSettings, Settings, StoreSettings
from longhold.errors import LogLocked, LongholdError
from postgres_server import PostgresServer

MODEL = "claude-sonnet-5-5"
LEASE_SECONDS = 3.0
ENTRY_CHARS = 5_000
PACE_SECONDS = 0.004
QUIET = Settings(notes=NotesSettings(on=False))


def opened(url: str) -> PostgresStore:
    return PostgresStore(url, StoreSettings(lease_seconds=LEASE_SECONDS))


def reply(id: str, *content: dict[str, object]) -> dict[str, object]:
    usage = {"input_tokens": 100, "output_tokens": 10}
    stop = "tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn"
    return {
        "id": id,
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": list(content),
        "stop_reason": stop,
        "usage": usage,
    }


async def turn(session: Session, word: str, looking: psycopg.Connection) -> bool:
    """Make one turn with a tool call; return whether the tool ran before its entry was committed."""
    session.user(word)
    await session.prepare()
    call = {"type": "tool_use", "id": f"call-{word}", "name": "charge", "input": {"word": word}}
    await session.record(reply(f"first-{word}", call))
    session.tool_began(f"call-{word}")
    began = looking.execute(
        "SELECT body FROM longhold.entries e JOIN longhold.sessions s ON s.key = e.session "
        "WHERE s.id = %s ORDER BY n DESC LIMIT 1",
        (session.id,),
    ).fetchone()
    is_early = began is None or f"call-{word}".encode() not in bytes(began[0])
    session.tool_result(f"call-{word}", "done " * 200)
    await session.prepare()
    await session.record(reply(f"last-{word}", {"type": "text", "text": f"done {word}"}))
    return is_early


def begin(store: PostgresStore, place: Path, id: str) -> None:
    tool = {"name": "charge", "description": "Charge.", "input_schema": {"type": "object"}}
    Session.open(
        model=MODEL, tools=[tool], id=id, directory=place, store=store, settings=QUIET
    ).close()


async def quiet(url: str, ids: list[str], seconds: float) -> dict[str, object]:
    """Hold sessions and measure: paced appends first, then turns as fast as they go."""
    store = opened(url)
    sessions = [Session.resume(id, store=store, settings=QUIET) for id in ids]
    took: list[float] = []

    async def append(session: Session) -> None:
        began = time.perf_counter()
        session._engine.log.append(Said(content=(Text(text="x" * ENTRY_CHARS),), hidden=True))
        await session._engine.log.wait_for_commit()
        took.append(time.perf_counter() - began)

    until, tasks = time.monotonic() + seconds / 2, []
    while time.monotonic() < until:
        tasks.append(asyncio.create_task(append(random.choice(sessions))))
        await asyncio.sleep(PACE_SECONDS)
    await asyncio.gather(*tasks)
    for session in sessions:
        session.close()
    sessions = [Session.resume(id, store=store, settings=QUIET) for id in ids]
    began, turns, until = time.monotonic(), 0, time.monotonic() + seconds / 2

    async def talk(session: Session) -> None:
        nonlocal turns
        with psycopg.connect(url, autocommit=True) as looking:
            while time.monotonic() < until:
                await turn(session, f"q{os.getpid()}-{turns}-{session.id}", looking)
                turns += 1

    await asyncio.gather(*map(talk, sessions[:25]))
    rate = turns / (time.monotonic() - began)
    for session in sessions:
        session.close()
    store.close()
    return {"took": took, "turns_per_second": rate}


async def stormy(url: str, ids: list[str], acknowledged: Path, seconds: float) -> None:
    """Take up sessions of the pool and make turns, whatever happens, until the time is up."""
    store, count, until = opened(url), 0, time.monotonic() + seconds
    with acknowledged.open("a") as file:
        while time.monotonic() < until:
            id, count = random.choice(ids), count + 1
            word = f"w{os.getpid()}-{count}-{id}"
            try:
                with psycopg.connect(url, autocommit=True) as looking:
                    session = Session.resume(id, store=store, settings=QUIET)
                    try:
                        is_early = await turn(session, word, looking)
                    finally:
                        session.close()
                file.write(f"{word} {int(is_early)}\n")
                file.flush()
            except LogLocked:
                continue
            except (LongholdError, psycopg.Error):
                await asyncio.sleep(0.05)
    store.close()


class Storm:
    """The processes of the second phase, and what is done to them."""

    def __init__(self, server: PostgresServer, place: Path, sessions: int, processes: int) -> None:
        self.server, self.place, self.sessions = server, place, sessions
        self.processes = [self._start(number) for number in range(processes)]
        self.done: Counter[str] = Counter()
        self.takeovers: list[float] = []

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        return worker("stormy", self.server.url, self.place, self.sessions, number, 3_600)

    def run(self, seconds: float) -> None:
        for process in self.processes:
            self._held_by(process.pid)
        until, crashes_at = time.monotonic() + seconds, time.monotonic() + seconds / 2
        while time.monotonic() < until:
            time.sleep(random.uniform(0.3, 1.0))
            victim = random.randrange(len(self.processes))
            if crashes_at and time.monotonic() > crashes_at:
                crashes_at = 0.0
                self.server.crash()
                self.server.start()
                self.done["crashes"] += 1
            else:
                random.choice((self._kill, self._pause, self._cut))(victim)
        for process in self.processes:
            process.kill()
            process.wait()

    def _kill(self, number: int) -> None:
        """Kill a process that holds a session, and take that session over."""
        process = self.processes[number]
        found = self._held_by(process.pid)
        process.kill()
        process.wait()
        if found:
            self.takeovers.append(take_over(self.server.url, found[0]))
        self.processes[number] = self._start(number)
        self.done["kills"] += 1

    def _held_by(self, pid: int) -> tuple[str] | None:
        """Wait until a process holds a session; None if it does not in a while."""
        until = time.monotonic() + 10
        with psycopg.connect(self.server.url, autocommit=True) as looking:
            while time.monotonic() < until:
                found = looking.execute(
                    "SELECT s.id FROM longhold.sessions s "
                    "JOIN longhold.holders h ON h.id = s.holder WHERE h.name LIKE %s",
                    (f"process {pid} on %",),
                ).fetchone()
                if found:
                    return found
        return None

    def _pause(self, number: int) -> None:
        """Stop a process for longer than its lease, and let it go on."""
        pid = self.processes[number].pid
        os.kill(pid, signal.SIGSTOP)
        time.sleep(LEASE_SECONDS * 1.3)
        os.kill(pid, signal.SIGCONT)
        self.done["pauses"] += 1

    def _cut(self, _number: int) -> None:
        with psycopg.connect(self.server.url, autocommit=True) as connection:
            cut = connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'longhold'"
            ).fetchall()
        self.done["cut_connections"] += len(cut)


def take_over(url: str, id: str) -> float:
    store, began = opened(url), time.monotonic()
    while True:
        try:
            store.open(id).close()
            break
        except LogLocked:
            time.sleep(0.02)
    store.close()
    return time.monotonic() - began


def worker(
    kind: str, url: str, place: Path, sessions: int, number: int, seconds: float
) -> subprocess.Popen[bytes]:
    arguments = [kind, url, str(place), str(sessions), str(number), str(seconds)]
    return subprocess.Popen(
        [sys.executable, __file__, "--worker", *arguments],
        stdout=subprocess.PIPE if kind == "quiet" else None,
        env={**os.environ, "LONGHOLD_HOME": str(place / f"home-{number}")},
    )


def work(kind: str, url: str, place: str, sessions: str, number: str, seconds: str) -> None:
    ids = [f"s{i}" for i in range(int(sessions))]
    if kind == "quiet":
        share = ids[int(number) :: int(os.environ["FLEET_PROCESSES"])]
        print(json.dumps(asyncio.run(quiet(url, share, float(seconds)))))
    else:
        file = Path(place) / f"acknowledged-{os.getpid()}"
        asyncio.run(stormy(url, ids, file, float(seconds)))


def check(url: str, place: Path, ids: list[str]) -> dict[str, int]:
    """Hold what was acknowledged against what the logs have."""
    lines = [line.split() for path in place.glob("acknowledged-*") for line in path.open()]
    store, there, gaps, began = opened(url), Counter[str](), 0, Counter[str]()
    for id in ids:
        entries = store.load(id).entries
        gaps += sum(entry.n != number for number, entry in enumerate(entries, 1))
        there.update(text_of(one.content) for one in entries if isinstance(one, Said))
        began.update(one.tool_use_id for one in entries if isinstance(one, Began))
    store.close()
    words = [line[0] for line in lines if len(line) == 2]
    return {
        "acknowledged": len(words),
        "lost": sum(not there[word] or not began[f"call-{word}"] for word in words),
        "doubled": sum(
            count > 1 for name, count in (*there.items(), *began.items()) if "x" * 99 not in name
        ),
        "gaps": gaps,
        "tool_before_commit": sum(line[1] == "1" for line in lines if len(line) == 2),
    }


def measure(seconds: float, sessions: int, processes: int) -> dict[str, object]:
    server = PostgresServer(settings=())
    ids = [f"s{i}" for i in range(sessions)]
    with tempfile.TemporaryDirectory() as place_name:
        place = Path(place_name)
        os.environ |= {"LONGHOLD_HOME": str(place / "home"), "FLEET_PROCESSES": str(processes)}
        try:
            store = opened(server.url)
            for id in ids:
                begin(store, place, id)
            running = [
                worker("quiet", server.url, place, sessions, number, seconds)
                for number in range(processes)
            ]
            found = [json.loads(process.communicate()[0]) for process in running]
            took = sorted(one for each in found for one in each["took"])
            storm = Storm(server, place, sessions, processes)
            storm.run(seconds)
            store.close()
            return {
                "append_p50_ms": round(1e3 * took[len(took) // 2], 2),
                "append_p99_ms": round(1e3 * took[int(len(took) * 0.99)], 2),
                "appends_per_second": round(len(took) / (seconds / 2)),
                "turns_per_second": round(sum(each["turns_per_second"] for each in found), 1),
                "takeover_s": round(max(storm.takeovers, default=0.0), 2),
                "takeovers": len(storm.takeovers),
                "lease_s": LEASE_SECONDS,
                **{name: storm.done[name] for name in ("kills", "pauses", "crashes")},
                "cut_connections": storm.done["cut_connections"],
                **check(server.url, place, ids),
            }
        finally:
            server.stop()


def main() -> None:
    parser = make_parser(__doc__, sessions=200, processes=4)
    parser.add_argument("--seconds", type=float, default=40.0, help="of each phase")
    parser.add_argument("--worker", nargs=6, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        work(*given.worker)
        return
    found = measure(given.seconds, given.sessions, given.processes)
    print_result(found, given.json)


if __name__ == "__main__":
    main()
