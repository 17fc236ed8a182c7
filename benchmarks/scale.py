"""How cost grows with the number of sessions and with their length, and what a million would need.

Measured, in one process on one machine, in files and in PostgreSQL: the store is filled with
sessions of a real shape (`--sizes`), then some of them are opened and talk. Per number of stored
sessions: `turn_cpu_ms`, `open_ms`, `list_ms` (the newest 50 of a project), bytes and rows in
the database. Per number of open sessions: memory and file descriptors. Per length of a session:
`turn_cpu_ms` and memory. `exponents` are slopes of log cost over log size: 0 is constant, 1 linear.

`upkeep` removes a tenth of the sessions, vacuums while others append, fills the space again
(`size_after_refill` over the size before), splits the table as the page says, and drops a partition
of as many sessions. An append moves its session in the indexes: `index_growth_by_vacuums` is their
size before and after three rounds of appends, each followed by a vacuum.

Planned: `plan` simulates a day of a million sessions. Sessions start over the day as the recorded
ones did, and each has the calls, pauses and bytes of a recorded one. With the measured CPU and
sizes this gives gateways, database size and writes per second at the peak. It is arithmetic on
measured figures, not a measurement.

    python benchmarks/scale.py [--sizes 100 1000 10000] [--planned 1000000] [--json]
"""

import asyncio
import gc
import math
import os
import random
import statistics
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psycopg

from harness import make_parser, percentile, print_result, recordings, temporary_home
from longhold import Session
from longhold.core.log import Header
from longhold.core.log.entries import AnyEntry, Replied, Said
from longhold.core.log.store import FileStore, Store
from longhold.core.log.stores.postgres import PostgresStore
from longhold.core.messages import JsonObject, Text, Usage
from longhold.core.messages.measure import measure_content
from longhold.core.settings import MemorySettings, NotesSettings, Settings
from longhold.insight.transcripts.formats import open_transcript
from partitions import partition_statements
from postgres_server import PostgresServer
from turn_overhead import texts

MODEL = "claude-sonnet-5-5"
STORED_TURNS = 3
TEXTS = texts(seed=1)
"""5 KB in the mean, of words that compress as prose does."""
TALKING, TURNS = 20, 10
APPENDS, LISTINGS = 50, 5
LENGTHS = (100, 1_000, 10_000)
QUIET = Settings(notes=NotesSettings(on=False), memory=MemorySettings(on=False))
STREAMS_PER_GATEWAY = 250
"""Half of what `rolling.py` serves with two gateways on two cores."""


def text(number: int) -> str:
    return f"{number}: {TEXTS[number % len(TEXTS)]}"


def entries(turns: int) -> list[AnyEntry]:
    made: list[AnyEntry] = []
    for n in range(turns):
        said, answer = (Text(text=text(n)),), (Text(text=text(n + 7)),)
        made.append(Said(n=len(made) + 1, content=said, measure=measure_content(said)))
        reply = Replied(
            n=len(made) + 1,
            response_id=f"r{n}",
            content=answer,
            measure=measure_content(answer),
            model=MODEL,
            usage=Usage(input_tokens=700 * (2 * n + 1), output_tokens=700),
        )
        made.append(reply)
    return made


def fill(store: Store, place: Path, first: int, last: int) -> None:
    for number in range(first, last):
        header = Header(session=f"s{number}", created=time.time(), directory=str(place))
        store.add(header, entries(STORED_TURNS))


def answer(number: int) -> JsonObject:
    return {
        "id": f"answer-{number}",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [{"type": "text", "text": text(number)}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 5_000, "output_tokens": 700},
    }


async def talk(session: Session, turns: int) -> list[float]:
    """Return the CPU seconds of each turn, this process's alone."""
    seconds = []
    for turn in range(turns):
        began = time.process_time()
        session.user(text(turn))
        await session.prepare()
        await session.record(answer(random.getrandbits(60)))
        seconds.append(time.process_time() - began)
    return seconds


async def measure_store(store: Store, place: Path, count: int) -> JsonObject:
    chosen = random.Random(count).sample(range(count), TALKING)
    opened, turns = [], []
    for number in chosen:
        began = time.perf_counter()
        session = Session.resume(f"s{number}", store=store, settings=QUIET, directory=place)
        opened.append(time.perf_counter() - began)
        async with session:
            turns += (await talk(session, TURNS))[1:]
    listings = []
    for _ in range(LISTINGS):
        began = time.perf_counter()
        store.sessions(place, limit=50)
        listings.append(time.perf_counter() - began)
    return {
        "turn_cpu_ms": round(1_000 * statistics.median(turns), 3),
        "open_ms": round(1_000 * statistics.median(opened), 2),
        "list_ms": round(1_000 * statistics.median(listings), 2),
    }


