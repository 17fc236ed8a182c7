"""Write gives a file its whole content."""

import os
import stat

import pytest


async def test_a_new_file_is_made_with_its_directories(tool_context, said):
    """As given, to the byte."""
    assert await said("Write", file_path="x/y/a.txt", content="one\ntwo") == (
        "Created x/y/a.txt (2 lines)."
    )
    assert (tool_context.root / "x/y/a.txt").read_bytes() == b"one\ntwo"


async def test_an_existing_file_must_have_been_read(tool_context, said, refused):
    """Then it is replaced, and keeps its line ends, final newline and mode."""
    file = tool_context.root / "a.sh"
    file.write_bytes(b"one\r\ntwo\r\n")
    file.chmod(0o755)
    assert "has not been read" in await refused("Write", file_path="a.sh", content="x")
    await said("Read", file_path="a.sh")
    await said("Write", file_path="a.sh", content="uno\ndos")
    assert file.read_bytes() == b"uno\r\ndos\r\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o755


async def test_a_file_changed_behind_our_back_is_not_overwritten(tool_context, said, refused):
    """Somebody else's work is not lost."""
    file = tool_context.root / "a.txt"
    file.write_text("one")
    await said("Read", file_path="a.txt")
    file.write_text("somebody else's")
    assert "has changed since" in await refused("Write", file_path="a.txt", content="mine")
    assert file.read_text() == "somebody else's"


async def test_a_file_we_wrote_may_be_written_again(tool_context, said):
    """What we wrote we know."""
    await said("Write", file_path="a.txt", content="one\n")
    await said("Write", file_path="a.txt", content="two\n")
    assert (tool_context.root / "a.txt").read_text() == "two\n"


async def test_an_empty_file_needs_no_reading(tool_context, said):
    """It holds nothing that could be lost."""
    (tool_context.root / "a.txt").write_text("")
    await said("Write", file_path="a.txt", content="one\n")


async def test_a_directory_and_a_pipe_are_refused(tool_context, refused):
    """Only files have content."""
    os.mkfifo(tool_context.root / "pipe")
    assert "is a directory" in await refused("Write", file_path=".", content="x")
    assert "no regular file" in await refused("Write", file_path="pipe", content="x")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_directory_without_permission_is_told(tool_context, refused):
    """With the system's own reason."""
    (tool_context.root / "d").mkdir(mode=0o500)
    assert "permission denied" in await refused("Write", file_path="d/a", content="x")
