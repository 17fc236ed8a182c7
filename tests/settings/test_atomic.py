"""Replacing a file in one step."""

import os
import stat
import subprocess
import sys

import pytest

from holdfast.settings.atomic import MARK, Overtaken, replace_content

KILLS = 40
"""Enough to hit every step: a run of edits makes some hundred a second."""

DRIVER = """
import asyncio, os, random, signal, sys, time
from pathlib import Path
from holdfast.tools.standard import tool_named
from holdfast.tools.context import ToolContext

file = Path(sys.argv[1])
size = 200_000
old, new = "a" * size + chr(10), "b" * size + chr(10)

async def edit_for_ever():
    place = ToolContext(root=file.parent, home=file.parent, scratch=file.parent)
    read, edit = tool_named("Read"), tool_named("Edit")
    await read.run({"file_path": str(file)}, place)
    text, other = (old, new) if file.read_text() == old else (new, old)
    while True:
        done = await edit.run({"file_path": str(file), "old_string": text, "new_string": other}, place)
        assert not done.is_error, done.content
        text, other = other, text

changes, last = 0, old
file.write_text(old)
dice = random.Random(7)
for _ in range(int(sys.argv[2])):
    child = os.fork()
    if not child:
        asyncio.run(edit_for_ever())
        os._exit(1)
    time.sleep(dice.uniform(0.01, 0.06))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, status
    text = file.read_text()
    assert text in (old, new), f"torn: {len(text)} characters"
    changes += text != last
    last = text
print(changes)
"""


def test_an_edit_is_whole_wherever_it_is_killed(tmp_path):
    """A process that edits without pause is killed at random: the file is the old or the new one."""
    file = tmp_path / "file.txt"
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(file), str(KILLS)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0  # edits did happen between the kills


def test_what_a_killed_process_left_is_swept_by_the_next_edit(tmp_path):
    """Unfinished files of dead processes go; those of living ones stay."""
    file = tmp_path / "a[1].txt"
    file.write_text("old")
    gone = subprocess.run(["true"], check=True)
    assert gone.returncode == 0
    dead = tmp_path / f".a[1].txt{MARK}4194303-aa"
    alive = tmp_path / f".a[1].txt{MARK}{os.getpid()}-bb"
    dead.write_text("")
    alive.write_text("")
    replace_content(file, b"new", file.stat())
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([alive.name, file.name])


def test_the_mode_is_kept(tmp_path):
    """A script stays executable, a private file private."""
    file = tmp_path / "run.sh"
    file.write_text("old")
    file.chmod(0o750)
    replace_content(file, b"new", file.stat())
    assert stat.S_IMODE(file.stat().st_mode) == 0o750


def test_a_link_stays_a_link(tmp_path):
    """The file it names is replaced, in its own directory."""
    (tmp_path / "there").mkdir()
    real = tmp_path / "there" / "real"
    real.write_text("old")
    link = tmp_path / "link"
    link.symlink_to(real)
    replace_content(link, b"new", link.stat())
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_a_file_that_changed_in_between_is_not_overwritten(tmp_path):
    """Neither is one that appeared, and nothing is left beside it."""
    file = tmp_path / "a"
    file.write_text("old")
    before = file.stat()
    file.write_text("somebody else's")
    for expected in (before, None):
        with pytest.raises(Overtaken):
            replace_content(file, b"mine", expected)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert file.read_text() == "somebody else's"


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    """A full disk is found out before the old file is touched."""

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    file = tmp_path / "a"
    file.write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        replace_content(file, b"new", file.stat())
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert file.read_text() == "old"