def analyze(url: str) -> None:
    """Renew the statistics, as autovacuum does within a minute."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE")


def database_sizes(url: str) -> JsonObject:
    query = (
        "SELECT count(*), (SELECT count(*) FROM longhold.entries),"
        " pg_total_relation_size('longhold.entries') + pg_total_relation_size('longhold.sessions'),"
        " pg_indexes_size('longhold.entries') + pg_indexes_size('longhold.sessions')"
        " FROM longhold.sessions"
    )
    with psycopg.connect(url) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    sessions, rows, size, indexes = row
    return {
        "rows_per_session": round(rows / sessions, 1),
        "bytes_per_entry": round(size / rows),
        "index_share": round(indexes / size, 3),
    }


def append_some(store: Store, numbers: Iterable[int]) -> list[float]:
    """Append one entry after the other to some sessions; return the seconds until each commit."""
    seconds = []
    for number in numbers:
        with store.open(f"s{number}") as log:
            for n in range(APPENDS):
                began = time.perf_counter()
                log.append(Said(content=(Text(text=text(n)),)))
                log.flush()
                seconds.append(time.perf_counter() - began)
    return seconds


def measure_upkeep(store: Store, url: str, place: Path, count: int) -> JsonObject:
    """Remove a tenth of the sessions, vacuum under load, fill the space again, then partition."""
    tenth = count // 10
    talking = range(count - TALKING, count)
    with psycopg.connect(url, autocommit=True) as connection:

        def ask(query: str) -> float:
            row = connection.execute(query).fetchone()
            assert row is not None
            return float(row[0])

        def run(*statements: str) -> float:
            began = time.perf_counter()
            for statement in statements:
                connection.execute(statement)
            return time.perf_counter() - began

        size = "SELECT pg_total_relation_size('longhold.entries')"
        alone, before, began = append_some(store, talking), ask(size), time.perf_counter()
        for number in range(tenth):
            store.delete(f"s{number}")
        removed = time.perf_counter() - began
        with ThreadPoolExecutor(1) as threads:
            vacuum = threads.submit(run, "VACUUM longhold.entries, longhold.sessions")
            meanwhile = append_some(store, talking)
        fill(store, place, 0, tenth)
        refilled = ask(size)
        bound = int(ask("SELECT max(key) + 1 FROM longhold.sessions"))
        partitioning = run(*partition_statements(bound))
        fill(store, place, count, count + tenth)
        apart = append_some(store, range(count, count + TALKING))
        run(f"DELETE FROM longhold.sessions WHERE key >= {bound}")
        dropped = run("DROP TABLE longhold.entries_2")
        indexes = [ask("SELECT pg_indexes_size('longhold.sessions')")]
        for _ in range(3):
            append_some(store, talking)
            indexes.append(ask("SELECT pg_indexes_size('longhold.sessions')"))
            run("VACUUM longhold.sessions")
    figures = {"alone": alone, "during_vacuum": meanwhile, "in_a_partition": apart}
    return {
        f"append_{name}_{label}_ms": round(1_000 * percentile(seconds, share), 2)
        for name, seconds in figures.items()
        for label, share in (("p50", 0.5), ("p99", 0.99))
    } | {
        "removed_sessions": tenth,
        "remove_s": round(removed, 2),
        "drop_partition_s": round(dropped, 3),
        "partitioning_s": round(partitioning, 3),
        "vacuum_s": round(vacuum.result(), 2),
        "size_after_refill": round(refilled / before, 3),
        "index_bytes_per_append": round((indexes[1] - indexes[0]) / (TALKING * APPENDS)),
        "index_growth_by_vacuums": [round(size / indexes[0], 2) for size in indexes],
    }


def count_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def measure_open(count: int, place: Path) -> JsonObject:
    """Hold so many sessions open at the same time, each after one turn."""
    async with Session.open(MODEL, settings=QUIET, directory=place) as first:
        await talk(first, 1)
        gc.collect()
        memory, files, held = resident_mb(), count_files(), list[Session]()
        for _ in range(count):
            held.append(Session.open(MODEL, settings=QUIET, directory=place))
            await talk(held[-1], 1)
        gc.collect()
        found = {
            "kb_per_session": round(1_000 * (resident_mb() - memory) / count, 1),
            "files_per_session": round((count_files() - files) / count, 2),
        }
        for session in held:
            session.close()
    return found


async def measure_length(length: int, place: Path) -> JsonObject:
    store = FileStore(place / f"length-{length}")
    async with Session.open(MODEL, settings=QUIET, directory=place) as first:
        await talk(first, 1)  # loads what is loaded once
    gc.collect()
    memory = resident_mb()
    async with Session.resume("long", store=store, settings=QUIET, directory=place) as session:
        seconds = (await talk(session, 30))[5:]
        return {
            "turn_cpu_ms": round(1_000 * statistics.median(seconds), 3),
            "mb": max(0.1, round(resident_mb() - memory, 1)),
        }


def in_new_processes(
    measure: Callable[[int, Path], Coroutine[Any, Any, JsonObject]],
    sizes: Iterable[int],
    place: Path,
) -> JsonObject:
    """Measure each size in a process of its own, because memory is used again within one."""
    found: JsonObject = {}
    for size in sizes:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            found[str(size)] = process.submit(run_one, measure, size, place).result()
    return found


def run_one(
    measure: Callable[[int, Path], Coroutine[Any, Any, JsonObject]], size: int, place: Path
) -> JsonObject:
    return asyncio.run(measure(size, place))


def exponent(figures: JsonObject, name: str) -> float:
    """Fit the slope of log cost over log size by least squares."""
    points = [(math.log(float(size)), math.log(one[name])) for size, one in figures.items()]
    xs, ys = zip(*points, strict=True)
    mean_x, mean_y = statistics.fmean(xs), statistics.fmean(ys)
    over = sum((x - mean_x) * (y - mean_y) for x, y in points)
    return round(over / sum((x - mean_x) ** 2 for x in xs), 3)


def recorded_days(files: Sequence[Path]) -> list[tuple[float, list[float], int]]:
    """Return for each session its hour of the day, the times of its calls in it, and its bytes."""
    found = []
    for path in files:
        with open_transcript(path) as transcript:
            times = [one.at for one in transcript.entries if isinstance(one, Replied) and one.at]
        if times:
            start = datetime.fromtimestamp(times[0], UTC)
            hour = start.hour + start.minute / 60
            found.append((hour, [at - times[0] for at in times], path.stat().st_size))
    return found


def plan(
    recorded: Sequence[tuple[float, list[float], int]], sessions: int, per_entry: JsonObject
) -> JsonObject:
    """Simulate a day with a sample and scale it; an answer streams for 20 seconds."""
    rng = random.Random(7)
    sample = 5_000
    calls_by_minute = [0] * 1_440
    calls = 0
    for _ in range(sample):
        hour = rng.choice(recorded)[0] + rng.uniform(-0.5, 0.5)
        for at in rng.choice(recorded)[1]:
            calls += 1
            calls_by_minute[int(hour * 60 + at / 60) % 1_440] += 1
    scale = sessions / sample
    peak_calls = max(calls_by_minute) * scale / 60
    entries_per_call = 4
    writes = peak_calls * entries_per_call
    bytes_a_day = calls * scale * entries_per_call * per_entry["bytes_per_entry"]
    streams = peak_calls * 20
    return {
        "sessions_a_day": sessions,
        "calls_per_session": round(calls / sample, 1),
        "peak_calls_per_second": round(peak_calls),
        "peak_streams": round(streams),
        "gateways": math.ceil(streams / STREAMS_PER_GATEWAY),
        "peak_commits_per_second": round(writes),
        "database_gb_a_day": round(bytes_a_day / 1e9, 1),
        "database_tb_in_30_days": round(30 * bytes_a_day / 1e12, 2),
    }


def measure(sizes: Sequence[int], planned: int) -> JsonObject:
    found: JsonObject = {"files": {}, "postgres": {}}
    with temporary_home() as place:
        server = PostgresServer()
        database = PostgresStore(server.url)
        try:
            for name, store in (("files", FileStore()), ("postgres", database)):
                done = 0
                for size in sizes:
                    fill(store, place, done, size)
                    done = size
                    if name == "postgres":
                        analyze(server.url)
                    figures = asyncio.run(measure_store(store, place, size))
                    if name == "postgres":
                        figures |= database_sizes(server.url)
                    found[name][str(size)] = figures
            found["upkeep"] = measure_upkeep(database, server.url, place, sizes[-1])
        finally:
            database.close()
            server.stop()
        found["open"] = in_new_processes(measure_open, [n for n in sizes if n <= 1_000], place)
        for length in LENGTHS:
            header = Header(session="long", created=time.time(), directory=str(place))
            FileStore(place / f"length-{length}").add(header, entries(length // 2))
        found["length"] = in_new_processes(measure_length, LENGTHS, place)
    found["exponents"] = {
        "turn_cpu_by_sessions_files": exponent(found["files"], "turn_cpu_ms"),
        "turn_cpu_by_sessions_postgres": exponent(found["postgres"], "turn_cpu_ms"),
        "open_by_sessions_files": exponent(found["files"], "open_ms"),
        "open_by_sessions_postgres": exponent(found["postgres"], "open_ms"),
        "list_by_sessions_files": exponent(found["files"], "list_ms"),
        "list_by_sessions_postgres": exponent(found["postgres"], "list_ms"),
        "turn_cpu_by_length": exponent(found["length"], "turn_cpu_ms"),
        "memory_by_length": exponent(found["length"], "mb"),
    }
    with recordings(()) as files:
        recorded = recorded_days(files)
    if recorded:
        found["plan"] = plan(recorded, planned, found["postgres"][str(sizes[-1])])
        pauses = [b - a for _, times, _ in recorded for a, b in pairwise(times)]
        found["plan"]["recorded_sessions"] = len(recorded)
        found["plan"]["pause_p50_s"] = round(percentile(pauses, 0.5), 1)
    return found


def main() -> None:
    parser = make_parser(__doc__, planned=1_000_000)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1_000, 10_000])
    given = parser.parse_args()
    print_result(measure(given.sizes, given.planned), given.json)


if __name__ == "__main__":
    main()
