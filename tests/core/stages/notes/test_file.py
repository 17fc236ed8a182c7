"""The file of a session's notes: private, intact, and with the user's edits first."""

import os
import signal
import stat
import sys

import pytest

from longhold.core.settings.private_files import Overtaken
from longhold.core.stages.notes.file import NotesFile, NotesPage, read_page
from longhold.core.tools.context import stamp_of
from longhold.errors import StoreError

CHANGES = ("open", "os.rename", "os.remove", "os.chmod", "os.listdir", "os.scandir")
"""What writing a page asks of the system, as far as it can be overheard."""
TEMPLATE = read_page("## Title\n_What it is about._\n\n## Worklog\n_What was done._\n", NotesPage())


@pytest.fixture
def file(tmp_path):
    return NotesFile(tmp_path / "session", TEMPLATE)


def put(file, **written):
    found = file.read()
    return file.write(found.page.with_written(written), found)


def test_only_its_owner_can_read_it(file):
    put(file, Title="Login")
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.directory.stat().st_mode) == 0o700


def test_what_is_missing_is_the_empty_template(file):
    assert file.read().page == TEMPLATE
    assert not file.directory.exists()


def test_what_somebody_saved_meanwhile_is_not_overwritten(file):
    put(file, Title="Login")
    found = file.read()
    file.path.write_text(file.path.read_text().replace("Login", "Logout, by hand"))
    with pytest.raises(Overtaken):
        file.write(found.page.with_written({"Title": "Login again"}), found)
    assert "Logout, by hand" in file.path.read_text()


def test_a_file_made_meanwhile_is_not_overwritten(file):
    found = file.read()
    put(file, Title="By hand")
    with pytest.raises(Overtaken):
        file.write(found.page.with_written({"Title": "Ours"}), found)


def test_notes_are_not_written_through_a_link(file, tmp_path):
    other = tmp_path / "other.md"
    other.write_text("mine")
    file.directory.mkdir()
    file.path.symlink_to(other)
    with pytest.raises(StoreError):
        file.read()
    assert other.read_text() == "mine"


def test_a_draft_is_a_file_of_its_own(file, tmp_path):
    other = tmp_path / "other.md"
    other.write_text("mine")
    file.directory.mkdir()
    file.draft.symlink_to(other)
    seen = file.begin_draft(TEMPLATE.with_written({"Title": "Login"}))
    assert seen.stamp == stamp_of(file.draft.stat(), file.draft.read_bytes())
    assert other.read_text() == "mine"
    file.draft.write_text(file.draft.read_text().replace("Login", "Logout"))
    assert file.end_draft().section("Title").text == "Logout"
    assert not file.draft.exists()


@pytest.mark.parametrize("steps", range(1, 12))
def test_killed_at_any_point_it_is_the_old_page_or_the_new_one(file, steps):
    put(file, Title="old " * 2_000)
    child = os.fork()
    if not child:
        try:
            _die_after(steps)
            put(file, Title="new " * 2_000)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    title = read_page(file.path.read_text(), TEMPLATE).section("Title").text
    assert title in (("old " * 2_000).strip("\n"), ("new " * 2_000).strip("\n"))
    put(file, Worklog="goes on")
    assert sorted(path.name for path in file.directory.iterdir()) == ["notes.md"]


def _die_after(steps):
    """Kill this process at one of the calls by which files are changed."""
    left = [steps]

    def count(event, _):
        if event in CHANGES:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
