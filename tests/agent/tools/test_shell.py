"""Processes run in their own group, end with their children, and keep their output."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.agent.tools.process import group_members
from longhold.agent.tools.shells import Capture, CaptureLimits, Launch, shell_arguments, start

STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.fork()
print("ready", flush=True)
time.sleep(60)
"""
"""Three processes that ignore being asked to end."""


def _launch(tmp_path, *arguments, **more):
    return Launch(
        arguments=arguments,
        directory=tmp_path,
        variables=dict(os.environ),
        output=tmp_path / "output",
        **more,
    )


def _open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


def _bash(tmp_path, command, **more):
    return _launch(tmp_path, *shell_arguments(None), given=command, **more)


async def test_output_and_status_come_back(tmp_path):
    running = await start(_bash(tmp_path, "echo one; echo two >&2; exit 7"))
    assert await running.wait(10)
    await running.finish()
    assert (running.status, running.capture.text(), running.left_over) == (7, "one\ntwo\n", 0)


async def test_those_who_ignore_being_asked_are_killed(tmp_path, monkeypatch, until):
    monkeypatch.setattr("longhold.agent.tools.shells.GRACE_SECONDS", 0.2)
    running = await start(_launch(tmp_path, sys.executable, "-c", STUBBORN))
    await until(lambda: running.capture.text().count("ready") == 3)
    assert len(group_members(running.group)) == 3
    await running.stop()
    assert group_members(running.group) == ()
    assert running.status == -signal.SIGKILL


async def test_what_outlives_the_command_is_ended(tmp_path):
    running = await start(_bash(tmp_path, "sleep 60 & sleep 60 & echo started"))
    assert await running.wait(10)
    await running.finish()
    assert running.left_over == 2
    assert group_members(running.group) == ()
    assert running.capture.text() == "started\n"


async def test_the_end_of_a_pipe_is_waited_for(tmp_path):
    running = await start(_bash(tmp_path, "echo text > >(sleep 0.1; cat)"))
    assert await running.wait(10)
    await running.finish()
    assert (running.left_over, running.capture.text()) == (0, "text\n")


async def test_a_cancelled_stop_still_kills(tmp_path, until):
    running = await start(_launch(tmp_path, sys.executable, "-c", STUBBORN))
    await until(lambda: running.capture.text().count("ready") == 3)
    stopping = asyncio.create_task(running.stop())
    await asyncio.sleep(0.05)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    await until(lambda: group_members(running.group) == ())
    await running.stop()


async def test_a_flood_is_stopped_in_bounded_memory(tmp_path):
    limits = CaptureLimits(head_bytes=1_000, tail_bytes=1_000, file_bytes=10_000)
    launch = _bash(tmp_path, "yes", limits=limits, flood_bytes=50_000_000)
    running = await start(launch)
    assert await running.wait(30)
    await running.finish()
    assert running.is_flood
    assert running.capture.total_bytes > 50_000_000
    assert len(running.capture.text()) < 2_200
    assert (tmp_path / "output").stat().st_size == 10_000
    assert group_members(running.group) == ()


async def test_a_fork_bomb_of_moderate_size_ends(tmp_path, until):
    command = "f() { if [ $1 -gt 0 ]; then f $(($1-1)) & f $(($1-1)) & fi; sleep 60; }; f 5"
    running = await start(_bash(tmp_path, command))
    await until(lambda: len(group_members(running.group)) > 20)
    await running.stop()
    assert group_members(running.group) == ()


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files cannot be counted")
async def test_a_missing_program_raises_and_leaves_no_pipe(tmp_path):
    before = _open_files()
    with pytest.raises(FileNotFoundError):
        await start(_launch(tmp_path, "/nowhere/at/all"))
    assert _open_files() == before


SMALL = CaptureLimits(head_bytes=10, tail_bytes=10, file_bytes=50)


def test_short_output_stays_in_memory_alone(tmp_path):
    capture = Capture(tmp_path / "x" / "out", limits=SMALL)
    capture.feed(b"hello ")
    capture.feed(b"world")
    capture.close()
    assert capture.text() == "hello world"
    assert not (tmp_path / "x").exists()


def test_of_long_output_head_and_tail_are_kept_and_the_file_named(tmp_path):
    capture = Capture(tmp_path / "out", limits=SMALL)
    for n in range(4):
        capture.feed(f"{n}23456789|".encode())
    capture.close()
    assert capture.text() == (
        f"023456789|\n[20 bytes left out here; everything is in {tmp_path / 'out'}]\n323456789|"
    )
    assert (tmp_path / "out").read_bytes() == b"023456789|123456789|223456789|323456789|"


def test_the_file_has_a_limit_and_the_text_says_so(tmp_path):
    capture = Capture(tmp_path / "out", limits=SMALL)
    capture.feed(b"x" * 1_000)
    capture.close()
    assert "the first 50 bytes are in" in capture.text()
    assert (tmp_path / "out").stat().st_size == 50
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o600


@given(st.lists(st.binary(max_size=30), max_size=20))
def test_however_it_arrives_head_tail_and_file_agree(tmp_path_factory, pieces):
    file = tmp_path_factory.mktemp("out") / "out"
    capture = Capture(file, limits=SMALL)
    for piece in pieces:
        capture.feed(piece)
    capture.close()
    whole = b"".join(pieces)
    assert capture.total_bytes == len(whole)
    if len(whole) <= 20:
        assert capture.text() == whole.decode("utf-8", "replace")
        assert not file.exists()
    else:
        assert capture.text().startswith(whole[:10].decode("utf-8", "replace"))
        assert capture.text().endswith(whole[-10:].decode("utf-8", "replace"))
        assert file.read_bytes() == whole[:50]


def test_the_last_line_is_what_a_progress_bar_shows_now(tmp_path):
    capture = Capture(tmp_path / "out")
    capture.feed(b"building\n 10 %\r 20 %\n")
    assert capture.last_line() == " 20 %"
