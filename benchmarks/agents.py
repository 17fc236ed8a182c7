"""A hundred agents over a model that fails one call in five, while their parent is killed at random.

One process is the parent: it starts agents in the background, ten at a time, some with commands,
some in their own worktrees, and is informed when they end. Another process kills it with SIGKILL
repeatedly and resumes its session. A message lets interrupted agents continue. At the end the log
and the machine are checked: `undelivered` counts ends that were never reported to the parent's
model, `delivered_twice` those reported more than once, `orphans` the remaining processes,
worktrees, branches and locks, and agents without a final state. All faults of `chaos` are used
except the stall, which takes minutes to detect.

    python benchmarks/agents.py [--agents 100] [--kills 8] [--seed 1] [--json]
"""

import argparse
import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from filelock import lock_descriptor

from harness import FAULT_KINDS, ChaosModel, make_parser, print_result, temporary_home
from longhold.agent.build import build_agent
from longhold.agent.subagents.supervisor import AgentRegistry
from longhold.core.log import load
from longhold.core.log.entries import AnyEntry, Ended, Ran, Said, Spawned
from longhold.core.log.store import FileStore
from longhold.core.messages import JsonObject
from longhold.core.models.capabilities import Capabilities, capabilities
from longhold.core.models.protocol import Event, Request
from longhold.core.models.scripted import ScriptedModel

NAME = "claude-sonnet-5-5"
WAVE = 10
"""Agents started by one answer."""
FAILURES = 0.2
"""One call in five."""
LIFE_SECONDS = (2.5, 7.0)
"""How long the parent lives before it is killed, starting included."""
THINKING_SECONDS = 0.3
"""Per answer, so that a kill finds agents at every stage of their work."""
GRACE_SECONDS = 3.0
"""After a kill its commands' watcher ends what was left."""
TRIAL_SECONDS = 900
NOTICE = re.compile(r'<agent id="([\w-]+)"[^>]* state="(\w+)">')


class Brain:
    """Answers the parent by what it was told, an agent by its task."""

    name = NAME

    @property
    def capabilities(self) -> Capabilities:
        return capabilities(NAME)

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        """Give the answer that is due."""
        await asyncio.sleep(THINKING_SECONDS)
        messages = request.kwargs["messages"]
        script = _parents(messages) if _is_parent(messages) else _agents(messages)
        async for event in ScriptedModel(script, name=NAME).stream(request):
            yield event

    async def count(self, request: Request) -> int | None:
        return None

    async def close(self) -> None:
        """Nothing to let go of."""


def _texts(message: JsonObject) -> str:
    return "\n".join(part.get("text", "") for part in message["content"])


def _is_parent(messages: list[JsonObject]) -> bool:
    return any("wave " in _texts(one) for one in messages[:1])


def _parents(messages: list[JsonObject]) -> str:
    """Start what a wave asks for, let interrupted agents go on, or say that all is under way."""
    last = _texts(messages[-1])
    if asked := re.findall(r"^wave (\d+)$", last, re.MULTILINE):
        return "\n".join(_start(int(asked[-1]) * WAVE + n) for n in range(WAVE))
    states: dict[str, str] = {}
    for message in messages:
        states |= dict(NOTICE.findall(_texts(message)))
        for part in message["content"]:
            if part["type"] == "tool_use" and part["name"] == "SendMessage":
                states[part["input"]["to"]] = "asked"
    waiting = [id for id, state in states.items() if state == "interrupted"]
    lines = [
        f'tool: SendMessage {{"to": "{id}", "message": "go on", "summary": "go on with it"}}'
        for id in waiting
    ]
    return "\n".join(lines) or "text: Under way."


def _start(task: int) -> str:
    isolation = "worktree" if task % 4 == 3 else ""
    given = {
        "description": f"task {task}",
        "prompt": f"task {task}",
        "run_in_background": True,
        "isolation": isolation,
    }
    return f"tool: Agent {json.dumps(given)}"


def _agents(messages: list[JsonObject]) -> str:
    """Work on a task: think, run a command, read a file, read it in a worktree; then answer."""
    found = re.search(r"task (\d+)", _texts(messages[0]))
    task = int(found[1]) if found else 0
    if any(part["type"] == "tool_result" for one in messages for part in one["content"]):
        return f"text: result of task {task}"
    match task % 4:
        case 1:
            return f'tool: Bash {{"command": "sleep 1; echo {task}"}}'
        case 2 | 3:
            return 'tool: Read {"file_path": "add.py"}'
        case _:
            return f"text: result of task {task}"


async def work(place: Path, seed: int, agents: int) -> None:
    """Be the parent: go on with the session until enough agents have ended."""
    kinds = tuple(kind for kind in FAULT_KINDS if kind != "stalled")
    model = ChaosModel(Brain(), seed=seed, rate=FAILURES, kinds=kinds)
    store = FileStore()
    session = next((one.id for one in store.sessions()), "")
    parent = await build_agent(model, directory=place / "project", resume=session, mode="bypass")
    try:
        while True:
            history = parent.session.view.history
            started = {entry.agent for entry in history if isinstance(entry, Spawned)}
            waves = sum(isinstance(entry, Said) and not entry.hidden for entry in history)
            is_quiet = parent.engine.is_answered() and not parent.supervisor.lines()
            if len(started) >= agents and is_quiet:
                return
            async for _ in parent.work(f"wave {waves}" if is_quiet else ""):
                pass
    finally:
        await parent.close()


