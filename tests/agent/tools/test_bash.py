"""Bash runs a command line and reports how it ended."""

import asyncio
import contextlib
import os
import sys

import pytest

from longhold.agent.tools.process import group_members
from longhold.agent.tools.shells import shells_of


def _groups(tool_context):
    return [running.group for running in shells_of(tool_context)._foreground]


async def test_output_comes_back(use):
    outcome = await use("Bash", command="echo out; echo err >&2")
    assert (outcome.content, outcome.is_error, outcome.exit_status) == ("out\nerr", False, 0)


async def test_a_failure_is_told_after_the_output(use):
    outcome = await use("Bash", command="echo before; exit 3")
    assert (outcome.content, outcome.is_error) == ("before\n[Exit status 3.]", True)
    assert outcome.exit_status == 3
    assert outcome.note == "echo before; exit 3: Exit status 3."


async def test_silence_is_told(said):
    assert await said("Bash", command="true") == "[It succeeded and printed nothing.]"


async def test_a_signal_is_named(use):
    outcome = await use("Bash", command="kill -SEGV $$")
    assert outcome.content.endswith("[Ended by SIGSEGV.]")
    assert outcome.exit_status == -11


async def test_a_syntax_error_is_a_failed_command(use):
    outcome = await use("Bash", command="if then")
    assert "syntax error" in outcome.content
    assert outcome.is_error


async def test_the_working_directory_lasts(tool_context, said):
    await said("Bash", command="mkdir -p \"it's a 'dir\"")
    moved = await said("Bash", command="cd it*; true")
    assert "The working directory is now" in moved
    assert await said("Bash", command='basename "$PWD"') == "it's a 'dir"
    (tool_context.directory / "a.txt").write_text("x")
    assert await said("Read", file_path="a.txt") == "     1\tx"


async def test_a_move_lasts_through_a_failing_exit(tool_context, use):
    await use("Bash", command="mkdir d; cd d; exit 1")
    assert tool_context.directory == tool_context.root / "d"


async def test_variables_do_not_last(said):
    await said("Bash", command="export X=1; f() { echo f; }")
    assert await said("Bash", command='echo "[$X]"; type f 2>/dev/null || echo none') == (
        "[]\nnone"
    )


async def test_a_move_out_of_the_working_directories_is_not_followed(tool_context, said):
    answer = await said("Bash", command="cd /; pwd")
    assert answer == (
        f"/\n[/ is outside the working directories; still in {tool_context.directory}.]"
    )
    assert tool_context.directory == tool_context.root


async def test_a_directory_that_is_gone_is_told(tool_context, said, refused):
    await said("Bash", command="mkdir d; cd d")
    (tool_context.root / "d").rmdir()
    assert "is gone" in await refused("Bash", command="pwd")
    assert await said("Bash", command="pwd") == str(tool_context.root)


async def test_a_command_that_asks_gets_nothing(use):
    async with asyncio.timeout(10):
        outcome = await use("Bash", command="read -p 'Sure? ' answer || echo no input; cat")
        assert outcome.content == "no input"
        tty = await use("Bash", command="head -1 < /dev/tty")
        assert tty.is_error


async def test_a_command_that_opens_an_editor_fails_at_once(use):
    command = "git init -q . && git -c user.name=x -c user.email=x commit --allow-empty"
    async with asyncio.timeout(20):
        outcome = await use("Bash", command=command)
    assert outcome.is_error


async def test_a_command_that_hangs_is_stopped(tool_context, use):
    groups: list[int] = []
    tool_context.report = lambda _line: groups.extend(_groups(tool_context))
    outcome = await use("Bash", command="echo begun; sleep 60 | sleep 60", timeout=1_200)
    assert outcome.is_error
    assert outcome.exit_status is None
    assert outcome.content.startswith("begun\n[Stopped after 1.2 s without an end.")
    assert groups
    assert not any(group_members(group) for group in groups)


async def test_a_command_that_ignores_being_asked_is_killed(tool_context, use, monkeypatch):
    monkeypatch.setattr("longhold.agent.tools.shells.GRACE_SECONDS", 0.2)
    groups: list[int] = []
    tool_context.report = lambda _line: groups.extend(_groups(tool_context))
    command = "trap '' TERM; (trap '' TERM; sleep 60) & while true; do sleep 0.1; done"
    outcome = await use("Bash", command=command, timeout=1_100)
    assert "Stopped after 1.1 s" in outcome.content
    assert groups
    assert not any(group_members(group) for group in groups)


async def test_cancelling_ends_the_whole_group(tool_context, use, until):
    running = asyncio.create_task(use("Bash", command="sleep 60 & sleep 60 | sleep 60"))
    await until(lambda: [g for g in _groups(tool_context) if len(group_members(g)) == 4])
    (group,) = _groups(tool_context)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert group_members(group) == ()
    assert _groups(tool_context) == []


