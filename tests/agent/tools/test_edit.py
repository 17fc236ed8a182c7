"""Edit changes only the named text."""

import os
import stat

import pytest


@pytest.fixture
def file(tool_context):
    """A file that was read."""
    return tool_context.root / "a.py"


async def _known(file, said, content=b"one = 1\ntwo = 2\nthree = 1\n"):
    file.write_bytes(content)
    await said("Read", file_path=str(file))


async def test_one_place_is_replaced(file, said):
    await _known(file, said)
    answer = await said("Edit", file_path="a.py", old_string="two = 2", new_string="two = 2\n# b")
    assert answer == "Edited a.py: line 2."
    assert file.read_text() == "one = 1\ntwo = 2\n# b\nthree = 1\n"


async def test_every_place_is_replaced_when_asked(file, said):
    await _known(file, said)
    answer = await said(
        "Edit", file_path="a.py", old_string="= 1", new_string="= 9", replace_all=True
    )
    assert answer == "Edited a.py: 2 places, the first in line 1."
    assert file.read_text() == "one = 9\ntwo = 2\nthree = 9\n"


async def test_several_places_are_refused_with_their_lines(file, said, refused):
    await _known(file, said)
    reason = await refused("Edit", file_path="a.py", old_string="= 1", new_string="= 9")
    assert "2 times (lines 1, 3)" in reason
    assert file.read_text() == "one = 1\ntwo = 2\nthree = 1\n"


async def test_a_text_that_is_not_there_is_told_with_what_is(file, said, refused):
    await _known(file, said, b"def f():\n    return 1\n")
    indent = await refused("Edit", file_path="a.py", old_string="\treturn 1", new_string="x")
    assert "is line 2" in indent
    numbers = await refused("Edit", file_path="a.py", old_string="     1\tdef f", new_string="x")
    assert "Leave out the line numbers" in numbers
    other = await refused("Edit", file_path="a.py", old_string="nowhere", new_string="x")
    assert "copy it exactly" in other


async def test_a_file_must_have_been_read(file, refused):
    file.write_text("one")
    reason = await refused("Edit", file_path="a.py", old_string="one", new_string="two")
    assert "has not been read" in reason


async def test_a_file_changed_behind_our_back_is_noticed(file, said, refused):
    await _known(file, said, b"one")
    before = file.stat()
    file.write_text("0ne")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    reason = await refused("Edit", file_path="a.py", old_string="ne", new_string="x")
    assert "has changed since" in reason
    await said("Read", file_path="a.py")
    await said("Edit", file_path="a.py", old_string="ne", new_string="x")


async def test_a_touched_file_is_still_the_same(file, said):
    await _known(file, said)
    os.utime(file, ns=(1, 1))
    await said("Edit", file_path="a.py", old_string="two", new_string="2")


async def test_one_edit_after_the_other_needs_no_reading_between(file, said):
    await _known(file, said)
    await said("Edit", file_path="a.py", old_string="one", new_string="1")
    await said("Edit", file_path="a.py", old_string="two", new_string="2")
    assert file.read_text() == "1 = 1\n2 = 2\nthree = 1\n"


async def test_a_commands_change_is_noticed(file, said, refused):
    await _known(file, said)
    await said("Bash", command="sed -i s/one/uno/ a.py")
    assert "has changed" in await refused(
        "Edit", file_path="a.py", old_string="two", new_string="2"
    )


async def test_line_ends_mark_mode_and_missing_final_newline_are_kept(file, said):
    await _known(file, said, b"\xef\xbb\xbfone\r\ntwo\r\nthree")
    file.chmod(0o751)
    await said("Edit", file_path="a.py", old_string="one\ntwo", new_string="1\n2\n2b")
    assert file.read_bytes() == b"\xef\xbb\xbf1\r\n2\r\n2b\r\nthree"
    assert stat.S_IMODE(file.stat().st_mode) == 0o751


async def test_a_link_stays_a_link(tool_context, file, said):
    await _known(file, said)
    (tool_context.root / "link").symlink_to(file)
    await said("Edit", file_path="link", old_string="two", new_string="2")
    assert (tool_context.root / "link").is_symlink()
    assert "2 = 2" in file.read_text()


async def test_a_character_the_encoding_lacks_is_refused(file, said, refused):
    await _known(file, said, b"caf\xe9\n")
    reason = await refused("Edit", file_path="a.py", old_string="é", new_string="€")
    assert "cannot be written in latin-1" in reason
    assert file.read_bytes() == b"caf\xe9\n"


async def test_an_empty_old_text_makes_a_new_file_only(tool_context, file, said, refused):
    await said("Edit", file_path="new/b.py", old_string="", new_string="x = 1\n")
    assert (tool_context.root / "new" / "b.py").read_text() == "x = 1\n"
    await _known(file, said)
    assert "is not empty" in await refused("Edit", file_path="a.py", old_string="", new_string="x")


async def test_what_cannot_be_edited_is_told(tool_context, file, said, refused):
    (tool_context.root / "x.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1")
    await said("Read", file_path="x.png")
    await _known(file, said)
    edit = {"old_string": "a", "new_string": "b"}
    assert "does not exist" in await refused("Edit", edit, file_path="nowhere.py")
    assert "binary file" in await refused("Edit", edit, file_path="x.png")
    assert "is a directory" in await refused("Edit", edit, file_path=".")
    same = {"old_string": "a", "new_string": "a"}
    assert "nothing to do" in await refused("Edit", same, file_path="a.py")


async def test_a_new_file_is_made_with_its_directories(tool_context, said):
    assert await said("Write", file_path="x/y/a.txt", content="one\ntwo") == (
        "Created x/y/a.txt (2 lines)."
    )
    assert (tool_context.root / "x/y/a.txt").read_bytes() == b"one\ntwo"


async def test_an_existing_file_must_have_been_read(tool_context, said, refused):
    file = tool_context.root / "a.sh"
    file.write_bytes(b"one\r\ntwo\r\n")
    file.chmod(0o755)
    assert "has not been read" in await refused("Write", file_path="a.sh", content="x")
    await said("Read", file_path="a.sh")
    await said("Write", file_path="a.sh", content="uno\ndos")
    assert file.read_bytes() == b"uno\r\ndos\r\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o755


async def test_a_file_changed_behind_our_back_is_not_overwritten(tool_context, said, refused):
    file = tool_context.root / "a.txt"
    file.write_text("one")
    await said("Read", file_path="a.txt")
    file.write_text("somebody else's")
    assert "has changed since" in await refused("Write", file_path="a.txt", content="mine")
    assert file.read_text() == "somebody else's"


async def test_a_file_we_wrote_may_be_written_again(tool_context, said):
    await said("Write", file_path="a.txt", content="one\n")
    await said("Write", file_path="a.txt", content="two\n")
    assert (tool_context.root / "a.txt").read_text() == "two\n"


async def test_an_empty_file_needs_no_reading(tool_context, said):
    (tool_context.root / "a.txt").write_text("")
    await said("Write", file_path="a.txt", content="one\n")


async def test_a_directory_and_a_pipe_are_refused(tool_context, refused):
    os.mkfifo(tool_context.root / "pipe")
    assert "is a directory" in await refused("Write", file_path=".", content="x")
    assert "no regular file" in await refused("Write", file_path="pipe", content="x")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_directory_without_permission_is_told(tool_context, refused):
    (tool_context.root / "d").mkdir(mode=0o500)
    assert "permission denied" in await refused("Write", file_path="d/a", content="x")
