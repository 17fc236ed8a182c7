"""Hooks as real processes: their input, how they are awaited, and cleanup."""

import asyncio
import json
import os
import time

import pytest

from casting import until
from longhold.agent.hooks import Hook, HookContext, Hooks
from programs import is_running


@pytest.fixture
def scene(tmp_path):
    """Give the scene hooks play in."""
    return HookContext(
        session="s1",
        transcript=tmp_path / "s1.jsonl",
        cwd=tmp_path,
        mode="accept_edits",
        scratch=tmp_path / "scratch",
    )


def hooks(*commands, event="PreToolUse", **fields):
    """Make hooks for one event."""
    return Hooks(hooks=tuple(Hook(event=event, command=c, **fields) for c in commands))


async def gone(pid):
    """Wait until a process is gone."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(watched, ended.set)
    try:
        return await asyncio.wait_for(ended.wait(), 5)
    finally:
        asyncio.get_running_loop().remove_reader(watched)
        os.close(watched)


async def test_a_hook_reads_the_event_on_its_input(scene, tmp_path):
    await hooks("cat > seen.json").fire(
        "PreToolUse", {"tool_name": "Bash", "tool_input": {"command": "ls"}}, scene
    )
    assert json.loads((tmp_path / "seen.json").read_text()) == {
        "session_id": "s1",
        "transcript_path": str(tmp_path / "s1.jsonl"),
        "cwd": str(tmp_path),
        "permission_mode": "acceptEdits",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "ls"},
    }


async def test_a_hook_blocks_with_status_two(scene):
    verdict = await hooks("echo not here >&2; exit 2").fire("PreToolUse", {}, scene)
    assert (verdict.permission, verdict.reason) == ("deny", "not here")


async def test_matching_hooks_run_side_by_side(scene):
    one = "touch a; while [ ! -e b ]; do sleep 0.01; done; echo one"
    two = "touch b; while [ ! -e a ]; do sleep 0.01; done; echo two"
    verdict = await hooks(one, two, event="SessionStart", timeout_seconds=10).fire(
        "SessionStart", {"source": "startup"}, scene
    )
    assert verdict.context == ("one", "two")


async def test_identical_hooks_run_once(scene, tmp_path):
    await hooks("echo x >> lines", "echo x >> lines").fire("PreToolUse", {}, scene)
    assert (tmp_path / "lines").read_text() == "x\n"


async def test_a_hook_that_runs_once_does_so(scene, tmp_path):
    some = hooks("echo x >> lines", is_once=True)
    await some.fire("PreToolUse", {}, scene)
    await some.fire("PreToolUse", {}, scene)
    assert (tmp_path / "lines").read_text() == "x\n"


async def test_a_hook_with_arguments_has_no_shell_between(scene):
    verdict = await hooks("echo", event="SessionStart", arguments=("$HOME;", "a b")).fire(
        "SessionStart", {"source": "startup"}, scene
    )
    assert verdict.context == ("$HOME; a b",)


async def test_a_hook_that_takes_too_long_is_ended_with_its_children(scene, tmp_path):
    command = "trap '' TERM; sleep 60 & echo $! > child; echo $$ > self; wait; sleep 60"
    begun = time.monotonic()
    verdict = await hooks(command, timeout_seconds=0.5).fire("PreToolUse", {}, scene)
    assert time.monotonic() - begun < 10
    assert "0.5 s" in verdict.errors[0]
    assert verdict.permission is None
    for name in ("self", "child"):
        assert await gone(int((tmp_path / name).read_text()))


async def test_children_a_hook_leaves_behind_are_ended(scene, tmp_path):
    begun = time.monotonic()
    await hooks("sleep 60 & echo $! > child").fire("PreToolUse", {}, scene)
    assert time.monotonic() - begun < 10
    assert await gone(int((tmp_path / "child").read_text()))


async def test_a_daemon_that_holds_the_output_does_not_hang_the_session(scene, tmp_path):
    begun = time.monotonic()
    await hooks("setsid sleep 20 & echo $! > child; sleep 0.1").fire("PreToolUse", {}, scene)
    assert time.monotonic() - begun < 10
    pid = int((tmp_path / "child").read_text())
    if is_running(pid):
        os.kill(pid, 9)


async def test_a_cancelled_event_leaves_nothing_running(scene, tmp_path):
    task = asyncio.ensure_future(hooks("echo $$ > self; sleep 60").fire("PreToolUse", {}, scene))
    await until(lambda: (tmp_path / "self").exists() and (tmp_path / "self").read_text())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await gone(int((tmp_path / "self").read_text()))


async def test_a_hook_that_reads_nothing_is_no_error(scene):
    verdict = await hooks("true").fire("PreToolUse", {"tool_input": {"x": "y" * 500_000}}, scene)
    assert verdict.errors == ()


async def test_a_flood_of_output_is_bounded(scene):
    verdict = await hooks("yes", timeout_seconds=0.5).fire("PreToolUse", {}, scene)
    assert "0.5 s" in verdict.errors[0]


async def test_a_long_text_goes_to_a_file(scene):
    command = "head -c 20000 /dev/zero | tr '\\0' x"
    verdict = await hooks(command, event="SessionStart").fire(
        "SessionStart", {"source": "startup"}, scene
    )
    (file,) = scene.scratch.iterdir()
    assert file.read_text() == "x" * 20_000
    assert str(file) in verdict.context[0]
    assert len(verdict.context[0]) < 3_000
    assert file.stat().st_mode & 0o777 == 0o600


async def test_a_hook_that_cannot_start_is_an_error(scene):
    verdict = await hooks("/no/such/program", arguments=("x",)).fire("PreToolUse", {}, scene)
    assert "could not be started" in verdict.errors[0]


async def test_the_end_of_a_session_waits_a_moment_only(scene):
    begun = time.monotonic()
    verdict = await hooks("sleep 30", "sleep 31", event="SessionEnd").fire(
        "SessionEnd", {"reason": "other"}, scene
    )
    assert time.monotonic() - begun < 5
    assert len(verdict.errors) == 2
    assert "1.5 s" in verdict.errors[0]


async def test_hooks_know_the_projects_directory(scene, tmp_path):
    verdict = await hooks('echo "$LONGHOLD_PROJECT_DIR"', event="SessionStart").fire(
        "SessionStart", {"source": "startup"}, scene
    )
    assert verdict.context == (str(tmp_path),)
