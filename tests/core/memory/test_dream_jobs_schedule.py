"""The gates before a dream: the cheapest first, each with its reason."""

import os

import pytest

from longhold.core.log.shared import FileRecords
from longhold.core.memory.dreaming import SCANNED, last_noted, note, time_to_dream
from longhold.core.memory.lock import LockState
from longhold.core.settings import DreamSettings

NOW = 1_790_000_000.0
HOUR = 3_600.0


def never_asked(_since):
    """Counting sessions must not be reached."""
    raise AssertionError("sessions were counted")


def test_all_gates_open():
    held = LockState(time=NOW - 24 * HOUR)
    verdict = time_to_dream(
        DreamSettings(), now=NOW, held=held, scanned=NOW - 600, count_sessions=lambda since: 5
    )
    assert verdict.is_open


def test_a_clock_that_was_set_back_does_not_keep_it_from_dreaming_for_years():
    year = 24 * 365 * HOUR
    held = LockState(time=NOW + year)
    verdict = time_to_dream(
        DreamSettings(),
        now=NOW,
        held=held,
        scanned=NOW + year,
        failed=NOW + year,
        count_sessions=lambda since: 5,
    )
    assert verdict.is_open


@pytest.mark.parametrize(
    ("settings", "held", "scanned", "reason"),
    [
        (DreamSettings(on=False), LockState(time=0.0), 0.0, "dream.on"),
        (DreamSettings(), LockState(time=NOW - 23 * HOUR), 0.0, "23.0 hours ago"),
        (DreamSettings(), LockState(time=0.0), NOW - 599, "counted 10 minutes ago"),
    ],
)
def test_a_cheap_gate_that_is_closed_saves_the_counting(settings, held, scanned, reason):
    verdict = time_to_dream(
        settings, now=NOW, held=held, scanned=scanned, count_sessions=never_asked
    )
    assert not verdict.is_open and reason in verdict.reason


def test_a_dream_that_failed_is_not_tried_again_at_once():
    given = {"now": NOW, "held": LockState(time=0.0), "scanned": 0.0}
    closed = time_to_dream(
        DreamSettings(), **given, failed=NOW - 59 * 60, count_sessions=never_asked
    )
    assert "failed 59 minutes ago" in closed.reason
    assert time_to_dream(
        DreamSettings(), **given, failed=NOW - 60 * 60, count_sessions=lambda since: 5
    ).is_open


def test_too_few_sessions_close_it():
    asked = []
    verdict = time_to_dream(
        DreamSettings(),
        now=NOW,
        held=LockState(time=100.0),
        scanned=0.0,
        count_sessions=lambda since: asked.append(since) or 4,
    )
    assert not verdict.is_open and "4 sessions" in verdict.reason
    assert asked == [100.0]


def test_somebody_dreaming_closes_it():
    held = LockState(time=NOW, pid=os.getpid(), started="?", before=0.0)
    verdict = time_to_dream(
        DreamSettings(), now=NOW, held=held, scanned=0.0, count_sessions=lambda since: 9
    )
    assert not verdict.is_open and "is dreaming" in verdict.reason


def test_a_killed_dream_counts_as_not_having_been():
    held = LockState(time=NOW - HOUR, pid=2**22 + 1, started="?", before=NOW - 30 * HOUR)
    verdict = time_to_dream(
        DreamSettings(), now=NOW + 1, held=held, scanned=0.0, count_sessions=lambda since: 9
    )
    assert verdict.is_open


def test_a_scan_is_remembered(tmp_path):
    assert last_noted(tmp_path, SCANNED) == 0.0
    note(tmp_path, SCANNED, 123.0)
    assert last_noted(tmp_path, SCANNED) == 123.0


def test_sessions_touched_since_are_counted(tmp_path):
    for name, at in (("a.jsonl", 10), ("b.jsonl", 20), ("now.jsonl", 30), ("c.lock", 30)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (at, at))
    assert FileRecords(tmp_path).sessions_since(10.0) == ["now", "b"]
