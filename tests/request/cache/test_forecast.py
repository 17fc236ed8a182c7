"""What may be expected of the rest of a session."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.request.cache.forecast import USUAL_CALLS, Forecast, expect


def test_a_new_session_is_a_usual_one():
    """Before the first call there is nothing else to go by."""
    assert expect(calls=0) == Forecast()


def test_a_session_that_goes_on_is_expected_to_go_on():
    """Calls made raise the calls expected, slowly."""
    assert expect(calls=50).calls == USUAL_CALLS + 5


def test_pauses_seen_are_pauses_expected():
    """After enough calls the session's own share of cold calls is what counts."""
    assert expect(calls=0).cold_share == pytest.approx(0.033)
    assert expect(calls=3_000, cold_calls=600).cold_share == pytest.approx(0.2, abs=0.005)
    assert expect(calls=0, lifetime="1h").cold_share == pytest.approx(0.005)


def test_growth_is_the_sessions_own_before_long():
    """Twenty calls outweigh the usual growth."""
    found = expect(calls=20, grown_tokens=100_000, removable_tokens=80_000)
    assert 4_000 < found.growth_tokens < 5_000
    assert found.removable_tokens == pytest.approx(0.8 * found.growth_tokens)


@given(st.floats(0.1, 1_000), st.floats(0, 1))
def test_warm_calls_are_fewer_than_calls(calls, cold_share):
    """A pause can only take calls away from those that profit."""
    forecast = Forecast(calls=calls, cold_share=cold_share)
    assert forecast.warm_calls <= calls * (1 + 1e-9)


def test_without_pauses_all_calls_are_warm():
    """The chance of one more call gives back the mean number of calls."""
    assert Forecast(calls=40.0, cold_share=0.0).warm_calls == pytest.approx(40.0)
