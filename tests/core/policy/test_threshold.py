"""Where the compaction threshold is cheapest."""

import pytest

from longhold.core.log.entries import Framed, Section
from longhold.core.messages.measure import measure_text
from longhold.core.policy import threshold
from longhold.core.policy.cost_model import Forecast
from longhold.core.policy.threshold import (
    COMPACTED_TOKENS,
    WORK_TOKENS,
    cheapest_line,
    window_at_cost,
)
from longhold.core.settings import CostSettings, Settings, WindowSettings
from longhold.core.view.window import window_for


def test_the_cheapest_line_lies_far_below_a_large_window():
    large = window_for("claude-sonnet-5-5")
    assert 60_000 < cheapest_line("claude-sonnet-5-5", large) < 200_000
    small = window_for("claude-sonnet-5-5", WindowSettings(limit_tokens=80_000))
    assert cheapest_line("claude-sonnet-5-5", small) <= small.auto_tokens


def test_cheap_reads_move_the_line_up():
    window = window_for("claude-fable-5-1")
    assert cheapest_line("claude-fable-5-1", window) > cheapest_line("claude-fable-5", window)


def test_the_line_stays_below_a_price_that_jumps(monkeypatch):
    monkeypatch.setattr(threshold, "SUMMARY_TOKENS", 100_000)
    window, steady = window_for("claude-haiku-5-5"), Forecast(cold_share=0.0)
    assert cheapest_line("claude-haiku-5-5", window, forecast=steady) <= 100_000
    assert cheapest_line("claude-haiku-4-5", window, forecast=steady) > 150_000


def test_the_cheapest_line_is_cheapest_by_brute_force(monkeypatch):
    monkeypatch.setattr(threshold, "COMPACTION_NEEDS", 0.0)
    monkeypatch.setattr(threshold, "COMPACTION_NEED_TOKENS", 0)
    window = window_for("claude-opus-5-5")
    forecast = Forecast(cold_share=0.0, growth_tokens=2_000.0)
    line = cheapest_line("claude-opus-5-5", window, forecast=forecast, compacted_tokens=40_000)
    costs = {tokens: _cycle_usd(tokens) for tokens in range(42_000, 400_000, 2_000)}
    assert costs[line] == pytest.approx(min(costs.values()))


def _cycle_usd(line):
    """Play one cycle on Opus 5.5 from 40K to the line in steps of 2K; dollars per call."""
    paid = (15_000 * 0.2 + 25_000 * 5.0) / 1e6  # the first call after a compaction
    calls, prompt = 0, 40_000
    while prompt < line:
        paid += (prompt * 0.2 + 2_000 * 5.0) / 1e6
        prompt += 2_000
        calls += 1
    return (paid + (line * 0.2 + 5_000 * 20.0) / 1e6) / calls


def test_a_model_without_a_price_keeps_the_windows_own_line():
    window = window_for("granite-9")
    assert cheapest_line("granite-9", window) == window.auto_tokens


def test_the_auto_line_can_be_placed_by_cost():
    asked = Settings(window=WindowSettings(auto_line="cost"))
    large = window_at_cost("claude-sonnet-5-5", asked)
    assert large.auto_tokens == cheapest_line("claude-sonnet-5-5", window_for("claude-sonnet-5-5"))
    assert large.auto_tokens < window_for("claude-sonnet-5-5").auto_tokens
    assert window_at_cost("nobody-1", asked) == window_for("nobody-1")


@pytest.mark.parametrize("model", ["claude-sonnet-5-5", "claude-opus-5", "claude-fable-5-1"])
def test_a_large_window_is_compacted_where_that_pays(model):
    window = window_at_cost(model, Settings())
    assert COMPACTED_TOKENS + WORK_TOKENS <= window.auto_tokens < 300_000
    small = window_at_cost(model, Settings(window=WindowSettings(limit_tokens=200_000)))
    assert small.auto_tokens <= 167_000


def test_what_a_compaction_loses_raises_the_line():
    window = window_for("claude-opus-5")
    lines = [
        cheapest_line("claude-opus-5", window, cost=CostSettings(need_weight=weight))
        for weight in (0.0, 10.0, 40.0)
    ]
    assert lines == sorted(set(lines))


def test_a_heavy_frame_raises_the_line():
    text = "A tool does one thing, and its description says when to use it. " * 4_000
    frame = Framed(sections=(Section(name="tools", text=text),), measure=measure_text(text))
    plain = window_at_cost("claude-opus-5", Settings())
    heavy = window_at_cost("claude-opus-5", Settings(), frame=frame)
    assert heavy.auto_tokens > plain.auto_tokens + 20_000


def test_a_frame_that_lives_an_hour_has_the_line_of_an_hour():
    lines = [
        window_at_cost("claude-opus-5", Settings(), frame=Framed(lifetime=lifetime))
        for lifetime in ("5m", "1h")
    ]
    assert lines[0].auto_tokens < lines[1].auto_tokens


def test_room_for_the_work_at_hand_comes_before_money(monkeypatch):
    monkeypatch.setattr(threshold, "WORK_TOKENS", 200_000)
    wide = CostSettings(need_weight=0.0)
    assert window_at_cost("claude-opus-5", Settings(cost=wide)).auto_tokens == 250_000


def test_after_a_pause_compacting_pays_earlier_than_while_the_cache_is_alive():
    def window(weight=8.0, lifetime="5m", **placed):
        cost = CostSettings(need_weight=weight)
        settings = Settings(cost=cost, window=WindowSettings(**placed))
        return window_at_cost("claude-opus-4-6", settings, Framed(lifetime=lifetime))

    found = window()
    assert threshold.COMPACTED_TOKENS < found.cold_tokens < 0.7 * found.auto_tokens
    assert window(16.0).cold_tokens > found.cold_tokens, "what is lost counts more"
    assert window(0.0).cold_tokens == threshold.COMPACTED_TOKENS, "nothing is lost"
    assert window(lifetime="1h").cold_tokens < found.cold_tokens, "a write costs more"
    assert window(auto_line="150000").cold_tokens == 0, "the user has set the threshold"
    unknown = window_at_cost("some-model", Settings(), Framed())
    assert unknown.cold_tokens == 0
