"""Why recorded calls were cold, whether quiet sessions alarm anybody, and what watching costs.

Recorded sessions come in (`FILES`, any format the package reads); one JSON object goes out as the
last line. A call is cold when it read less than half of what the one before it had left in the
cache; `explained_share` counts those with a cause that can be pointed at in the file, `by_cause`
all of them. `dropped_reads` counts by the narrower rule: reads under half of the reads before.
`fingerprint_*_ms` is what watching adds to a turn at `--messages` messages, also in CPU time
alone, which other processes do not disturb. With `--sessions N` that many random sessions without
changes run against the simulator; every alarm is false.

    python benchmarks/breaks_real.py [FILES…] [--sessions 1000] [--messages 10000] [--json]
"""

import argparse
import asyncio
import itertools
import json
import random
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path

from holdfast.cache.calls import Call, explain_calls, totals
from holdfast.cache.request import Wire, build
from holdfast.cache.watch import Watch
from holdfast.entries import CacheBroke, Framed, Replied, Section
from holdfast.messages import Message, Text, Usage
from holdfast.session import Session
from holdfast.simulator import Answer, BrainRequest, SimulatorClock, running
from holdfast.simulator.brains import text, thinking, tool_use
from holdfast.transcripts.formats import open_transcript
from holdfast.transcripts.generate import write

RECORDED = Path(__file__).parents[2] / "shared" / "data" / "transcripts"
WORDS = Path(__file__).read_text(encoding="utf-8").split()
TURNS = 300
"""Timed turns: enough for a p99 of three."""
MESSAGE_CHARS = 5_000
"""The mean of recorded messages."""
MODELS = ("claude-sonnet-5-5", "claude-opus-5", "claude-haiku-5-5", "claude-haiku-4-5")
BUDGET = {"thinking": {"type": "enabled", "budget_tokens": 1_024}}
"""The oldest of the models thinks only when told to."""


def prose(rng: random.Random, words: int) -> str:
    """Make some text."""
    return " ".join(rng.choices(WORDS, k=words))


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
        lost += totals(told).lost_usd
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


def dropped_reads(calls: list[Call]) -> int:
    """Count the calls that read less than half of what the call before had read."""
    return sum(
        after.read_tokens < before.read_tokens / 2 for before, after in itertools.pairwise(calls)
    )


def overhead(count: int) -> dict[str, object]:
    """Time what watching adds to a turn of a long session."""
    rng = random.Random(1)
    tools = tuple({"name": f"T{i}", "description": prose(rng, 300)} for i in range(30))
    frame = Framed(sections=(Section(name="s", text=prose(rng, 4_000)),), tools=tools)
    messages = [spoken(rng, i) for i in range(count)]
    wire, watch, history = Wire(), Watch(), []
    times, busy = [], []
    for turn in range(TURNS):
        messages += [spoken(rng, 2 * turn), spoken(rng, 2 * turn + 1)]
        request = build(frame, wire.messages(messages), model=MODELS[0], max_output_tokens=100)
        usage = Usage(cache_read_tokens=1_000 * turn, cache_write_tokens=1_000)
        answer = Replied(response_id=str(turn), content=(), usage=usage)
        began, cpu = time.perf_counter_ns(), time.thread_time_ns()
        history.append(watch.sending(request, history, names=["s"]))
        history.append(answer)
        assert watch.answered(history) is None
        busy.append((time.thread_time_ns() - cpu) / 1e6)
        times.append((time.perf_counter_ns() - began) / 1e6)
    steady, alone = sorted(times[1:]), sorted(busy[1:])
    return {
        "messages": count,
        "fingerprint_p50_ms": round(statistics.median(steady), 4),
        "fingerprint_p99_ms": round(steady[int(len(steady) * 0.99)], 4),
        "fingerprint_p99_cpu_ms": round(alone[int(len(alone) * 0.99)], 4),
        "fingerprint_first_ms": round(times[0], 1),
    }


def spoken(rng: random.Random, i: int) -> Message:
    """Make a message of the usual size."""
    return Message("assistant" if i % 2 else "user", (Text(text=prose(rng, MESSAGE_CHARS // 8)),))


class ChanceBrain:
    """Answers by chance: words, now and then thoughts, half of the time tools."""

    def answer(self, request: BrainRequest) -> Answer:
        """Answer the same to the same conversation."""
        rng = random.Random(f"{len(request.messages)} {str(request.messages[-1])[:300]}")
        blocks = [thinking(prose(rng, 60))] if rng.random() < 0.5 else []
        blocks.append(text(prose(rng, rng.randint(5, 200))))
        if rng.random() < 0.5:
            blocks += [tool_use("Read", {"n": rng.random()}) for _ in range(rng.randint(1, 4))]
        return Answer(blocks=tuple(blocks))


async def quiet_sessions(count: int) -> dict[str, object]:
    """Run random sessions in which nothing changes, and count the alarms."""
    from anthropic import AsyncAnthropic

    alarms = calls = 0
    clock = SimulatorClock(is_frozen=True)
    with running(ChanceBrain(), clock=clock) as simulator, tempfile.TemporaryDirectory() as name:
        async with AsyncAnthropic(base_url=simulator.url, api_key="any") as client:
            for seed in range(count):
                rng = random.Random(seed)
                with one_session(rng, Path(name)) as session:
                    session.engine.watch.clock = clock.now
                    calls += await live(session, client, clock, rng, str(seed))
                    alarms += sum(
                        isinstance(entry, CacheBroke) and not entry.expected
                        for entry in session.view.history
                    )
    return {"quiet_sessions": count, "quiet_calls": calls, "false_alarms": alarms}


def one_session(rng: random.Random, directory: Path) -> Session:
    """Open a session with some model and a prompt of some length."""
    model = rng.choice(MODELS)
    return Session.open(
        model=model,
        system=prose(rng, rng.randint(500, 3_000)),
        tools=[
            {"name": "Read", "description": prose(rng, 200), "input_schema": {"type": "object"}}
        ],
        options=BUDGET if model == MODELS[-1] else None,
        directory=directory,
    )


async def live(
    session: Session, client: object, clock: SimulatorClock, rng: random.Random, key: str
) -> int:
    """Let a session go its way; count its calls."""
    calls = 0
    for _ in range(rng.randint(1, 5)):
        session.user(prose(rng, rng.randint(1, 600)))
        for _ in range(8):
            clock.advance(rng.uniform(0, 30))
            request = await session.prepare()
            headers = {"anthropic-workspace-id": key}
            response = await client.messages.create(**request.kwargs, extra_headers=headers)
            await session.settle(response)
            calls += 1
            uses = [block.id for block in response.content if block.type == "tool_use"]
            for id in uses:
                session.tool_result(id, prose(rng, rng.randint(1, 300)))
            if not uses:
                break
    return calls


def main() -> None:
    """Explain the named sessions, or the recorded ones where they are, and measure the rest."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--sessions", type=int, default=0, help="random sessions to watch")
    parser.add_argument("--messages", type=int, default=10_000, help="length of the timed session")
    parser.add_argument("--json", action="store_true", help="print nothing but the JSON object")
    options = parser.parse_args()
    files = options.files or sorted(RECORDED.rglob("*.jsonl*"))
    with tempfile.TemporaryDirectory() as directory:
        if not files:
            files = [Path(directory) / "generated.jsonl"]
            write(files[0], 1, 600)
            print("no recorded sessions here: a generated one is used, which says little")
        found = recorded(files, options.json)
    found |= {"files": len(files)} | overhead(options.messages)
    if options.sessions:
        found |= asyncio.run(quiet_sessions(options.sessions))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
