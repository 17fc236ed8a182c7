"""The thresholds of a window: the published table exactly, and sensible small windows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.core.log.entries import Compacted, Replied
from longhold.core.messages import Usage
from longhold.core.settings import WindowSettings
from longhold.core.view.window import infer_window, lines, window_for
from longhold.errors import ConfigError

PLAIN = WindowSettings()
PLENTY_OUTPUT = 64_000


def window(limit=200_000, *, output=PLENTY_OUTPUT, **settings):
    return lines(limit, WindowSettings(**settings), max_output_tokens=output)


@pytest.mark.parametrize(
    ("limit", "output", "effective", "auto", "warning", "blocking"),
    [
        (200_000, 64_000, 180_000, 167_000, 147_000, 177_000),
        (200_000, 8_000, 192_000, 179_000, 159_000, 189_000),
        (1_000_000, 64_000, 980_000, 967_000, 947_000, 977_000),
    ],
    ids=["200K", "200K with 8K output", "1M"],
)
def test_the_table(limit, output, effective, auto, warning, blocking):
    found = window(limit, output=output)
    assert found.effective_tokens == effective
    assert found.auto_tokens == auto
    assert found.warning_tokens == found.error_tokens == warning
    assert found.blocking_tokens == blocking
    assert found.reserve_tokens == limit - effective


@pytest.mark.parametrize("limit", [8_000, 32_000, 64_000, 128_000, 200_000, 400_000, 2_000_000])
def test_lines_are_in_order_in_windows_of_every_size(limit):
    found = window(limit)
    assert (
        0
        < found.warning_tokens
        < found.auto_tokens
        < found.blocking_tokens
        < found.effective_tokens
        < found.limit_tokens
    )


def test_an_8k_window_to_the_token():
    found = window(8_000)
    assert (found.reserve_tokens, found.effective_tokens) == (800, 7_200)
    assert (found.auto_tokens, found.warning_tokens, found.blocking_tokens) == (6_680, 5_880, 7_080)


def test_a_32k_window_to_the_token():
    found = window(32_000)
    assert (found.effective_tokens, found.auto_tokens) == (28_800, 26_720)
    assert (found.warning_tokens, found.blocking_tokens) == (23_520, 28_320)


@given(st.integers(1, 3_000_000))
def test_no_window_is_too_small_for_its_lines(limit):
    found = window(limit)
    assert 0 < found.warning_tokens <= found.auto_tokens <= found.blocking_tokens
    assert found.blocking_tokens <= found.effective_tokens <= found.limit_tokens == limit


def test_a_window_of_nothing_is_refused():
    with pytest.raises(ConfigError, match="holds nothing; give at least 1"):
        window(0)


@pytest.mark.parametrize(
    ("wish", "auto"),
    [
        ("", 167_000),
        ("50%", 90_000),
        ("80%", 144_000),
        ("33%", 59_400),
        ("12.5%", 22_500),
        ("0.0001%", 1),
        ("100%", 167_000),
        ("95%", 167_000),
        ("150000", 150_000),
        ("150,000", 150_000),
        ("150_000", 150_000),
        (" 150000 ", 150_000),
        ("1e5", 100_000),
        ("999999", 167_000),
        ("inf", 167_000),
    ],
)
def test_the_auto_line_is_where_the_user_wants_it(wish, auto):
    assert window(auto_line=wish).auto_tokens == auto


@pytest.mark.parametrize(
    "wish", ["0%", "-5%", "101%", "nan", "nan%", "0", "-1", "half", "%", "5%%"]
)
def test_a_line_that_makes_no_sense_is_refused(wish):
    with pytest.raises(ConfigError, match=r"window\.auto_line is .* a share such as '80%'"):
        window(auto_line=wish)


def test_a_percentage_is_rounded_down():
    assert window(199_999, auto_line="50%").auto_tokens == (199_999 - 19_999) // 2


def test_the_auto_window_moves_only_the_auto_line():
    found = window(1_000_000, auto_window_tokens=200_000)
    assert (found.auto_tokens, found.warning_tokens) == (167_000, 147_000)
    assert (found.effective_tokens, found.blocking_tokens) == (980_000, 977_000)


def test_an_auto_window_larger_than_the_real_one_changes_nothing():
    assert window(auto_window_tokens=500_000) == window()


def test_without_auto_the_base_is_the_effective_window():
    found = window(auto=False)
    assert found.base_tokens == 180_000
    assert found.warning_tokens == 160_000
    assert found.level(170_000) == "warning"


@pytest.mark.parametrize(
    ("used", "level"),
    [
        (0, "ok"),
        (146_999, "ok"),
        (147_000, "warning"),
        (166_999.9, "warning"),
        (167_000, "auto"),
        (176_999, "auto"),
        (177_000, "blocking"),
        (500_000, "blocking"),
    ],
)
def test_a_line_is_reached_when_it_is_touched(used, level):
    assert window().level(used) == level


@pytest.mark.parametrize(
    ("used", "percent"), [(0, 100), (83_500, 50), (167_000, 0), (200_000, 0), (1_000, 99)]
)
def test_the_percentage_left_is_of_the_base(used, percent):
    assert window().percent_left(used) == percent


def test_a_model_brings_its_window():
    assert window_for("claude-sonnet-4-5").limit_tokens == 200_000
    assert window_for("claude-sonnet-4-5[1m]").limit_tokens == 1_000_000
    assert window_for("Claude-Sonnet-4-5[1M]").limit_tokens == 1_000_000
    assert window_for("claude-opus-5-5").limit_tokens == 1_000_000
    assert window_for("nobody-knows-this").limit_tokens == 200_000


def test_long_windows_can_be_turned_off():
    short = WindowSettings(allow_long=False)
    assert window_for("claude-opus-5-5", short).limit_tokens == 200_000
    assert window_for("claude-sonnet-4-5[1m]", short).limit_tokens == 200_000
    assert window_for("x", WindowSettings(allow_long=False, limit_tokens=900_000)).limit_tokens == (
        200_000
    )
    assert window_for("x", WindowSettings(allow_long=False, limit_tokens=32_000)).limit_tokens == (
        32_000
    )


def test_a_setting_beats_the_table():
    assert window_for("claude-opus-5-5", WindowSettings(limit_tokens=64_000)).limit_tokens == 64_000
    assert window_for("my-model", WindowSettings(limit_tokens=500_000)).limit_tokens == 500_000


def test_a_models_output_limit_bounds_the_reserve():
    assert window_for("claude-haiku-3-5").reserve_tokens == 8_192


@pytest.mark.parametrize(
    "settings",
    [
        {"auto_line": "5%"},
        {"auto_line": "1000"},
        {"auto_window_tokens": 30_000},
        {"auto_window_tokens": 10},
        {"warning_buffer_tokens": 190_000},
        {"blocking_buffer_tokens": 190_000},
        {"limit_tokens": 1},
    ],
    ids=str,
)
def test_unusual_settings_leave_no_line_below_nothing(settings):
    found = window(**settings)
    assert min(found.warning_tokens, found.error_tokens, found.blocking_tokens) > 0
    assert found.level(0) == "ok"


def called(prompt: int, *, stated: int = 0, model: str = "claude-opus-4-6") -> Replied:
    extra = {"model_context_window": stated} if stated else None
    usage = Usage(input_tokens=prompt, extra=extra)
    return Replied(response_id="r", content=(), model=model, usage=usage)


def compacted(before: int, trigger: str = "auto", by: str = "import") -> Compacted:
    return Compacted(first=1, last=1, summary=(), before_tokens=before, trigger=trigger, by=by)


@pytest.mark.parametrize(
    ("history", "window"),
    [
        ([called(150_000), compacted(167_094)], 200_000),
        ([called(150_000), compacted(167_094), called(420_000)], 1_000_000),
        ([called(100_000, stated=258_400)], 258_400),
        ([called(258_200, model="unknown")], 272_000),
        ([called(150_000), compacted(142_000, "manual")], 0),
        ([called(150_000), compacted(167_094, by="digest")], 0),
        ([called(150_000)], 0),
    ],
)
def test_a_window_is_taken_from_what_a_transcript_proves(history, window):
    assert infer_window(history) == window
