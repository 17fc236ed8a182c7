"""The conditions for a dream: cheapest first, each with its reason."""

import os

import pytest

from longhold.core.log.shared import FileRecords
from longhold.core.memory.dreaming import SCANNED, LockState, last_noted, note, refuse_dream
from longhold.core.settings import DreamSettings

NOW = 1_790_000_000.0
HOUR = 3_600.0


def never_asked(_since):
    """Counting sessions must not be reached."""
    raise AssertionError("sessions were counted")


def test_all_gates_open():
    held = LockState(time=NOW - 24 * HOUR)
    refusal = refuse_dream(
        DreamSettings(), now=NOW, held=held, scanned=NOW - 600, count_sessions=lambda since: 5
    )
    assert refusal == ""


def test_a_clock_that_was_set_back_does_not_keep_it_from_dreaming_for_years():
    year = 24 * 365 * HOUR
    held = LockState(time=NOW + year)
    refusal = refuse_dream(
        DreamSettings(),
        now=NOW,
        held=held,
        scanned=NOW + year,
        failed=NOW + year,
        count_sessions=lambda since: 5,
    )
    assert refusal == ""


@pytest.mark.parametrize(
    ("settings", "held", "scanned", "reason"),
    [
        (DreamSettings(on=False), LockState(time=0.0), 0.0, "dream.on"),
        (DreamSettings(), LockState(time=NOW - 23 * HOUR), 0.0, "23.0 hours ago"),
        (DreamSettings(), LockState(time=0.0), NOW - 599, "counted 10 minutes ago"),
    ],
)
def test_a_cheap_gate_that_is_closed_saves_the_counting(settings, held, scanned, reason):
    refusal = refuse_dream(
        settings, now=NOW, held=held, scanned=scanned, count_sessions=never_asked
    )
    assert refusal and reason in refusal


def test_a_dream_that_failed_is_not_tried_again_at_once():
    given = {"now": NOW, "held": LockState(time=0.0), "scanned": 0.0}
    closed = refuse_dream(
        DreamSettings(), **given, failed=NOW - 59 * 60, count_sessions=never_asked
    )
    assert "failed 59 minutes ago" in closed
    again = refuse_dream(
        DreamSettings(), **given, failed=NOW - 60 * 60, count_sessions=lambda since: 5
    )
    assert again == ""


def test_too_few_sessions_close_it():
    asked = []
    refusal = refuse_dream(
        DreamSettings(),
        now=NOW,
        held=LockState(time=100.0),
        scanned=0.0,
        count_sessions=lambda since: asked.append(since) or 4,
    )
    assert refusal and "4 sessions" in refusal
    assert asked == [100.0]


def test_somebody_dreaming_closes_it():
    held = LockState(time=NOW, pid=os.getpid(), before=0.0)
    refusal = refuse_dream(
        DreamSettings(), now=NOW, held=held, scanned=0.0, count_sessions=lambda since: 9
    )
    assert refusal and "is dreaming" in refusal


def test_a_scan_is_remembered(tmp_path):
    assert last_noted(tmp_path, SCANNED) == 0.0
    note(tmp_path, SCANNED, 123.0)
    assert last_noted(tmp_path, SCANNED) == 123.0


def test_sessions_touched_since_are_counted(tmp_path):
    for name, at in (("a.jsonl", 10), ("b.jsonl", 20), ("now.jsonl", 30), ("c.lock", 30)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (at, at))
    assert FileRecords(tmp_path).sessions_since(10.0) == ["now", "b"]
