"""Why recorded calls missed the cache, whether unchanged sessions raise alarms, and the cost.

Reads recorded sessions (`FILES`, in any format that Longhold reads) and prints one JSON object as
the last line. A call is cold if it read less than half of what the previous call had left in the
cache. `explained_share` counts cold calls with a cause that the file shows, `by_cause` all of them.
`dropped_reads` uses a narrower rule: reads of less than half of the previous reads. `request_*_ms`
is the time to build the request and its fingerprint in a turn with `--messages` messages,
`fingerprint_*_ms` that of the fingerprint and the verdict alone, also as CPU time. `edited_*_ms` is
the same with cache edits. `--sessions N` runs that many random sessions without changes against the
simulator, where every alarm is false.

    python benchmarks/breaks_real.py [FILES…] [--sessions 1000] [--messages 10000] [--json]
"""

import asyncio
import itertools
import random
import statistics
import time
from collections import Counter
from pathlib import Path

from harness import make_parser, percentile, print_result, recordings
from longhold.core.log.entries import Framed, Replied, Section
from longhold.core.messages import Message, Text, Usage
from longhold.core.request.cache.monitor import CacheMonitor
from longhold.core.request.markers import Markers
from longhold.core.request.request import Caching, Wire, build
from longhold.insight.calls import CallReport, explain_calls, sum_calls
from longhold.insight.transcripts.formats import open_transcript
from quiet import MODELS, prose, quiet_sessions

TURNS = 300
"""Timed turns: enough for a p99 of three."""
MESSAGE_CHARS = 5_000
"""The mean of recorded messages."""


def recorded(files: list[Path], quiet: bool) -> dict[str, object]:
    """Explain every cold call of recorded sessions."""
    causes: Counter[str] = Counter()
    calls = dropped = 0
    lost = 0.0
    for path in files:
        with open_transcript(path) as transcript:
            told = explain_calls(transcript.entries)
        calls += len(told)
        dropped += dropped_reads(told)
        lost += sum_calls(told).lost_usd
        causes.update(call.cause for call in told if call.is_cold)
        if not quiet:
            print(f"{path.name}: {len(told)} calls, {sum(call.is_cold for call in told)} cold")
    cold = causes.total()
    return {
        "calls": calls,
        "cold_calls": cold,
        "explained_share": round(1 - causes["provider"] / cold, 4) if cold else None,
        "by_cause": dict(causes.most_common()),
        "dropped_reads": dropped,
        "lost_usd": round(lost, 2),
    }


def dropped_reads(calls: list[CallReport]) -> int:
    """Count the calls that read less than half of what the call before had read."""
    reads = [call.tally.cache_read_tokens for call in calls]
    return sum(after < before / 2 for before, after in itertools.pairwise(reads))


def overhead(count: int) -> dict[str, object]:
    """Time what building and watching add to a turn of a long session, with cache edits and without."""
    plain, edited = timed(count, has_edits=False), timed(count, has_edits=True)
    watched, whole = plain["watched"], plain["whole"]
    return {
        "messages": count,
        "request_p50_ms": round(statistics.median(whole), 4),
        "request_p99_ms": p99(whole),
        "request_p99_cpu_ms": p99(plain["cpu"]),
        "edited_p50_ms": round(statistics.median(edited["whole"]), 4),
        "edited_p99_ms": p99(edited["whole"]),
        "edited_p99_cpu_ms": p99(edited["cpu"]),
        "fingerprint_p50_ms": round(statistics.median(watched), 4),
        "fingerprint_p99_ms": p99(watched),
        "first_ms": round(plain["first"][0], 1),
    }


def p99(times: list[float]) -> float:
    """Give the time that one turn in a hundred exceeds."""
    return round(percentile(times, 0.99), 4)


def timed(count: int, *, has_edits: bool) -> dict[str, list[float]]:
    """Time turns of a session that has so many messages before the first; the first apart."""
    rng = random.Random(1)
    tools = tuple({"name": f"T{i}", "description": prose(rng, 300)} for i in range(30))
    frame = Framed(sections=(Section(name="s", text=prose(rng, 4_000)),), tools=tools)
    messages = [spoken(rng, i) for i in range(count)]
    wire, markers, monitor, history = Wire(), Markers(), CacheMonitor(), []
    times: dict[str, list[float]] = {"watched": [], "whole": [], "cpu": []}
    for turn in range(TURNS):
        messages += [spoken(rng, 2 * turn), spoken(rng, 2 * turn + 1)]
        usage = Usage(cache_read_tokens=1_000 * turn, cache_write_tokens=1_000)
        answer = Replied(response_id=str(turn), content=(), usage=usage)
        began, cpu = time.perf_counter_ns(), time.thread_time_ns()
        sent = wire.messages(messages, {} if has_edits else None)
        caching = Caching(places=markers.place(sent, wire.unmoved, slots=2))
        request = build(frame, sent, model=MODELS[0], max_output_tokens=100, caching=caching)
        built = time.perf_counter_ns()
        history.append(monitor.track_request(request, history, names=["s"]))
        history.append(answer)
        markers.observe_reply()
        assert monitor.observe_reply(history) is None
        times["cpu"].append((time.thread_time_ns() - cpu) / 1e6)
        ended = time.perf_counter_ns()
        times["watched"].append((ended - built) / 1e6)
        times["whole"].append((ended - began) / 1e6)
    return {name: found[1:] for name, found in times.items()} | {"first": times["whole"][:1]}


def spoken(rng: random.Random, i: int) -> Message:
    """Make a message of the usual size."""
    return Message("assistant" if i % 2 else "user", (Text(text=prose(rng, MESSAGE_CHARS // 8)),))


def main() -> None:
    """Explain the named sessions, or the recorded ones where they are, and measure the rest."""
    parser = make_parser(__doc__, takes_files=True)
    parser.add_argument("--sessions", type=int, default=0, help="random sessions to monitor")
    parser.add_argument("--messages", type=int, default=10_000, help="length of the timed session")
    options = parser.parse_args()
    with recordings(options.files) as files:
        found = recorded(files, options.json)
    found |= {"files": len(files)} | overhead(options.messages)
    if options.sessions:
        found |= asyncio.run(quiet_sessions(options.sessions))
    print_result(found, options.json)


if __name__ == "__main__":
    main()
