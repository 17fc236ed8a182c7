"""The cost of log and view per appended message, and whether it grows with the history.

For each size a session of that many messages is built; then messages of real shape (5 KB in
the mean) are appended one by one: measured, written to the log, folded into the view, and
the context's size taken. `sizes` holds p50 and p99 in ms, and the p99 of CPU time alone, which
other processes do not disturb; `growth_exponent` is the slope of log p50 over log size. Syncing to disk happens once per turn and is timed apart.

`clearing` is what layer 2 takes before a call when the view holds a million tokens: `check_*` on
every turn of a session that goes on from there, with the cache warm, the calls on which it finds
that clearing pays included; `pass_ms` when the cache expired and all but the newest five results
are cleared at once, entry and view included; `first_pass_ms` the same in a process that has just
taken the session up and has counted nothing yet. All in CPU time.

`full_window` is the CPU time of a request, from `prepare` to `record`, in a full window of 32K.

    python benchmarks/turn_overhead.py [--sizes 100 1000 10000 100000] [--json]
"""

import asyncio
import gc
import itertools
import math
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from harness import make_parser, percentile, print_result
from longhold.core.log import Header, Log
from longhold.core.log.entries import (
    AnyEntry,
    Asked,
    Cleared,
    Compacted,
    Framed,
    Ran,
    Replied,
    Said,
    Switched,
)
from longhold.core.log.store import FileStore
from longhold.core.messages import Text, ToolUse, Usage
from longhold.core.messages.measure import measure_content
from longhold.core.settings import ClearSettings, GaugeSettings, Settings, WindowSettings
from longhold.core.stages.clear.clear import Clearing
from longhold.core.turn.engine import Engine
from longhold.core.view import View
from longhold.core.view.gauge import Follower
from longhold.session.session import Session

MEAN_BYTES = 5_000
APPENDS = 2_000
"""Timed appends per size, enough for a p99 of twenty."""
CROWDED_TOKENS = 1_000_000
CHECKS = 500
"""Timed checks, enough for a p99 of five."""
PASSES = 5
FULL, FULL_TOKENS, FULL_TURNS = "claude-sonnet-4-6", 32_000, 230
WORDS = Path(__file__).read_text(encoding="utf-8").split()


