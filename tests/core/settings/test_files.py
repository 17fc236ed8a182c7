"""Files written whole or not at all, and private files and directories."""

import os
import resource
import stat
import subprocess
import sys

import pytest

from longhold.core.log import outbox
from longhold.core.log.entries import Failed
from longhold.core.memory.store import MemoryStore
from longhold.core.settings.private_files import (
    MARK,
    PARTIAL,
    Overtaken,
    private_directory,
    replace_content,
    write_private,
)
from longhold.errors import StoreError

KILLS = 40
"""Enough to hit every step: a run of edits makes some hundred a second."""

DRIVER = """
import asyncio, os, random, signal, sys, time
from pathlib import Path
from longhold.agent.tools.edit import EDIT
from longhold.agent.tools.read import READ
from longhold.core.tools.context import ToolContext

file = Path(sys.argv[1])
size = 200_000
old, new = "a" * size + chr(10), "b" * size + chr(10)

async def edit_for_ever(done_edits):
    place = ToolContext(root=file.parent, home=file.parent, scratch=file.parent)
    read, edit = READ, EDIT
    await read.run({"file_path": str(file)}, place)
    text, other = (old, new) if file.read_text() == old else (new, old)
    while True:
        done = await edit.run({"file_path": str(file), "old_string": text, "new_string": other}, place)
        assert not done.is_error, done.content
        os.write(done_edits, b"1")
        text, other = other, text

edits = 0
file.write_text(old)
dice = random.Random(7)
for _ in range(int(sys.argv[2])):
    told, tell = os.pipe()
    child = os.fork()
    if not child:
        asyncio.run(edit_for_ever(tell))
        os._exit(1)
    os.close(tell)
    for _ in range(dice.randrange(1, 4)):
        assert os.read(told, 1), "the editor ended"
        edits += 1
    time.sleep(dice.uniform(0, 0.005))  # anywhere within the next edit
    os.kill(child, signal.SIGKILL)
    os.close(told)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, status
    text = file.read_text()
    assert text in (old, new), f"torn: {len(text)} characters"
print(edits)
"""


def test_an_edit_is_whole_wherever_it_is_killed(tmp_path):
    file = tmp_path / "file.txt"
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(file), str(KILLS)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= KILLS  # edits did happen between the kills


def test_what_a_killed_process_left_is_swept_by_the_next_edit(tmp_path):
    file = tmp_path / "a[1].txt"
    file.write_text("old")
    gone = subprocess.run(["true"], check=True)
    assert gone.returncode == 0
    dead = tmp_path / f".a[1].txt{MARK}4194303-aa{PARTIAL}"
    alive = tmp_path / f".a[1].txt{MARK}{os.getpid()}-bb{PARTIAL}"
    dead.write_text("")
    alive.write_text("")
    replace_content(file, b"new", file.stat())
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([alive.name, file.name])


def test_the_mode_is_kept(tmp_path):
    file = tmp_path / "run.sh"
    file.write_text("old")
    file.chmod(0o750)
    replace_content(file, b"new", file.stat())
    assert stat.S_IMODE(file.stat().st_mode) == 0o750


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "there").mkdir()
    real = tmp_path / "there" / "real"
    real.write_text("old")
    link = tmp_path / "link"
    link.symlink_to(real)
    replace_content(link, b"new", link.stat())
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_a_file_that_changed_in_between_is_not_overwritten(tmp_path):
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
    def full(_descriptor):
        raise OSError(28, "No space left on device")

    file = tmp_path / "a"
    file.write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        replace_content(file, b"new", file.stat())
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert file.read_text() == "old"


def modes(top):
    """The permissions of a directory and all below it."""
    places = [top, *(place for place in top.rglob("*") if place.is_dir())]
    return {place.stat().st_mode & 0o777 for place in places}


def test_every_directory_on_the_way_is_private(tmp_path):
    assert private_directory(tmp_path / "a" / "b" / "c").is_dir()
    assert modes(tmp_path / "a") == {0o700}


def test_what_is_there_stays_as_it_is(tmp_path):
    (tmp_path / "a").mkdir(mode=0o755)
    private_directory(tmp_path / "a" / "b")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o755


def test_a_store_made_first_leaves_nothing_open(tmp_path):
    with MemoryStore(tmp_path / "home" / "projects" / "p" / "memory"):
        assert modes(tmp_path / "home") == {0o700}


def test_an_outbox_made_first_leaves_nothing_open(tmp_path):
    outbox.leave(tmp_path / "home" / "session", Failed(what="dream", error="x"))
    assert modes(tmp_path / "home") == {0o700}


def test_a_private_file_replaces_what_is_there_and_only_its_user_reads_it(tmp_path):
    real, path = tmp_path / "real", tmp_path / "a" / "file"
    real.write_text("theirs")
    path.parent.mkdir()
    path.symlink_to(real)
    status = write_private(path, "half a character: \ud800")
    assert status.st_mode & 0o777 == 0o600
    assert path.read_text() == "half a character: ?"
    assert real.read_text() == "theirs"
    assert list(path.parent.iterdir()) == [path]


def test_a_private_write_that_is_interrupted_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    write_private(path, "old", at=1.5)

    def fail():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_private(path, "new", before_rename=fail)
    assert list(tmp_path.iterdir()) == [path]
    assert (path.read_text(), path.stat().st_mtime) == ("old", 1.5)


def test_what_the_system_refuses_is_said_with_what_to_do(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="Not a directory"):
        private_directory(tmp_path / "file" / "mail")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limits[1]))
    try:
        with pytest.raises(StoreError, match="has reached its size limit"):
            write_private(tmp_path / "notes.md", "x" * 2_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
