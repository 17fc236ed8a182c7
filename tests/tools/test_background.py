"""Commands in the background are looked at and ended."""

import asyncio

from holdfast.tools.process import group_members


async def _news(use, id="shell-1", until="Exit status"):
    seen = ""
    async with asyncio.timeout(10):
        while until not in seen:
            seen += (await use("BashOutput", shell_id=id)).content + "\n"
            await asyncio.sleep(0.02)
    return seen


async def test_output_comes_piece_by_piece(tool_context, use, said):
    """Each piece once, and the status at the end."""
    started = await said(
        "Bash", command="echo one; sleep 0.3; echo two; exit 4", run_in_background=True
    )
    assert "shell-1" in started
    seen = await _news(use)
    assert (seen.count("one"), seen.count("two")) == (1, 1)
    assert "[Exit status 4.]" in seen
    assert await said("BashOutput", shell_id="shell-1") == "[Nothing new. Exit status 4.]"


async def test_it_is_ended_with_everything_it_started(tool_context, said):
    """And says so afterwards."""
    await said("Bash", command="sleep 60 & sleep 60", run_in_background=True)
    group = tool_context.shells.background["shell-1"].running.group
    assert group_members(group)
    assert await said("KillShell", shell_id="shell-1") == "Stopped shell-1: sleep 60 & sleep 60"
    assert group_members(group) == ()
    assert await said("BashOutput", shell_id="shell-1") == "[Nothing new. Stopped by KillShell.]"
    assert "already ended" in await said("KillShell", shell_id="shell-1")


async def test_an_unknown_id_is_told_with_the_known_ones(use, refused):
    """Nothing is guessed."""
    assert "there are: none" in await refused("BashOutput", shell_id="x")
    await use("Bash", command="true", run_in_background=True)
    assert "there are: shell-1" in await refused("KillShell", shell_id="x")


async def test_closing_the_workplace_ends_all(tool_context, said):
    """A session leaves nothing running."""
    for _ in range(3):
        await said("Bash", command="trap '' TERM; sleep 60", run_in_background=True)
    groups = [shell.running.group for shell in tool_context.shells.background.values()]
    await tool_context.close()
    assert not any(group_members(group) for group in groups)


async def test_it_does_not_move_the_working_directory(tool_context, use, said):
    """Where it ends up is its own affair."""
    await said("Bash", command="mkdir d; cd d", run_in_background=True)
    await _news(use)
    assert tool_context.directory == tool_context.root


async def test_much_output_is_cut_and_its_file_named(tool_context, use, said):
    """One look brings a bounded piece."""
    await said("Bash", command="seq 400000", run_in_background=True)
    await tool_context.shells.background["shell-1"].ending
    seen = await said("BashOutput", shell_id="shell-1")
    assert "bytes before this are in" in seen
    assert len(seen) < 1_100_000
    assert "\n400000\n" in seen
