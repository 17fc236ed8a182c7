"""If the wall clock is set while a process runs, recent entries do not look old."""

import time

import pytest

from longhold.core.log.cursor import earliest_now
from longhold.core.log.results import DIRECTORY, Results
from longhold.core.log.store import FileStore, list_expired
from longhold.core.settings import SpillSettings

DECADE = 10 * 365 * 86_400


@pytest.fixture
def ahead(monkeypatch):
    """The clock of a machine that was set ten years ahead."""
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + DECADE)


def test_a_body_just_written_is_not_expired(tmp_path, ahead):
    (tmp_path / DIRECTORY).mkdir()
    (tmp_path / DIRECTORY / "t1.txt").write_text("the whole result")
    assert Results(tmp_path).sweep(SpillSettings()) == []
    assert (tmp_path / DIRECTORY / "t1.txt").exists()


def test_a_session_just_written_is_not_expired(tmp_path, ahead):
    store = FileStore()
    store.create(directory=tmp_path).close()
    assert list_expired(store, 30) == []


def test_a_clock_that_is_set_back_is_followed(monkeypatch):
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - DECADE)
    assert earliest_now() < real() - DECADE + 60