async def test_cancelling_while_leftovers_are_waited_for_ends_them(tool_context, use, until):
    running = asyncio.create_task(use("Bash", command="sleep 60 & exit"))
    await until(lambda: [r for r in shells_of(tool_context)._foreground if r.status is not None])
    (group,) = _groups(tool_context)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):  # on a slow day it had just come to its end
        await running
    assert group_members(group) == ()


async def test_processes_left_behind_are_ended_and_told(tool_context, use):
    outcome = await use("Bash", command="sleep 60 & echo $!")
    pid, remark = outcome.content.split("\n")
    assert (
        remark
        == "[It left 1 process running, now ended; use run_in_background to keep such a process.]"
    )
    assert int(pid) > 0
    assert _groups(tool_context) == []


async def test_a_flood_comes_back_cut_with_a_file(tool_context, use):
    outcome = await use("Bash", command="seq 3000000")
    assert len(outcome.content) < 1_100_000
    assert outcome.content.startswith("1\n2\n")
    assert outcome.content.endswith("\n3000000")
    (file,) = tool_context.scratch.glob("output-*.txt")
    assert str(file) in outcome.content
    assert file.read_bytes().count(b"\n") == 3_000_000


async def test_bytes_that_are_no_text_do_no_harm(said):
    assert await said("Bash", command=r"printf 'a\xff\xfeb'") == "a\ufffd\ufffdb"


async def test_nothing_is_left_in_the_scratch_directory(tool_context, use):
    await use("Bash", command="cd .; true")
    await use("Bash", command="sleep 5", timeout=50)
    assert list(tool_context.scratch.iterdir()) == []


async def test_a_command_too_long_for_the_kernel_is_refused(refused):
    assert "Write it to a file" in await refused("Bash", command="echo " + "x" * 200_000)


async def test_the_timeout_has_a_ceiling(tool_context, use):
    from longhold.agent.tools.bash import MAX_TIMEOUT_SECONDS

    assert MAX_TIMEOUT_SECONDS == 600
    outcome = await use("Bash", command="echo quick", timeout=3_600_000)
    assert outcome.content == "quick"


async def test_commands_run_side_by_side(use):
    async with asyncio.timeout(10):
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.gather(*(use("Bash", command="sleep 0.5") for _ in range(6)))
        assert loop.time() - began < 2.5


async def test_the_secret_of_one_session_is_not_in_anothers_environment(tool_context, said):
    tool_context.variables = {"PATH": os.environ["PATH"], "ONLY": "this"}
    assert await said("Bash", command='echo "$ONLY-$HOME-$PAGER"') == "this--cat"


async def test_python_runs(said):
    assert await said("Bash", command=f"{sys.executable} -c 'print(6 * 7)'") == "42"


async def _news(use, id="shell-1", until="Exit status"):
    seen = ""
    async with asyncio.timeout(10):
        while until not in seen:
            seen += (await use("BashOutput", shell_id=id)).content + "\n"
            await asyncio.sleep(0.02)
    return seen


async def test_output_comes_piece_by_piece(tool_context, use, said):
    started = await said(
        "Bash", command="echo one; sleep 0.3; echo two; exit 4", run_in_background=True
    )
    assert "shell-1" in started
    seen = await _news(use)
    assert (seen.count("one"), seen.count("two")) == (1, 1)
    assert "Exit status 4.]" in seen
    assert await said("BashOutput", shell_id="shell-1") == "[Nothing new. Exit status 4.]"


async def test_it_is_ended_with_everything_it_started(tool_context, said):
    await said("Bash", command="sleep 60 & sleep 60", run_in_background=True)
    group = tool_context.shells.background["shell-1"].running.group
    assert group_members(group)
    assert await said("KillShell", shell_id="shell-1") == "Stopped shell-1: sleep 60 & sleep 60"
    assert group_members(group) == ()
    assert await said("BashOutput", shell_id="shell-1") == "[Nothing new. Stopped by KillShell.]"
    assert "already ended" in await said("KillShell", shell_id="shell-1")


async def test_an_unknown_id_is_told_with_the_known_ones(use, refused):
    assert "there are: none" in await refused("BashOutput", shell_id="x")
    await use("Bash", command="true", run_in_background=True)
    assert "there are: shell-1" in await refused("KillShell", shell_id="x")


async def test_closing_the_workplace_ends_all(tool_context, said):
    for _ in range(3):
        await said("Bash", command="trap '' TERM; sleep 60", run_in_background=True)
    groups = [shell.running.group for shell in tool_context.shells.background.values()]
    await tool_context.close()
    assert not any(group_members(group) for group in groups)


async def test_it_does_not_move_the_working_directory(tool_context, use, said):
    await said("Bash", command="mkdir d; cd d", run_in_background=True)
    await _news(use)
    assert tool_context.directory == tool_context.root


async def test_much_output_is_cut_and_its_file_named(tool_context, use, said):
    await said("Bash", command="seq 400000", run_in_background=True)
    await tool_context.shells.background["shell-1"].ending
    seen = await said("BashOutput", shell_id="shell-1")
    assert "bytes before this are in" in seen
    assert len(seen) < 1_100_000
    assert "\n400000\n" in seen
