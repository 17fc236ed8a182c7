"""Retention: old or excess results are removed, and the log lists them."""

import os

from longhold.core.log import Header, Log, load
from longhold.core.log.entries import Swept
from longhold.core.log.results import DAY_SECONDS, Results, StoredBody, plan_sweep
from longhold.core.log.store import sweep_session
from longhold.core.settings import SpillSettings

NOW = 1_700_000_000.0


def stored(*ages_days, size=10):
    """Files named by their age, the oldest first."""
    return [
        StoredBody(name=f"{age}.txt", bytes=size, modified=NOW - age * DAY_SECONDS)
        for age in ages_days
    ]


def planned(files, **fields):
    chosen = plan_sweep(files, SpillSettings(**fields), NOW)
    return [[file.name for file in group] for group in chosen]


def test_what_is_older_than_the_retention_goes():
    assert planned(stored(31, 30, 1), retention_days=30) == [["31.txt"], []]


def test_no_retention_keeps_all():
    assert planned(stored(9_999), retention_days=0) == [[], []]


def test_past_the_cap_the_oldest_go_first():
    files = stored(4, 3, 2, 1, size=1 << 20)
    assert planned(files, session_bytes=2 << 20) == [[], ["4.txt", "3.txt"]]


def test_the_newest_stays_however_large():
    assert planned(stored(1, size=9 << 20), session_bytes=1 << 20) == [[], []]


def put(directory, name, age_days, size=10):
    file = directory / "tool-results" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"x" * size)
    os.utime(file, (NOW - age_days * DAY_SECONDS,) * 2)
    return file


def test_what_is_removed_is_said(tmp_path):
    put(tmp_path, "old.txt", 40)
    put(tmp_path, "big.txt", 3, size=1 << 20)
    new = put(tmp_path, "new.txt", 1, size=1 << 20)
    assert Results(tmp_path).sweep(SpillSettings(session_bytes=1 << 20), now=NOW) == [
        Swept(files=("tool-results/old.txt",), bytes=10, why="older than 30 days"),
        Swept(files=("tool-results/big.txt",), bytes=1 << 20, why="more than 1 MB in all"),
    ]
    assert list(new.parent.iterdir()) == [new]


def test_a_session_is_swept_without_growing_younger(tmp_path):
    log = tmp_path / "s.jsonl"
    Log.create(log, Header(session="s")).close()
    put(tmp_path / "s", "old.txt", 40)
    os.utime(log, (NOW, NOW))
    assert [entry.files for entry in sweep_session(log, SpillSettings(), now=NOW)] == [
        ("tool-results/old.txt",)
    ]
    assert load(log).entries[-1].files == ("tool-results/old.txt",)
    assert log.stat().st_mtime == NOW


def test_a_session_with_nothing_to_sweep_is_not_even_opened(tmp_path):
    assert sweep_session(tmp_path / "none.jsonl", SpillSettings(), now=NOW) == []
