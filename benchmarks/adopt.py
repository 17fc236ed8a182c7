"""The effort of adopting Longhold in each way, on a long conversation with tools in a small window.

A program in its own process uses the simulator over HTTP through the official SDK: 150 turns with
two tool calls each, in a window of 32K. It is killed with SIGKILL five times and restarted. Each
way to adopt Longhold is a `Way`. A way is skipped if its framework is not installed. A turn is lost
if it is not in the conversation at the end, and doubled if it is there twice. A result is false if
it denies a run that happened. `lines` counts the lines of a program that exist for Longhold.
Finally, 200 sessions run in one process.

    python benchmarks/adopt.py [--turns 150] [--kills 5] [--ways session follow] [--json]
"""

import asyncio
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path

from anthropic import AsyncAnthropic

from adopting.many_sessions import many_sessions
from adopting.ways import MODEL, WAYS, Way
from harness import make_parser, print_result, temporary_home
from longhold import Session
from longhold.core.log import load
from longhold.core.log.entries import Cleared, Compacted, Ran, Replied, Said
from longhold.core.messages import ToolUse, text_of
from longhold.core.messages.rules import violations
from longhold.core.settings import NotesSettings, Settings
from longhold.core.turn.repair import NOT_RUN
from longhold.core.view import fold
from longhold.simulator import BrainAnswer, BrainRequest, run_simulator
from longhold.simulator.brains import text, tool_use
from longhold.simulator.brains.digest import DigestBrain

HERE = str(Path(__file__).parent)
sys.path[:] = [path for path in sys.path if path != HERE]  # a benchmark is called as a framework is

KILL_SECONDS = 0.1
"""A child is killed within this time after it came to the turn."""
TURN_SECONDS = 30


class Bookkeeper:
    """Looks two entries up in every turn, going by the last message alone."""

    def answer(self, request: BrainRequest) -> BrainAnswer:
        last = request.messages[-1]["content"][-1]
        said = json.dumps(last)
        if "<summary>" in said:
            return DigestBrain().answer(request)  # a question beside the conversation: a summary
        if found := re.findall(r"entry (\d+)/(\d+)", said):
            turn, step = map(int, found[-1])
        else:
            turns = re.findall(r"turn (\d+):", json.dumps(request.messages[-1]))
            turn, step = int(turns[-1]) if turns else 0, 0
        if step >= 2:
            return BrainAnswer(blocks=(text(f"Turn {turn} is in the books. " * 6),))
        look = tool_use("lookup", {"turn": turn, "step": step + 1})
        return BrainAnswer(blocks=(text(f"I look up {turn}. " * 3), look))


def done(place: Path) -> int:
    file = place / "turns.txt"
    return len(file.read_text().splitlines()) if file.exists() else 0


async def converse(way: type[Way], url: str, place: Path, turns: int) -> None:
    """Be the program that is killed and started again."""
    async with AsyncAnthropic(base_url=url, api_key="x", max_retries=0) as client:
        await way(place, client, turns).talk()


def drive(way: str, url: str, place: Path, turns: int, kills: int, dice: random.Random) -> str:
    """Start the program, kill it at some turns, start it again; return how its last run failed."""
    at = sorted(dice.sample(range(1, turns), kills))
    command = [sys.executable, __file__, "--child", way, "--url", url]
    command += ["--place", str(place), "--turns", str(turns)]
    env = os.environ | {"LONGHOLD_HOME": str(place / "home"), "LONGHOLD_STRICT": "1"}
    for turn in [*at, None]:
        child = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)
        if turn is None:
            _, err = child.communicate(timeout=turns * TURN_SECONDS)
            return err.strip()[-500:] if child.returncode else ""
        end = time.monotonic() + turns * TURN_SECONDS
        while done(place) < turn and child.poll() is None and time.monotonic() < end:
            time.sleep(0.002)
        time.sleep(dice.uniform(0, KILL_SECONDS))
        child.kill()
        child.communicate()
    return ""


