"""Whether the thousandth compaction costs what the first did.

A session in a small window goes on for many turns; in each the user asks, a scripted model reads,
changes and runs something, and answers. All layers run before each call, and no model writes
summaries, so that what is timed is our own work. `first_ms` and `last_ms` are the p99 of the CPU
time that a call with a compaction took, over the first and the last hundred compactions (or the
first and the last half, if there are fewer), `ratio` is one over the other, and `on_loop_ms` the
longest time for which the event loop could do nothing else, in the last ones.

    python benchmarks/compaction_growth.py [--turns 1000] [--window 32000] [--seed 1] [--json]
"""

import argparse
import asyncio
import json
import random
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from longhold import Session
from longhold.core.log.entries import Compacted
from longhold.core.log.store import FileStore
from longhold.core.messages import JsonObject
from longhold.core.settings import Settings

MODEL = "claude-sonnet-5-5"
COMPARED = 100
ANSWER_SENTENCES = 40
TICK_SECONDS = 0.005
PARTS = ("billing", "ledger", "catalogue", "scheduler", "gateway", "archive", "mailer", "roster")


def answer(id: int, *content: JsonObject) -> JsonObject:
    stop = "tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn"
    return {
        "id": f"msg_{id}",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": list(content),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }


class Script:
    """Says what the user and the model say."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.calls = 0

    def request(self, turn: int) -> str:
        part = self.rng.choice(PARTS)
        return f"Turn {turn}: make {part}/module_{self.rng.randint(1, 60)}.py handle case {turn}."

    def steps(self) -> list[tuple[JsonObject, str]]:
        path = f"/srv/{self.rng.choice(PARTS)}/module_{self.rng.randint(1, 60)}.py"
        lines = (f"def step_{i}(x): return x * {self.rng.randint(2, 99)}" for i in range(60))
        code = "\n".join(lines)
        edit = {"file_path": path, "old_string": "return x", "new_string": "return x + 1"}
        passed = "ok\n" * 40 + f"{self.rng.randint(2, 99)} passed in 0.3s"
        return [
            (self.use("Read", {"file_path": path}), code),
            (self.use("Edit", edit), "The file has been updated."),
            (self.use("Bash", {"command": f"pytest -q {path}"}), passed),
        ]

    def report(self, turn: int) -> str:
        """A long answer: no layer but compaction makes it shorter."""
        parts = (
            f"In {self.rng.choice(PARTS)} the function step_{self.rng.randint(1, 59)} now adds "
            f"{self.rng.randint(2, 99)} because case {turn} needs it."
            for _ in range(ANSWER_SENTENCES)
        )
        return " ".join((f"Done: case {turn} is handled and tested.", *parts))

    def use(self, name: str, given: JsonObject) -> JsonObject:
        self.calls += 1
        return {"type": "tool_use", "id": f"toolu_{self.calls}", "name": name, "input": given}


class Stalls:
    """The longest time for which nothing else could run."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def watch(self) -> None:
        while True:
            began = time.monotonic()
            await asyncio.sleep(TICK_SECONDS)
            self.longest = max(self.longest, time.monotonic() - began - TICK_SECONDS)

    def taken(self) -> float:
        longest, self.longest = self.longest, 0.0
        return longest


async def run(turns: int, window: int, seed: int) -> tuple[list[float], list[float]]:
    script, times, stalls = Script(seed), list[float](), list[float]()
    plain = Settings()
    settings = replace(plain, window=replace(plain.window, limit_tokens=window))
    with tempfile.TemporaryDirectory() as place:
        session = Session.open(model=MODEL, store=FileStore(Path(place)), settings=settings)
        stall = Stalls()
        watching = asyncio.create_task(stall.watch())
        async with session:

            async def call(*content: JsonObject) -> None:
                script.calls += 1
                seen, _ = len(session.view.history), stall.taken()
                began = time.process_time()
                await session.prepare()
                took = time.process_time() - began
                if any(isinstance(entry, Compacted) for entry in session.view.history[seen:]):
                    times.append(took * 1_000)
                    await asyncio.sleep(0)
                    stalls.append(stall.taken() * 1_000)
                await session.settle(answer(script.calls, *content))

            for turn in range(1, turns + 1):
                session.user(script.request(turn))
                for use, result in script.steps():
                    await call(use)
                    session.tool_result(str(use["id"]), result)
                await call({"type": "text", "text": script.report(turn)})
                await asyncio.sleep(0)
        watching.cancel()
    return times, stalls


def p99(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.99))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=1_000)
    parser.add_argument("--window", type=int, default=32_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print nothing but the result")
    given = parser.parse_args()
    began = time.monotonic()
    times, stalls = asyncio.run(run(given.turns, given.window, given.seed))
    part = min(COMPARED, len(times) // 2)
    first, last = p99(times[:part]), p99(times[-part:])
    result = {
        "turns": given.turns,
        "window": given.window,
        "compactions": len(times),
        "compared": part,
        "first_ms": round(first, 1),
        "last_ms": round(last, 1),
        "ratio": round(last / first, 3),
        "on_loop_ms": round(max(stalls[-part:]), 1),
        "seconds": round(time.monotonic() - began, 1),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
