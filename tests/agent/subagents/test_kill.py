"""The parent is killed with SIGKILL while agents work: no report is lost or repeated."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from casting import entries, hidden, told
from longhold.core.log.entries import Ended, Spawned

pytestmark = pytest.mark.slow

PARENT = """
import asyncio, sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
import pytest
from casting import Cast
from longhold.agent.build import build_agent

SCRIPTS = {
    "start now": 'tool: Agent {"description": "d", "prompt": "find add", "run_in_background": true}\\n'
    'tool: Agent {"description": "d", "prompt": "run it", "run_in_background": true, '
    '"isolation": "worktree"}\\n---\\ntext: started',
    "find add": "text: add subtracts",
    "run it": 'tool: Bash {"command": "sleep 300"}',
}

async def main():
    cast = Cast(SCRIPTS)
    held = cast.hold("find add")
    agent = await build_agent(cast, directory=Path(sys.argv[1]), mode="bypass")
    async for _ in agent.run("start now"):
        pass
    held.set()
    while len(agent.supervisor.running) > 1:
        await asyncio.sleep(0.01)
    while not any("began" in line for line in open(agent.supervisor.log_of(*agent.supervisor.running).directory.with_suffix(".jsonl"))):
        await asyncio.sleep(0.01)
    print(agent.session.id, flush=True)
    await asyncio.sleep(300)

asyncio.run(main())
"""


def _sleepers(home: str) -> list[int]:
    """Find the commands that the killed parent's agents had started."""
    mark = f"LONGHOLD_HOME={home}".encode()
    found = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in file.read_bytes().split(b"\0") and int(file.parent.name) != os.getpid():
                found.append(int(file.parent.name))
        except OSError:
            continue
    return found


@pytest.fixture
def killed(project):
    """The id of a session whose process was killed while agents worked; its commands are gone."""
    here = str(Path(__file__).parents[2] / "support")
    words = [sys.executable, "-c", PARENT, str(project), here]
    parent = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    session = parent.stdout.readline().strip()
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    deadline = time.monotonic() + 10
    while _sleepers(os.environ["LONGHOLD_HOME"]) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _sleepers(os.environ["LONGHOLD_HOME"]) == []
    return session


async def test_a_killed_parent_loses_no_agent(opened, project, killed):
    scripts = {"what now": "text: I see", "and now": "text: nothing new"}
    async with opened(scripts, resume=killed, mode="bypass") as agent:
        first, second = (entry.agent for entry in entries(agent, Spawned))
        states = {entry.agent: entry.state for entry in entries(agent, Ended)}
        assert states == {first: "completed", second: "interrupted"}
        assert len(agent.supervisor.lines()) == 2
        await told(agent, "what now")
        await told(agent, "and now")
        assert sum("| add subtracts" in text for text in hidden(agent)) == 1
        assert sum('state="interrupted"' in text for text in hidden(agent)) == 1
        assert [place.name for place in (project / ".git" / "worktrees").glob("*")] == []
