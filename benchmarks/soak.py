"""A very long session with a failing provider and a process that is killed repeatedly.

An agent with all layers works in a 32K window on real files, in a process of its own. One call in
ten is spoilt; the process is killed with SIGKILL at random points of its log and the session is
resumed. `lost` counts lines of the log that were there before a kill and are not after it,
`doubled` results of tools that are there twice, `damage` lines that cannot be read beyond those a
kill tore, `broken_rules` what an API would refuse in the last view, `stuck` processes that wrote
nothing for a minute.

    python benchmarks/soak.py [--turns 120] [--kills 3] [--rate 0.1] [--minutes 60] [--json]
"""

import argparse
import asyncio
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from faults.soak import prompt_of, soak_settings
from faults.worker import REPORT_EVERY, Worker, make_project
from harness import (
    FAULT_KINDS,
    ChaosModel,
    count_lost_lines,
    make_parser,
    print_result,
    read_lines,
    temporary_home,
)
from longhold.agent.build import build_agent
from longhold.core.log import load
from longhold.core.log.entries import Asked, Compacted, Ran
from longhold.core.messages.rules import violations
from longhold.core.view import fold

PATIENT_KINDS = tuple(kind for kind in FAULT_KINDS if kind != "stalled")
"""A stalled stream is waited for longer than a soak should last."""
STUCK_SECONDS = 60.0
LOOK_SECONDS = 0.05


async def work(place: Path, turns: int, rate: float, seed: int) -> None:
    """Go on with the session until it has its turns."""
    path = log_of(place)
    entries = load(path).entries if path else []
    begin = sum(isinstance(entry, Asked) and entry.source == "main" for entry in entries)
    model = Worker(place / "project", begin)
    agent = await build_agent(
        ChaosModel(model, seed=seed, rate=rate, kinds=PATIENT_KINDS),
        directory=place / "project",
        resume=path.stem if path else "",
        mode="bypass",
        settings=soak_settings(),
    )
    try:
        while begin + len(model.gaps_ms) < turns:
            prompt = prompt_of((begin + len(model.gaps_ms)) // REPORT_EVERY)
            async for _ in agent.run(prompt):
                pass
    finally:
        await agent.close()


def log_of(place: Path) -> Path | None:
    return next((place / "home").glob("projects/*/*.jsonl"), None)


def run_until(child: "subprocess.Popen[bytes]", place: Path, size: int, end: float) -> bool:
    """Wait until the log has grown to a size, the process has ended, or time is up.

    Return False if nothing was written for too long.
    """
    seen, since = -1, time.monotonic()
    while child.poll() is None and time.monotonic() < end:
        path = log_of(place)
        grown = path.stat().st_size if path else 0
        if grown >= size:
            return True
        if grown != seen:
            seen, since = grown, time.monotonic()
        elif time.monotonic() - since > STUCK_SECONDS:
            return False
        time.sleep(LOOK_SECONDS)
    return True


def play(place: Path, options: argparse.Namespace) -> dict[str, object]:
    """Start the work, kill it, and start it again, until it ends by itself."""
    dice, began = random.Random(options.seed), time.monotonic()
    end = began + options.minutes * 60
    make_project(place / "project")
    lost = stuck = kills = 0
    step = max(1, options.turns // (options.kills + 1)) * 4_000
    """Bytes of log between two kills, in the mean: a turn writes 5 KB."""
    while time.monotonic() < end:
        before = read_lines(log_of(place))
        words = [sys.executable, __file__, "--worker", str(place), "--turns", str(options.turns)]
        words += ["--rate", str(options.rate), "--seed", str(options.seed + kills)]
        size = sum(map(len, before)) + dice.randrange(step, 2 * step)
        with subprocess.Popen(words, stderr=subprocess.PIPE) as child:
            limit = sys.maxsize if kills >= options.kills else size
            stuck += not run_until(child, place, limit, end)
            is_over = child.poll() is not None
            child.kill()
            said = child.stderr.read().decode(errors="replace") if child.stderr else ""
        lost += count_lost_lines(before, log_of(place))
        if is_over:
            if child.returncode:
                raise SystemExit(f"the agent ended with {child.returncode}: {said[-2_000:]}")
            break
        kills += 1
    return {"kills": kills, "lost": lost, "stuck": stuck} | ended(place, kills, began)


def ended(place: Path, kills: int, began: float) -> dict[str, object]:
    path = log_of(place)
    assert path is not None, "there is a log"
    loaded = load(path)
    view = fold(loaded.entries)
    results = Counter(entry.tool_use_id for entry in loaded.entries if isinstance(entry, Ran))
    asked = [e for e in loaded.entries if isinstance(e, Asked) and e.source == "main"]
    return {
        "turns": len(asked),
        "doubled": sum(count - 1 for count in results.values()),
        "damage": max(0, len(loaded.damage) - kills),
        "torn": min(kills, len(loaded.damage)),
        "broken_rules": len(violations(view.messages())),
        "compactions": sum(isinstance(entry, Compacted) for entry in loaded.entries),
        "log_mb": round(path.stat().st_size / 1e6, 1),
        "seconds": round(time.monotonic() - began, 1),
    }


def main() -> None:
    parser = make_parser(__doc__, turns=120, kills=3, rate=0.1, seed=1)
    parser.add_argument("--minutes", type=float, default=60.0, help="after which it is ended")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        asyncio.run(work(options.worker, options.turns, options.rate, options.seed))
        return
    with temporary_home() as place:
        result = play(place, options)
    print_result(result, options.json)
    sys.exit(1 if result["lost"] or result["damage"] or result["broken_rules"] else 0)


if __name__ == "__main__":
    main()
