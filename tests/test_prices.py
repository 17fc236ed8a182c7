"""What requests cost under the published prices."""

from datetime import date

import pytest

from holdfast.prices import Cost, Prices, cost, prices


@pytest.mark.parametrize(
    ("model", "row"),
    [
        ("claude-fable-5-1", (10.0, 12.5, 20.0, 0.25, 50.0)),
        ("claude-mythos-5", (10.0, 12.5, 20.0, 1.0, 50.0)),
        ("claude-opus-5-5", (4.0, 5.0, 8.0, 0.20, 20.0)),
        ("claude-opus-4-5-20251101", (5.0, 6.25, 10.0, 0.50, 25.0)),
        ("claude-sonnet-5-5", (2.0, 2.5, 4.0, 0.10, 10.0)),
        ("claude-sonnet-4-6", (3.0, 3.75, 6.0, 0.30, 15.0)),
        ("claude-haiku-5-5", (0.10, 0.125, 0.20, 0.01, 0.50)),
        ("gpt-6.1-sol", (2.0, 2.5, 2.5, 0.10, 10.0)),
    ],
)
def test_published_rows(model, row):
    """Input, both writes, read and output are the published figures."""
    found = prices(model, at=date(2026, 11, 1))
    assert found is not None
    assert (found.input, found.write_5m, found.write_1h, found.read, found.output) == row


def test_cost_has_parts():
    """A million tokens of each kind cost the row's figures."""
    million = 1_000_000
    assert cost(
        "claude-opus-5-5",
        uncached_tokens=million,
        read_tokens=million,
        write_5m_tokens=million,
        write_1h_tokens=million,
        output_tokens=million,
    ) == Cost(read=0.20, write_5m=5.0, write_1h=8.0, uncached=4.0, output=20.0)


def test_long_prompts_cost_five_times_on_haiku():
    """Past 100K prompt tokens every token of the request is five times dearer."""
    short = cost("claude-haiku-5-5", read_tokens=100_000, output_tokens=1_000)
    long = cost("claude-haiku-5-5", read_tokens=100_000, uncached_tokens=1, output_tokens=1_000)
    assert short is not None and long is not None
    assert long.read == pytest.approx(5 * short.read)
    assert long.output == pytest.approx(5 * short.output)


def test_long_prompts_double_only_the_input_on_gpt():
    """Past 272K prompt tokens the input doubles and the output stays."""
    found = prices("gpt-6-sol")
    assert found is not None
    long = found.at_length(272_001)
    assert (long.input, long.read, long.output) == (4.0, 0.4, 10.0)
    assert found.at_length(272_000).input == 2.0


def test_the_old_premium_depends_on_the_day():
    """The 4.6 models cost double past 200K until the premium was dropped."""
    before = prices("claude-opus-4-6", at=date(2026, 3, 12))
    after = prices("claude-opus-4-6", at=date(2026, 3, 13))
    assert before is not None and after is not None
    assert before.at_length(200_001).input == 10.0
    assert after.at_length(200_001).input == 5.0


def test_multipliers_stack():
    """Fast, batch and region multiply each other; fast only where it exists."""
    plain = cost("claude-opus-5", output_tokens=1_000)
    all_three = cost(
        "claude-opus-5", output_tokens=1_000, speed="fast", is_batch=True, is_us_only=True
    )
    assert plain is not None and all_three is not None
    assert all_three.output == pytest.approx(plain.output * 2 * 0.5 * 1.1)
    assert cost("claude-sonnet-5", output_tokens=9, speed="fast") == cost(
        "claude-sonnet-5", output_tokens=9
    )


def test_unknown_models_have_no_price():
    """Nobody guesses: no published price means None."""
    assert prices("granite-9") is None
    assert cost("claude-fable-5-2", output_tokens=1) is None


def test_local_models_are_free():
    """A model on this machine costs nothing."""
    assert cost("local/qwen-coder", uncached_tokens=10**6) == Cost()


def test_simulated_models_cost_what_they_simulate():
    """The simulator's money is the simulated model's."""
    assert prices("simulated/claude-opus-5") == prices("claude-opus-5")


def test_costs_add():
    """Sums go part by part and the total is the sum of the parts."""
    total = Cost(read=1.0, output=2.0) + Cost(read=0.5, uncached=1.0)
    assert total == Cost(read=1.5, uncached=1.0, output=2.0)
    assert total.total == 4.5


def test_plain_prices_have_no_tiers_left():
    """The price at a length is flat: applying the tier twice changes nothing."""
    found = prices("claude-haiku-5-5")
    assert isinstance(found, Prices)
    assert found.at_length(200_000).at_length(200_000) == found.at_length(200_000)