def texts(seed: int) -> list[str]:
    """Make texts of skewed length, 5 KB in the mean, that share no tail."""
    rng = random.Random(seed)
    made = []
    for _ in range(500):
        size = min(60_000, int(rng.expovariate(1 / MEAN_BYTES)) + 20)
        words = rng.choices(WORDS, k=size // 6 + 1)
        made.append(" ".join(words)[:size])
    return made


def messages(seed: int) -> Iterator[Callable[[], AnyEntry]]:
    """Yield entries as a session makes them: said, then replied and ran, over and over."""
    bodies = itertools.cycle(texts(seed))
    for i in itertools.count():
        if i % 20 == 0:
            yield lambda: Said(
                content=(text := Text(text=next(bodies)),), measure=measure_content((text,))
            )
        id = f"toolu_{seed}_{i}"
        yield lambda i=i, id=id: answer(i, id, next(bodies))
        yield lambda id=id: result(id, next(bodies))


def answer(i: int, id: str, body: str) -> Replied:
    content = (
        Text(text=body),
        ToolUse(id=id, name="Read", input={"file_path": f"src/file_{i}.py"}),
    )
    usage = Usage(input_tokens=10, cache_read_tokens=50_000 + i, output_tokens=200)
    return Replied(
        response_id=f"msg_{i}",
        model="claude-opus-4-6",
        content=content,
        usage=usage,
        stop_reason="tool_use",
        measure=measure_content(content),
    )


def result(id: str, body: str) -> Ran:
    return Ran(tool_use_id=id, content=body, measure=measure_content(body))


def run(size: int, directory: Path) -> dict:
    """Build a session of `size` messages and time appends to it."""
    view, gauge = View(), Follower()
    stream = messages(size)
    path = directory / f"{size}.jsonl"
    with Log.create(path, Header(session="bench")) as log:
        for make in itertools.islice(stream, size):
            view.apply(log.append(make()))
        gc.collect()
        times, busy, syncs = [], [], []
        for make in itertools.islice(stream, APPENDS):
            start, began = time.perf_counter_ns(), time.thread_time_ns()
            view.apply(log.append(make()))
            gauge.follow(view).size_tokens(view.total)
            times.append((time.perf_counter_ns() - start) / 1e6)
            busy.append((time.thread_time_ns() - began) / 1e6)
        for make in itertools.islice(stream, 20):
            view.apply(log.append(make()))
            start = time.perf_counter_ns()
            log.sync()
            syncs.append((time.perf_counter_ns() - start) / 1e6)
    path.unlink()
    return {
        "p50_ms": round(statistics.median(times), 4),
        "p99_ms": round(percentile(times, 0.99), 4),
        "p99_cpu_ms": round(percentile(busy, 0.99), 4),
        "sync_ms": round(statistics.median(syncs), 3),
    }


def crowded(directory: Path, name: str, tokens: int, later: list[float]) -> Engine:
    """Build a session whose view holds so many tokens, half of them in results.

    Its clock is ahead by the last of `later`.
    """
    log = Log.create(directory / f"{name}.jsonl", Header(session="bench"))
    window = WindowSettings(limit_tokens=4 * tokens)  # its line is not what is timed here
    engine = Engine(
        log,
        Settings(gauge=GaugeSettings(calibrate=False), window=window),
        clock=lambda: time.time() + later[-1],
    )
    engine.record(Switched(model="claude-opus-4-6"))
    engine.record(Framed(lifetime="1h"))
    stream = messages(1)
    while engine.fullness().used_tokens < tokens:
        grow(engine, next(stream)())
    engine.record(Asked(at=time.time()))
    return engine


def grow(engine: Engine, entry: AnyEntry) -> None:
    """Take in an entry; an answer reports the size that the view has by its weight."""
    if isinstance(entry, Replied):
        used = engine.fullness().used_tokens
        entry = structs.replace(entry, usage=Usage(cache_read_tokens=used, output_tokens=200))
    engine.take(entry)
    engine.fullness()  # the gauge learns from each answer, which is timed above


def timed(stage: Clearing, engine: Engine) -> float:
    """Time one run of the stage, in ms of CPU."""
    began = time.thread_time_ns()
    drive(stage, engine)
    return (time.thread_time_ns() - began) / 1e6


def drive(stage: Clearing, engine: Engine) -> None:
    """Run a stage that waits for nothing."""
    try:
        stage(engine).send(None)
    except StopIteration:
        return
    raise AssertionError("the stage waited for something")


def clearing(directory: Path) -> dict:
    """Time the stage on every turn, and where everything is cleared at once."""
    engine, stage = crowded(directory, "check", 2 * CROWDED_TOKENS, [0.0]), Clearing()
    drive(stage, engine)  # half of it are results, which pays at once
    stream, checks, before = messages(2), [], len(engine.view.history)
    for _ in range(CHECKS):
        for _ in range(2):
            grow(engine, next(stream)())
        checks.append(timed(stage, engine))
    cuts = sum(isinstance(entry, Cleared) for entry in engine.view.history[before:])
    passes = [full_pass(directory, f"pass{i}", is_known=True) for i in range(PASSES)]
    firsts = [full_pass(directory, f"first{i}", is_known=False) for i in range(PASSES)]
    return {
        "check_p50_ms": round(statistics.median(checks), 4),
        "check_p99_ms": round(percentile(checks, 0.99), 4),
        "pass_ms": round(statistics.median(ms for ms, _ in passes), 3),
        "first_pass_ms": round(statistics.median(ms for ms, _ in firsts), 3),
        "checks_that_cleared": cuts,
        "results_in_a_pass": passes[0][1],
    }


def full_pass(directory: Path, name: str, *, is_known: bool) -> tuple[float, int]:
    """Time a clearing of all that can be cleared; say how many results it was."""
    later = [0.0]
    engine, stage = crowded(directory, name, CROWDED_TOKENS, later), Clearing()
    if is_known:  # a session that goes on has looked before every call
        engine.settings = replace(engine.settings, clear=ClearSettings(idle=False, paid=False))
        drive(stage, engine)
        engine.settings = replace(engine.settings, clear=ClearSettings())
    later.append(2 * 3_600)
    gc.collect()
    took = timed(stage, engine)
    entry = engine.view.history[-1]
    assert isinstance(entry, Cleared)
    engine.close()
    return took, len(entry.ids)


async def full_window(directory: Path) -> dict:
    """Time the requests of a session whose window is full, compactions without a model included."""
    rows = "\n".join(f"row {n}: paid {n * 7} to the bakery on time" for n in range(70))
    spent: list[float] = []

    async def ask(session: Session, content: list[dict], stop: str) -> None:
        began = time.process_time()
        await session.prepare()
        used = session.fullness().used_tokens
        usage = {"input_tokens": 10, "cache_read_input_tokens": used - 10, "output_tokens": 30}
        answer = {"id": f"m{len(spent)}", "type": "message", "role": "assistant", "model": FULL}
        await session.record({**answer, "content": content, "stop_reason": stop, "usage": usage})
        spent.append(1_000 * (time.process_time() - began))

    store = FileStore(directory / "full")
    with Session.open(FULL, window=FULL_TOKENS, directory=directory, store=store) as session:
        for turn in range(FULL_TURNS):
            session.user(f"turn {turn}: what do the books say?")
            call = {"type": "tool_use", "id": f"u{turn}", "name": "lookup", "input": {"n": turn}}
            await ask(session, [call], "tool_use")
            session.tool_result(f"u{turn}", f"entry {turn}\n{rows}")
            await ask(session, [{"type": "text", "text": f"Turn {turn} is there."}], "end_turn")
        compactions = sum(isinstance(entry, Compacted) for entry in session.view.history)
    return {
        "requests": len(spent),
        "compactions": compactions,
        "mean_ms": round(statistics.mean(spent), 2),
        "p50_ms": round(statistics.median(spent), 2),
        "p99_ms": round(percentile(spent, 0.99), 1),
    }


def exponent(sizes: dict[int, dict]) -> float:
    """Fit p50 = c · size^k and give k."""
    xs = [math.log(size) for size in sizes]
    ys = [math.log(found["p50_ms"]) for found in sizes.values()]
    return round(statistics.linear_regression(xs, ys).slope, 4) if len(xs) > 1 else 0.0


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1_000, 10_000, 100_000])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        run(100, Path(name))  # warm up
        sizes = {size: run(size, Path(name)) for size in options.sizes}
        cleared = clearing(Path(name))
        full = asyncio.run(full_window(Path(name)))
    found = {"sizes": sizes, "growth_exponent": exponent(sizes), "clearing": cleared}
    found["full_window"] = full
    print_result(found, options.json)


if __name__ == "__main__":
    main()
