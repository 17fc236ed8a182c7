"""Directories for nobody but the user, whoever makes them first."""

from holdfast.log import outbox
from holdfast.log.entries import Failed
from holdfast.memory.store import MemoryStore
from holdfast.settings.private import private_directory


def modes(top):
    """The permissions of a directory and all below it."""
    places = [top, *(place for place in top.rglob("*") if place.is_dir())]
    return {place.stat().st_mode & 0o777 for place in places}


def test_every_directory_on_the_way_is_private(tmp_path):
    """Not only the last one."""
    assert private_directory(tmp_path / "a" / "b" / "c").is_dir()
    assert modes(tmp_path / "a") == {0o700}


def test_what_is_there_stays_as_it_is(tmp_path):
    """It is somebody's choice."""
    (tmp_path / "a").mkdir(mode=0o755)
    private_directory(tmp_path / "a" / "b")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o755


def test_a_store_made_first_leaves_nothing_open(tmp_path):
    """`holdfast memory` may be the first command a user ever runs."""
    with MemoryStore(tmp_path / "home" / "projects" / "p" / "memory"):
        assert modes(tmp_path / "home") == {0o700}


def test_an_outbox_made_first_leaves_nothing_open(tmp_path):
    """A report may come before anything else of a session is there."""
    outbox.leave(tmp_path / "home" / "session", Failed(what="dream", error="x"))
    assert modes(tmp_path / "home") == {0o700}