def supervise(place: Path, agents: int, kills: int, seed: int) -> int:
    """Run the parent and kill it at random moments; say how often that was."""
    dice = random.Random(seed)
    deadline = time.monotonic() + TRIAL_SECONDS
    killed = 0
    for life in range(10_000):
        words = [sys.executable, __file__, "--work", str(place), "--agents", str(agents)]
        child = subprocess.Popen([*words, "--seed", str(seed + life)], cwd=place)
        limit = dice.uniform(*LIFE_SECONDS) if killed < kills else deadline - time.monotonic()
        try:
            status = child.wait(timeout=max(limit, 0.1))
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.wait()
            killed += 1
            continue
        if status == 0:
            break
        if time.monotonic() > deadline:
            raise SystemExit("the trial took too long")
    return killed


def judge(place: Path) -> JsonObject:
    """Look at the log and at the machine."""
    [found] = FileStore().sessions()
    history = load(found.path).entries
    known = AgentRegistry().follow(history).known
    ends = [entry for entry in history if isinstance(entry, Ended)]
    told = _told(history)
    orphans = {
        "unfinished agents": sum(one.ended is None for one in known.values()),
        "interrupted agents": sum(one.state == "interrupted" for one in known.values()),
        "processes": len(list(_processes(place))),
        "worktrees": _worktrees(place / "project"),
        "held locks": sum(map(_is_held, place.rglob("*.lock"))),
    }
    return {
        "agents": len(known),
        "undelivered": sum(told[entry.n] == 0 for entry in ends),
        "delivered_twice": sum(told[entry.n] > 1 for entry in ends),
        "orphans": sum(orphans.values()),
        "left": {name: count for name, count in orphans.items() if count},
        "ends": dict(Counter(entry.state for entry in ends)),
        "states": dict(Counter(one.state for one in known.values())),
    }


def _told(history: list[AnyEntry]) -> Counter[int]:
    """Count for each end how often the parent's model was told of it."""
    told: Counter[int] = Counter()
    ended: dict[str, int] = {}
    calls: dict[str, str] = {}
    for entry in history:
        match entry:
            case Spawned(agent=agent, tool_use_id=call):
                calls |= {call: agent} if call else {}
                ended.pop(agent, None)
            case Ended(agent=agent, n=n):
                ended[agent] = n
            case Said(mail=mark) if mark.startswith("ended:"):
                told[int(mark.removeprefix("ended:"))] += 1
            case Ran(tool_use_id=call, is_error=False) if calls.get(call) in ended:
                told[ended[calls[call]]] += 1
    return told


def _processes(place: Path) -> Iterator[int]:
    """Find processes that were started in the trial and still live."""
    mark = f"LONGHOLD_HOME={place / 'home'}".encode()
    for entry in Path("/proc").glob("[0-9]*/environ"):
        pid = int(entry.parent.name)
        try:
            if pid != os.getpid() and mark in entry.read_bytes().split(b"\0"):
                yield pid
        except OSError:
            continue


def _worktrees(project: Path) -> int:
    """Count worktrees beside the project's own, and branches that agents left."""
    listed = _git(project, "worktree", "list", "--porcelain").count("worktree ")
    branches = len(_git(project, "branch", "--list", "longhold-*").split())
    return listed - 1 + branches


def _is_held(lock: Path) -> bool:
    descriptor = os.open(lock, os.O_RDWR)
    try:
        return not lock_descriptor(descriptor, blocking=False)
    finally:
        os.close(descriptor)


def _git(project: Path, *words: str) -> str:
    name = ("-c", "user.name=b", "-c", "user.email=b@b")
    done = subprocess.run(
        ["git", *name, *words], cwd=project, capture_output=True, text=True, check=True
    )
    return done.stdout


def trial(agents: int, kills: int, seed: int) -> JsonObject:
    """Run everything in a place of its own."""
    with temporary_home() as place:
        project = place / "project"
        project.mkdir()
        (project / "add.py").write_text("def add(a, b):\n    return a + b\n")
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
            _git(project, *words)
        began = time.monotonic()
        killed = supervise(place, agents, kills, seed)
        seconds = round(time.monotonic() - began, 1)
        time.sleep(GRACE_SECONDS)
        return judge(place) | {"kills": killed, "seconds": seconds}


def main() -> None:
    parser = make_parser(__doc__, agents=100, kills=8, seed=1)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        asyncio.run(work(given.work, given.seed, given.agents))
        return
    found = trial(given.agents, given.kills, given.seed)
    print_result(found, given.json)


if __name__ == "__main__":
    main()
