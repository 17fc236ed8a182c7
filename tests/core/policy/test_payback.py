"""Whether an edit of the history pays off."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from longhold.core.models.prices import Prices, prices
from longhold.core.policy.cost_model import CacheState, CostModel, Forecast, HistoryEdit, payback

LISTED = Prices(input=2.0, write_5m=2.5, write_1h=4.0, read=0.1, output=10.0)
STEADY = Forecast(calls=100.0, cold_share=0.0, growth_tokens=1_000.0)
WARM = CacheState(tokens=100_000, marked=(15_000, 40_000))
PROMPT = {"prompt_tokens": 101_000, "cache": WARM}
EDIT = HistoryEdit(
    **PROMPT, at_tokens=40_000, until_tokens=80_000, removed_tokens=30_000, added_tokens=1_000
)


def weigh(edit=EDIT, *, listed=LISTED, forecast=STEADY, lifetime="5m"):
    """Ask payback with the values above unless told otherwise."""
    return payback(CostModel(listed=listed, forecast=forecast, lifetime=lifetime), edit)


def test_the_cost_is_what_is_written_instead_of_read():
    found = weigh()
    edited, plain = 40_000 * 0.1 + 32_000 * 2.5, 100_000 * 0.1 + 1_000 * 2.5
    assert found.cost_now_usd == pytest.approx((edited - plain) / 1e6)
    assert found.saved_per_call_usd == pytest.approx(29_000 * 0.1 / 1e6)
    assert found.expected_gain_usd == pytest.approx((100 * 29_000 * 0.1 - edited + plain) / 1e6)
    assert found.worth_it


def test_a_marker_before_the_edit_makes_it_cheaper():
    bare = replace(EDIT, cache=replace(WARM, marked=(15_000,)))
    more = weigh(bare).cost_now_usd - weigh().cost_now_usd
    assert more == pytest.approx(25_000 * (2.5 - 0.1) / 1e6)


def test_a_long_lifetime_makes_it_dearer():
    assert weigh(lifetime="1h").cost_now_usd > weigh().cost_now_usd


@pytest.mark.parametrize("calls", [0.01, 1.0, 1_000.0])
def test_a_cold_cache_makes_an_edit_free(calls):
    found = weigh(replace(EDIT, cache=CacheState()), forecast=replace(STEADY, calls=calls))
    assert found.cost_now_usd == pytest.approx(-29_000 * 2.5 / 1e6)
    assert found.worth_it


def test_an_edit_of_what_was_never_sent_is_free():
    edit = HistoryEdit(
        prompt_tokens=110_000,
        cache=WARM,
        at_tokens=100_000,
        until_tokens=110_000,
        removed_tokens=8_000,
    )
    found = weigh(edit)
    assert found.cost_now_usd == pytest.approx(-8_000 * 2.5 / 1e6)
    assert found.worth_it


def test_a_short_rest_does_not_pay():
    found = weigh(forecast=replace(STEADY, calls=10.0))
    assert found.cost_now_usd / found.saved_per_call_usd == pytest.approx(24.7, abs=0.1)
    assert found.expected_gain_usd < 0
    assert not found.worth_it


def test_pauses_to_come_speak_against_an_edit():
    assert weigh().worth_it
    assert not weigh(forecast=replace(STEADY, cold_share=0.2)).worth_it


def test_an_edit_waits_for_more_to_remove():
    small = replace(EDIT, until_tokens=50_000, removed_tokens=20_000)
    forecast = replace(STEADY, calls=200.0, growth_tokens=6_000.0, removable_tokens=5_500.0)
    found = weigh(small, forecast=forecast)
    assert found.expected_gain_usd > 0
    assert found.waiting_gain_usd > 0
    assert not found.worth_it
    large = replace(EDIT, until_tokens=98_000, removed_tokens=55_000)
    assert weigh(large, forecast=forecast).worth_it


def test_a_price_that_jumps_makes_an_edit_pay():
    forecast = Forecast(calls=6.0, cold_share=0.0, growth_tokens=500.0)
    above = weigh(listed=prices("claude-haiku-5-5"), forecast=forecast)
    assert above.cost_now_usd < 0.02
    assert above.worth_it
    flat = weigh(listed=prices("claude-haiku-4-5"), forecast=forecast)
    assert not flat.worth_it


def test_an_edit_that_adds_never_pays():
    found = weigh(
        replace(EDIT, at_tokens=50_000, until_tokens=60_000, removed_tokens=0, added_tokens=500)
    )
    assert found.cost_now_usd > 0 >= found.saved_per_call_usd
    assert not found.worth_it


edits = st.builds(
    lambda at, span, removed, added: HistoryEdit(
        **PROMPT,
        at_tokens=at,
        until_tokens=at + span,
        removed_tokens=min(removed, span),
        added_tokens=added,
    ),
    at=st.integers(0, 60_000),
    span=st.integers(1_000, 40_000),
    removed=st.integers(0, 40_000),
    added=st.integers(0, 500),
)


@given(edits, st.floats(0.1, 500), st.floats(0.1, 500))
def test_more_calls_never_make_an_edit_worse(edit, some, more):
    assume(edit.net_tokens >= 0)
    few, many = sorted((some, more))
    first = weigh(edit, forecast=replace(STEADY, calls=few)).expected_gain_usd
    second = weigh(edit, forecast=replace(STEADY, calls=many)).expected_gain_usd
    assert first <= second + 1e-9


@given(edits, st.floats(0.1, 500), st.floats(0, 0.5))
def test_an_edit_that_will_not_grow_does_not_wait(edit, calls, cold_share):
    forecast = replace(STEADY, calls=calls, cold_share=cold_share)
    found = weigh(edit, forecast=forecast)
    assert found.worth_it == (found.expected_gain_usd > 0)
