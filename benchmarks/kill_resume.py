"""Kill the agent at random points and resume it: is anything lost or done twice?

The real command (`longhold run`) works as a process of its own, with real tools, against the
simulator over HTTP. It is killed with SIGKILL again and again at random moments and resumed each
time. Lost: a line of the log that was there before a kill and is not there after, or something
the user said that is not in the log. Doubled: an answer or a result that is in the log twice, or
a tool that did its work twice.

    python benchmarks/kill_resume.py [--kills 100] [--seed 1] [--json]
"""

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

from harness import count_lost_lines, make_parser, print_result, read_lines
from longhold.core.log import load
from longhold.core.log.entries import AnyEntry, Ran, Replied, Said
from longhold.core.messages import text_of
from longhold.core.messages.rules import violations
from longhold.core.turn.repair import INTERRUPTED
from longhold.core.view import fold
from longhold.simulator import BrainAnswer, BrainRequest, run_simulator
from longhold.simulator.brains import text, tool_use

PROMPT = "Write the steps into steps.txt, one by one."
WORK_SECONDS = 0.6
"""A child is killed within this time after it was first seen to work,"""
EARLY_SHARE = 0.15
"""or, this often, at any moment of its start."""
START_SECONDS = 20
FINAL_SECONDS = 60


class Stepper:
    """Asks for one step after another, going by the results it sees."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def answer(self, request: BrainRequest) -> BrainAnswer:
        done = sum(
            block.get("type") == "tool_result"
            for message in request.messages
            for block in message["content"]
        )
        if done >= self.steps:
            return BrainAnswer(blocks=(text("All steps are written."),))
        words = f"Step {done} comes next. " * 20
        command = f"sleep 0.01; echo step-{done} >> steps.txt"
        look = tool_use("Glob", {"pattern": "*.txt"})
        step = tool_use("Bash", {"command": command})
        return BrainAnswer(blocks=(text(words), step, *((look,) if done % 3 == 0 else ())))


def words_for(url: str, *words: str) -> list[str]:
    """Word the agent's command against the simulator."""
    model = ["--model", "claude-sonnet-4-6", "--base-url", url, "--mode", "bypass"]
    return ["run", *model, "--json", *words]


def start(url: str, project: Path, home: Path, *words: str) -> subprocess.Popen:
    """Start the agent's command."""
    return subprocess.Popen(
        [sys.executable, "-m", "longhold", *words_for(url, *words)],
        cwd=project,
        env=os.environ | {"LONGHOLD_HOME": str(home), "ANTHROPIC_API_KEY": "x"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def log_of(home: Path) -> Path | None:
    """Find the one session's log."""
    found = list(home.glob("projects/*/*.jsonl"))
    assert len(found) <= 1, "one task is one session"
    return found[0] if found else None


def await_growth(home: Path, lines: int) -> None:
    """Wait until the agent has written something."""
    end = time.monotonic() + START_SECONDS
    while len(read_lines(log_of(home))) <= lines + 2 and time.monotonic() < end:
        time.sleep(0.01)


def doubled(entries: list[AnyEntry], project: Path) -> int:
    """Count what is there twice."""
    finals = Counter(e.response_id for e in entries if isinstance(e, Replied) and e.stop_reason)
    results = Counter(e.tool_use_id for e in entries if isinstance(e, Ran))
    steps = Counter((project / "steps.txt").read_text().split())
    return sum(count - 1 for found in (finals, results, steps) for count in found.values())


def trial(kills: int, seed: int, brain: Stepper, url: str, directory: Path) -> dict:
    """Kill and resume, then let it come to its end."""
    dice = random.Random(seed)
    project, home = directory / "project", directory / "home"
    project.mkdir()
    lost = killed = 0
    words = ("-p", PROMPT)
    while killed < kills:
        before = read_lines(log_of(home))
        child = start(url, project, home, *words)
        if dice.random() < EARLY_SHARE:
            time.sleep(dice.uniform(0, 1))
        else:
            await_growth(home, len(before))
            time.sleep(dice.uniform(0, WORK_SECONDS))
        child.send_signal(signal.SIGKILL)
        child.communicate()
        killed += 1
        path = log_of(home)
        lost += count_lost_lines(before, path)
        said = [e for e in load(path).entries if isinstance(e, Said)] if path else []
        words = ("--resume", "newest") if said else words
        if path and not said:
            path.unlink()  # killed before the task was taken in: the user asks again
    brain.steps = 5 + sum(isinstance(e, Ran) for e in load(log_of(home)).entries)
    child = start(url, project, home, *words)
    out, err = child.communicate(timeout=FINAL_SECONDS)
    loaded = load(log_of(home))
    prompts = [text_of(e.content) for e in loaded.entries if isinstance(e, Said) and not e.hidden]
    lost += prompts.count(PROMPT) == 0
    interrupted = sum(
        text_of(e.content) == INTERRUPTED for e in loaded.entries if isinstance(e, Ran)
    )
    return {
        "kills": killed,
        "lost": lost,
        "doubled": doubled(loaded.entries, project) + max(0, len(prompts) - 1),
        "completed": json.loads(out or "{}").get("reason") == "completed",
        "interrupted_results": interrupted,
        "torn_lines": len(loaded.damage),
        "entries": len(loaded.entries),
        "broken_rules": len(violations(fold(loaded.entries).messages())),
        "error": err.strip()[-300:] if child.returncode else "",
    }


def main() -> None:
    options = make_parser(__doc__, kills=100, seed=1).parse_args()
    brain = Stepper(steps=1_000_000)  # more than can be done before the last kill
    with tempfile.TemporaryDirectory() as name, run_simulator(brain) as simulator:
        result = trial(options.kills, options.seed, brain, simulator.url, Path(name))
    print_result(result, options.json)


if __name__ == "__main__":
    main()