def measured(way: type[Way], turns: int, kills: int, seed: int) -> dict:
    """Let a program converse to the end, and look at what came of it."""
    with tempfile.TemporaryDirectory() as name, run_simulator(Bookkeeper()) as simulator:
        place = Path(name)
        error = drive(way.name, simulator.url, place, turns, kills, random.Random(seed))
        with urllib.request.urlopen(f"{simulator.url}/simulator/stats") as answer:
            stats = json.loads(answer.read())
        [log] = (place / "home").glob("projects/*/books.jsonl")
        entries = load(log).entries
        ran = set((place / "ran.txt").read_text().split())
        took = [float(line.split()[1]) for line in (place / "turns.txt").read_text().splitlines()]
    view = fold(entries)
    said = Counter(
        int(found[1])
        for entry in entries
        if isinstance(entry, Said) and entry.n not in view.in_force.dead
        if (found := re.search(r"turn (\d+):", text_of(entry.content)))
    )
    denied = [e for e in entries if isinstance(e, Ran) and text_of(e.content) == NOT_RUN]
    calls = {
        block.id: f"{block.input['turn']}/{block.input['step']}"
        for entry in entries
        if isinstance(entry, Replied)
        for block in entry.content
        if isinstance(block, ToolUse)
    }
    prompts = [
        request["read_tokens"] + request["write_5m_tokens"] + request["uncached_tokens"]
        for request in stats["requests"]
    ]
    refused = sum(
        count for status, count in stats["totals"]["by_status"].items() if status != "200"
    )
    return {
        "peak_tokens": max(prompts),
        "read_share": round(stats["totals"]["cache_read_ratio"], 4),
        "violations": len(violations(view.messages())) + refused,
        "lines": way.lines(),
        "ms_per_turn": round(statistics.mean(took), 3),
        "calls": len(prompts),
        "compactions": sum(isinstance(entry, Compacted) for entry in entries),
        "clearings": sum(isinstance(entry, Cleared) for entry in entries),
        "lost": sum(turn not in said for turn in range(turns)),
        "doubled": sum(count - 1 for count in said.values()),
        "false": len([e for e in denied if calls[e.tool_use_id] in ran]),
        "error": error,
    }


async def following(size: int = 10_000, times: int = 40) -> dict:
    """Follow a long list with one new message each time; and say what recognising it takes."""
    with temporary_home() as directory:
        settings = Settings(notes=NotesSettings(on=False))
        session = Session.open(model=MODEL, settings=settings, directory=directory)
        messages = [
            {"role": "assistant" if n % 2 else "user", "content": [text(f"message {n} " * 12)]}
            for n in range(size)
        ]
        took, alone = [], []
        for n in range(times):
            messages.append({"role": "user", "content": f"one more: {n}"})
            began = time.perf_counter()
            await session.follow(messages)
            took.append(time.perf_counter() - began)
            answer = {"id": f"r{n}", "role": "assistant", "content": [text("yes")]}
            usage = {"input_tokens": 300_000, "output_tokens": 2}
            await session.record(
                answer | {"model": MODEL, "stop_reason": "end_turn", "usage": usage}
            )
            messages.append({"role": "assistant", "content": "yes"})
            known = session._program._following.known
            began = time.perf_counter()
            known.recognise(messages, None)
            alone.append((time.perf_counter() - began) / len(known.keys))
        session.close()
    return {
        "follow_10000_p50_ms": round(statistics.median(took[1:]) * 1e3, 3),
        "us_per_known_message": round(statistics.median(alone) * 1e6, 4),
    }


def main() -> None:
    parser = make_parser(__doc__, turns=150, kills=5, seed=1, sessions=200)
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--child", choices=list(WAYS))
    parser.add_argument("--url", default="")
    parser.add_argument("--place", type=Path)
    options = parser.parse_args()
    if options.child:
        asyncio.run(converse(WAYS[options.child], options.url, options.place, options.turns))
        return
    ways = {
        name: {"skipped": f"{missing} is not installed"}
        if (missing := WAYS[name].missing())
        else measured(WAYS[name], options.turns, options.kills, options.seed)
        for name in options.ways
    }
    found = asyncio.run(following()) | many_sessions(options.sessions)
    print_result({"ways": ways} | found, options.json)


if __name__ == "__main__":
    main()
