"""Programs that run to completion."""

import asyncio
import os

import pytest

from casting import until
from longhold.agent.tools.process import group_members, run


async def _run(script, **options):
    options = {"timeout_seconds": 20, "variables": os.environ} | options
    return await run(("/bin/sh", "-c", script), **options)


async def test_input_output_and_status(tmp_path):
    ended = await _run(
        "cat; pwd; echo $X >&2; exit 3", cwd=tmp_path, given=b"in\n", variables={"X": "y"}
    )
    assert (ended.status, ended.stderr, ended.is_timed_out) == (3, b"y\n", False)
    assert ended.stdout == f"in\n{tmp_path}\n".encode()


async def test_output_over_the_limit_is_dropped_and_blocks_nothing(tmp_path):
    ended = await _run("head -c 3000000 /dev/zero; echo done >&2", cwd=tmp_path, output_bytes=10)
    assert (ended.status, len(ended.stdout), ended.stderr) == (0, 10, b"done\n")


async def test_a_program_ends_with_its_time(tmp_path):
    ended = await _run("echo $$; sleep 60 & sleep 60", cwd=tmp_path, timeout_seconds=0.5)
    assert ended.is_timed_out
    assert ended.status < 0
    # A killed process is listed until the kernel has ended it.
    await until(lambda: group_members(int(ended.stdout)) == ())


def test_it_runs_where_there_is_no_loop(tmp_path):
    assert asyncio.run(_run("echo x", cwd=tmp_path)).stdout == b"x\n"


async def test_what_cannot_be_started_raises(tmp_path):
    with pytest.raises(OSError, match="nowhere"):
        await run(("/nowhere",), cwd=tmp_path, variables={}, timeout_seconds=1)
