"""What the calls to come cost, against adding them up one by one."""

from dataclasses import replace
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.models.prices import Prices, Tier
from holdfast.request.cache.cache_state import call_usd
from holdfast.request.cache.cost_model import CostModel
from holdfast.request.cache.forecast import Forecast

TIERS = (
    Tier(above_prompt_tokens=50_000, prompt_multiplier=2.0, output_multiplier=1.5),
    Tier(above_prompt_tokens=90_000, prompt_multiplier=5.0, output_multiplier=4.0),
)
LISTED = Prices(input=2.0, write_5m=2.5, write_1h=4.0, read=0.1, output=10.0, tiers=TIERS)


def added_up(listed, outlook, prompt_tokens, lifetime="5m"):
    """Add up every call by its chance."""
    total, chance = 0.0, 1.0
    for j in range(1, 3_000):
        chance *= outlook.stays_warm
        sent = prompt_tokens + j * outlook.growth_tokens
        total += chance * call_usd(
            listed,
            prompt_tokens=sent,
            read_tokens=sent - outlook.growth_tokens,
            lifetime=lifetime,
            output_tokens=outlook.output_tokens,
        )
    return total


@given(
    st.integers(0, 120_000),
    st.sampled_from([0.0, 0.5, 700.0, 5_000.0]),
    st.floats(0.5, 60),
    st.floats(0, 0.3),
    st.sampled_from(["5m", "1h"]),
)
def test_the_sum_is_the_sum(prompt_tokens, growth, calls, cold_share, lifetime):
    """At flat prices the closed form equals adding up call by call."""
    outlook = Forecast(
        calls=calls, cold_share=cold_share, growth_tokens=growth, output_tokens=300.0
    )
    flat = replace(LISTED, tiers=())
    course = CostModel(listed=flat, outlook=outlook, lifetime=lifetime)
    expected = added_up(flat, outlook, prompt_tokens, lifetime)
    assert course.ahead_usd(prompt_tokens) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("prompt_tokens", [20_000, 48_000, 60_000, 85_000, 120_000])
def test_across_tiers_the_sum_is_that_of_the_mean_growth(prompt_tokens):
    """Where exactly a line is crossed is not known: the mean over all places is met closely."""
    outlook = Forecast(calls=30.0, cold_share=0.0, growth_tokens=2_000.0, output_tokens=300.0)
    places = range(prompt_tokens - 1_000, prompt_tokens + 1_000, 100)
    expected = mean(added_up(LISTED, outlook, place) for place in places)
    found = CostModel(listed=LISTED, outlook=outlook).ahead_usd(prompt_tokens)
    assert found == pytest.approx(expected, rel=0.01)


def test_the_next_call_reads_this_one():
    """Only what came since is written."""
    course = CostModel(listed=LISTED, outlook=Forecast(growth_tokens=1_000.0))
    assert course.next_usd(10_000) == pytest.approx((10_000 * 0.1 + 1_000 * 2.5) / 1e6)
