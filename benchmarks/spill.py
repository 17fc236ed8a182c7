"""What layer 1 costs per result and per call, and what it takes off recorded sessions.

`sizes`: for sessions of so many messages, what letting a result in costs (written to the log,
looked up among those that were there before, held against its budget) and what the check before
a call costs; p50 in ms, and the p99 of CPU time alone, which other processes do not disturb.
`recorded`, over FILES: every result is let in again as it came, `spilled` and `repeated` count the
decisions, `tokens` what the results weigh without and with layer 1, `unlike` the results that did
not come back from log and disk exactly as they were. Without FILES that part is left out.

    python benchmarks/spill.py [FILES] [--sizes 100 1000 10000] [--json]
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from msgspec import structs

from longhold.core.log import Header, Log
from longhold.core.log.entries import Asked, Framed, Ran, Replied, Said, Spilled, Switched
from longhold.core.messages import Text, ToolUse
from longhold.core.messages.measure import NOTHING
from longhold.core.settings import Settings
from longhold.core.stages.spill.spill import Spill
from longhold.core.turn.engine import Engine
from longhold.core.view.tokens import default_weights, weigh
from longhold.insight.transcripts.formats import open_transcript

MODEL = "claude-opus-5-5"
TIMED = 1_000
"""Results per size, enough for a p99 of ten."""
BODY = "some words of a result that a tool gave " * 125  # 5 KB, the mean of real messages


def engine_in(directory: Path, spill: Spill) -> Engine:
    """Open a session with layer 1 and nothing else."""
    log = Log.create(directory / "s.jsonl", Header(session="s"))
    engine = Engine(log, Settings(), on_result=spill.arrive)
    engine.record(Switched(model=MODEL))
    engine.record(Framed(tools=({"name": "History"}, {"name": "Read"})))
    return engine


def answer(n: int) -> Replied:
    use = ToolUse(id=f"toolu_{n}", name="Bash", input={"command": "make"})
    return Replied(response_id=f"r{n}", content=(Text(text="Now this."), use))


async def timed(size: int) -> dict:
    """Time arrivals and checks in a session of `size` messages."""
    arrivals, checks, busy = [], [], []
    with tempfile.TemporaryDirectory() as name:
        spill = Spill()
        engine, stage = engine_in(Path(name), spill), spill.stage
        engine.say("go")
        for n in range(size // 2 + TIMED):
            engine.record(answer(n))
            ran = Ran(tool_use_id=f"toolu_{n}", content=f"{n} {BODY}")
            if n < size // 2:
                engine.record(ran)
                continue
            start = time.perf_counter_ns()
            engine.take(ran)
            middle, began = time.perf_counter_ns(), time.thread_time_ns()
            await stage(engine)
            busy.append((time.thread_time_ns() - began) / 1e6)
            checks.append((time.perf_counter_ns() - middle) / 1e6)
            arrivals.append((middle - start) / 1e6)
            engine.record(Asked())
        engine.close()
    return {
        "arrival_p50_ms": round(statistics.median(arrivals), 4),
        "check_p50_ms": round(statistics.median(checks), 4),
        "check_p99_cpu_ms": round(sorted(busy)[int(len(busy) * 0.99)], 4),
    }


async def replayed(files: Iterable[Path]) -> dict:
    """Let the results of recorded sessions in again."""
    found = {"sessions": 0, "results": 0, "spilled": 0, "repeated": 0, "unlike": 0}
    before = after = 0.0
    weights = default_weights(MODEL)
    for file in files:
        found["sessions"] += 1
        with tempfile.TemporaryDirectory() as name, open_transcript(file) as transcript:
            spill = Spill()
            engine = engine_in(Path(name), spill)
            came: dict[int, Ran] = {}
            for entry in transcript.entries:
                if isinstance(entry, Ran):
                    written = engine.take(structs.replace(entry, n=0, measure=NOTHING))
                    came[written.n] = entry
                elif isinstance(entry, Said | Replied):
                    await spill.stage(engine)
                    engine.record(structs.replace(entry, n=0))
            history = engine.view.history
            spilled = [entry for entry in history if isinstance(entry, Spilled)]
            found["results"] += len(came)
            found["spilled"] += sum(bool(entry.file) for entry in spilled)
            found["repeated"] += sum(bool(entry.same_as) for entry in spilled)
            found["unlike"] += sum(not same(engine, entry, came) for entry in history)
            shown = {entry.rests_on[0]: entry.measure for entry in spilled}
            for entry in history:
                if isinstance(entry, Ran):
                    before += weigh(entry.measure, weights)
                    after += weigh(shown.get(entry.n, entry.measure), weights)
            engine.close()
    return found | {"tokens": {"without": round(before), "with": round(after)}}


def same(engine: Engine, entry: object, came: dict[int, Ran]) -> bool:
    """Say whether a result can be had exactly as it came: from the log, and from its file."""
    match entry:
        case Ran(n=n, file=""):
            return entry.content == came[n].content
        case Ran(n=n, file=file):
            return engine.results.read(Path(file).name) == came[n].content
        case Spilled(file=file, rests_on=(n,)) if file:
            return engine.results.read(Path(file).name) == came[n].content
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1_000, 10_000])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    asyncio.run(timed(100))  # warm up
    report: dict = {"sizes": {size: asyncio.run(timed(size)) for size in options.sizes}}
    if options.files:
        report["recorded"] = asyncio.run(replayed(options.files))
    elif not options.json:
        print("no FILES: only the timings are measured")
    print(json.dumps(report, indent=None if options.json else 1))


if __name__ == "__main__":
    main()
