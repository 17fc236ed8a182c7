"""Commands end with the agent, however the agent ends."""

import signal
import subprocess
import sys

import pytest

from longhold.agent.tools.process import group_members
from longhold.agent.tools.shells import Lifeline

AGENT = """
import asyncio, sys
from pathlib import Path
from longhold.agent.tools.bash import BASH
from longhold.core.tools.context import ToolContext

async def main(here):
    place = ToolContext(root=here, home=here, scratch=here)
    run = BASH.run
    await run({"command": "true"}, place)
    await run({"command": "trap '' TERM; sleep 60 & sleep 60", "run_in_background": True}, place)
    shell = place.shells.background["shell-1"]
    print(shell.running.group, flush=True)
    await run({"command": "sleep 60"}, place)

asyncio.run(main(Path(sys.argv[1])))
"""


def _sleeper() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sleep", "60"], start_new_session=True)


def _killed_agent(directory) -> int:
    """Let an agent start a stubborn command, kill it, and give the command's group."""
    arguments = [sys.executable, "-c", AGENT, str(directory)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as agent:
        assert agent.stdout is not None
        group = int(agent.stdout.readline())
        assert group_members(group)
        agent.send_signal(signal.SIGKILL)
    return group


async def test_commands_end_when_the_agent_is_killed(tmp_path, until):
    group = _killed_agent(tmp_path)
    await until(lambda: not group_members(group))


def test_closing_kills_what_is_held_and_spares_what_was_released():
    lifeline = Lifeline()
    held, released, other = _sleeper(), _sleeper(), _sleeper()
    try:
        for process in (released, held, other):
            lifeline.hold(process.pid)
        lifeline.release(released.pid)
        lifeline.close()
        assert held.wait(5) == other.wait(5) == -signal.SIGKILL
        assert released.poll() is None
    finally:
        for process in (held, released, other):
            process.kill()
            process.wait()


def test_forgetting_to_close_leaves_no_watcher():
    lifeline = Lifeline()
    process = _sleeper()
    lifeline.hold(process.pid)
    del lifeline
    assert process.wait(5) == -signal.SIGKILL


@pytest.mark.parametrize("times", [1, 2])
def test_closing_is_harmless_without_commands_and_twice(times):
    lifeline = Lifeline()
    for _ in range(times):
        lifeline.close()
