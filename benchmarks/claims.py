"""Twenty processes claim tasks from one list at once: is any task claimed twice?

The list has tasks that wait for others. Every process claims the oldest free task, marks some of
them done so that others become free, and writes down what it got. Some processes are killed on
the way; what they held is given back, as a team does when a member is gone. Double is a task that
two processes held at the same time, by the list's own history.

    python benchmarks/claims.py [--tasks 400] [--processes 20] [--seed 1] [--json]
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from longhold.agent.subagents.ledger import SharedLedger
from longhold.agent.subagents.tasks import Task, TaskChange, TaskList, Unchanged

WORK_SECONDS = 100
HOLD_SECONDS = 0.03
"""Between claiming and finishing, so that kills find tasks in somebody's hands."""
KILLED_SHARE = 0.25
"""Of the processes, killed once while they work."""


def work(path: Path, name: str) -> None:
    """Claim and finish until nothing is left, printing every claim."""
    tasks = TaskList(path)
    while True:
        try:
            task = tasks.claim(name)
        except Unchanged:
            if is_done(path):
                return
            time.sleep(0.01)
            continue
        print(task.id, flush=True)
        time.sleep(HOLD_SECONDS)
        tasks.change(task.id, TaskChange(status="completed"), by=name)


def start(path: Path, name: str) -> subprocess.Popen:
    words = [sys.executable, __file__, "--work", name, "--place", str(path)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def fill(path: Path, count: int, dice: random.Random) -> None:
    """Add the tasks; a third of them wait for one or two others."""
    tasks = TaskList(path)
    for number in range(1, count + 1):
        waits: tuple[str, ...] = ()
        if number > 3 and dice.random() < 1 / 3:
            waits = tuple(str(dice.randrange(1, number)) for _ in range(dice.choice((1, 2))))
        tasks.create(f"task {number}", "lead", change=TaskChange(waits_for=waits))


def history(path: Path) -> list[Task]:
    return SharedLedger(path, Task).values()


def is_done(path: Path) -> bool:
    return all(task.status == "completed" for task in TaskList(path).tasks().values())


def await_claim(path: Path, name: str) -> None:
    """Wait until a process has begun to work, or everything is done."""
    end = time.monotonic() + WORK_SECONDS
    while time.monotonic() < end:
        tasks = history(path)
        if any(task.owner == name for task in tasks[-100:]) or is_done(path):
            return
        time.sleep(0.01)


def judged(path: Path) -> tuple[int, int]:
    """Count claims, and those of a task that somebody held or had done already."""
    held: dict[str, str] = {}
    claims = double = 0
    for task in history(path):
        if task.status == "in_progress":
            claims += 1
            double += bool(held.get(task.id))
            held[task.id] = task.owner
        elif task.status == "pending":
            held.pop(task.id, None)
    return claims, double


def trial(path: Path, count: int, processes: int, seed: int) -> dict:
    dice = random.Random(seed)
    fill(path, count, dice)
    began = time.monotonic()
    running = {f"worker-{n}": start(path, f"worker-{n}") for n in range(processes)}
    victims = dice.sample(sorted(running), round(processes * KILLED_SHARE))
    killed = 0
    for name in victims:
        await_claim(path, name)
        time.sleep(dice.uniform(0, 2 * HOLD_SECONDS))
        if running[name].poll() is None:
            running[name].send_signal(signal.SIGKILL)
            running[name].wait()
            killed += 1
            TaskList(path).release(name)
    told = [running[name].communicate(timeout=WORK_SECONDS)[0].split() for name in running]
    claims, double = judged(path)
    finished = sum(task.status == "completed" for task in TaskList(path).tasks().values())
    by_word = Counter(id for words in told for id in words)
    again = {task.id for task in history(path) if task.status == "pending" and task.by in victims}
    return {
        "claims": claims,
        "double": double + sum(n > 1 and id not in again for id, n in by_word.items()),
        "tasks": count,
        "completed": finished,
        "processes": processes,
        "killed": killed,
        "seconds": round(time.monotonic() - began, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tasks", type=int, default=400)
    parser.add_argument("--processes", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--place", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.place, options.work)
        return
    with tempfile.TemporaryDirectory() as name:
        place = Path(name) / "tasks.jsonl"
        result = trial(place, options.tasks, options.processes, options.seed)
    if not options.json:
        print(f"{result['claims']} claims by {result['processes']} processes:")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
