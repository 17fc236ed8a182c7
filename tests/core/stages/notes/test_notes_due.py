"""When notes are updated."""

import pytest

from longhold.core.policy.threshold import Fullness
from longhold.core.settings import NotesSettings, WindowSettings
from longhold.core.stages.notes.notes import is_due, model_pays
from longhold.core.view.window import scale_tokens, window_for

WINDOW_TOKENS = 200_000


def due(used, before=None, calls=0, rest=False, window=WINDOW_TOKENS):
    since = {"used_tokens": used, "before_tokens": before, "calls": calls, "is_at_rest": rest}
    return is_due(NotesSettings(), window, **since)


@pytest.mark.parametrize(("used", "is_time"), [(9_999, False), (10_000, True)])
def test_the_first_time_by_size_alone(used, is_time):
    assert due(used) is is_time


@pytest.mark.parametrize(
    ("grown", "calls", "rest", "is_time"),
    [
        (15_000, 3, False, True),
        (15_000, 0, True, True),
        (15_000, 2, False, False),
        (14_999, 9, True, False),
        (-3_000, 9, True, False),
    ],
)
def test_then_by_growth_and_by_what_was_done(grown, calls, rest, is_time):
    assert due(20_000 + grown, 20_000, calls, rest) is is_time


def test_a_small_window_has_small_budgets():
    assert due(1_000, window=20_000) and not due(999, window=20_000)
    assert scale_tokens(10_000, 1_000_000) == 10_000


@pytest.mark.parametrize(
    ("share", "judged", "is_after_pause", "pays"),
    [
        (0.5, 0, False, False),
        (0.84, 0, False, False),
        (0.86, 0, False, True),
        (0.61, 0, True, True),
        (0.59, 0, True, False),
        (0.9, 0.8, False, False),
        (0.9, 0.6, False, True),
    ],
)
def test_a_model_is_asked_near_the_line_or_after_a_pause_and_then_not_again(
    share, judged, is_after_pause, pays
):
    window = window_for("claude-opus-5", WindowSettings(limit_tokens=200_000, auto_line=""))
    used, at = (round(part * window.auto_tokens) for part in (share, judged))
    full = Fullness(used_tokens=used, margin=lambda: 0, window=window)
    assert model_pays(full, judged_tokens=at, is_after_pause=is_after_pause) is pays
