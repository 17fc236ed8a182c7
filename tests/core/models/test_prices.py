"""The cost of requests at published prices."""

import subprocess
import sys
from datetime import date

import msgspec
import pytest

from longhold.core.messages import Usage
from longhold.core.messages.usage import Tally
from longhold.core.models.prices import (
    TABLE,
    Cost,
    Prices,
    Tier,
    cost,
    from_library,
    from_table,
    price_call,
    prices,
    usage_cost,
)
from longhold.core.settings import home
from longhold.errors import ConfigError

CHECKED = date(2026, 11, 20)
"""The day on which table and package were compared."""
NOT_IN_THE_PACKAGE = {"claude-mythos-5", "claude-mythos-5-1"}
DIFFERENT_IN_THE_PACKAGE: set[str] = set()
"""Models whose figures differ on that day. None do; a new name here needs a reason beside it."""


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
    found = prices(model, at=date(2026, 11, 1))
    assert found is not None
    assert (found.input, found.write_5m, found.write_1h, found.read, found.output) == row


def test_cost_has_parts():
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
    short = cost("claude-haiku-5-5", read_tokens=100_000, output_tokens=1_000)
    long = cost("claude-haiku-5-5", read_tokens=100_000, uncached_tokens=1, output_tokens=1_000)
    assert short is not None and long is not None
    assert long.read == pytest.approx(5 * short.read)
    assert long.output == pytest.approx(5 * short.output)


def test_long_prompts_raise_input_and_output_apart_on_gpt():
    found = prices("gpt-6-sol")
    assert found is not None
    long = found.select_tier(272_001)
    assert (long.input, long.read, long.output) == (4.0, 0.4, 15.0)
    assert found.select_tier(272_000).input == 2.0


def test_the_old_premium_depends_on_the_day():
    before = prices("claude-opus-4-6", at=date(2026, 3, 12))
    after = prices("claude-opus-4-6", at=date(2026, 3, 13))
    assert before is not None and after is not None
    assert before.select_tier(200_001).input == 10.0
    assert after.select_tier(200_001).input == 5.0


def test_a_tally_adds_and_can_be_read_back():
    usage = Usage(input_tokens=100, cache_read_tokens=900, cache_write_tokens=50, output_tokens=7)
    one = price_call("claude-opus-5", usage)
    assert one.usd == usage_cost("claude-opus-5", usage).total < one.bare_usd
    total = sum((one, one, price_call("granite-9", usage)), Tally())
    assert (total.calls, total.unpriced_calls, total.total_tokens) == (3, 1, 3 * 1_057)
    assert total.usd == 2 * one.usd
    assert total.hit_share == one.hit_share == usage.hit_share == 900 / 1_050
    read = msgspec.json.decode(msgspec.json.encode(total.to_json()), type=Tally)
    assert read.to_json() == total.to_json()


def test_unknown_models_have_no_price():
    assert prices("granite-9") is None
    assert cost("claude-fable-5-2", output_tokens=1) is None


def test_simulated_models_cost_what_they_simulate():
    assert prices("simulated/claude-opus-5") == prices("claude-opus-5")


def test_costs_add():
    total = Cost(read=1.0, output=2.0) + Cost(read=0.5, uncached=1.0)
    assert total == Cost(read=1.5, uncached=1.0, output=2.0)
    assert total.total == 4.5


def test_plain_prices_have_no_tiers_left():
    found = prices("claude-haiku-5-5")
    assert isinstance(found, Prices)
    assert found.select_tier(200_000).select_tier(200_000) == found.select_tier(200_000)


@pytest.mark.parametrize("model", TABLE)
def test_table_and_package_agree(model):
    pytest.importorskip("genai_prices")
    ours, theirs = from_table(model, CHECKED), from_library(model, CHECKED)
    assert (theirs is None) == (model in NOT_IN_THE_PACKAGE)
    if ours is None or theirs is None:
        return
    lengths = [0, *(t.above_prompt_tokens + 1 for t in (*ours.tiers, *theirs.tiers))]
    same = all(_figures(ours, n) == pytest.approx(_figures(theirs, n)) for n in lengths)
    assert same == (model not in DIFFERENT_IN_THE_PACKAGE)


def _figures(listed, prompt_tokens):
    flat = listed.select_tier(prompt_tokens)
    return flat.input, flat.write_5m, flat.write_1h, flat.read, flat.output


def test_the_package_knows_models_and_days_the_table_lacks():
    pytest.importorskip("genai_prices")
    assert prices("gemini-2.5-pro") is not None
    old, new = (prices("gpt-5.6-sol", at=day) for day in (date(2026, 3, 1), CHECKED))
    assert old is not None and new is not None
    assert (old.input, new.input) == (5.0, 4.0)


def test_a_tier_may_raise_each_kind_by_its_own_factor():
    tier = Tier(
        above_prompt_tokens=10, prompt_multiplier=2.0, output_multiplier=1.5, write_multiplier=1.0
    )
    base = Prices(input=1.0, write_5m=1.0, write_1h=1.0, read=0.1, output=4.0, tiers=(tier,))
    assert base.select_tier(11) == Prices(
        input=2.0, write_5m=1.0, write_1h=1.0, read=0.2, output=6.0
    )


def test_todays_price_of_a_known_model_imports_no_package():
    code = (
        "import sys; from longhold.core.models.prices import prices; assert prices('claude-opus-5-5'); "
        "print({'genai_prices', 'pydantic'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_users_file_comes_first():
    (home() / "prices.toml").write_text(
        '["claude-opus-5-5"]\ninput = 1\noutput = 2.5\n["house/own-model"]\ninput = 3\noutput = 4\n'
        "read = 0.5\ntiers = [{above_prompt_tokens = 1000, prompt_multiplier = 2}]\n"
    )
    assert prices("claude-opus-5-5") == Prices(
        input=1.0, write_5m=1.0, write_1h=1.0, read=1.0, output=2.5
    )
    own = prices("own-model")
    assert own is not None
    assert (own.read, own.select_tier(1_001).read, own.select_tier(1_001).output) == (0.5, 1.0, 4.0)


def test_a_changed_file_is_read_again():
    path = home() / "prices.toml"
    path.write_text("[mine]\ninput = 1\noutput = 2\n")
    assert prices("mine") is not None
    path.unlink()
    assert prices("mine") is None


@pytest.mark.parametrize(
    "text",
    [
        "[mine]\ninput = 1\n",
        "[mine]\ninput = -1\noutput = 2\n",
        "[mine]\ninput = nan\noutput = 2\n",
        "[mine]\ninput = 1\noutput = 2\ninptu = 3\n",
        "mine = 3\n",
        "[mine",
    ],
)
def test_a_slip_in_the_file_is_an_error_that_names_it(text):
    (home() / "prices.toml").write_text(text)
    with pytest.raises(ConfigError, match=r"prices\.toml: .*fix or remove the file"):
        prices("claude-opus-5-5")
