"""The cost of a call against the simulator's billing, and of later calls against a plain sum."""

import json
from dataclasses import dataclass, field, replace
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longhold.core.models.prices import Prices, Tier, prices, usage_cost
from longhold.core.policy.cost_model import (
    USUAL_CALLS,
    CacheState,
    CostModel,
    Forecast,
    expect,
    step_at,
)
from longhold.core.request.billing.api_request import Caller, parse_request
from longhold.core.request.billing.cache import PromptCache
from longhold.core.request.billing.preparation import Workbench, prepare
from longhold.core.request.billing.tokens import BillingSettings
from longhold.core.request.lifetime import seconds_of

SETTINGS = BillingSettings()
BENCH = Workbench(SETTINGS)
CALLER = Caller(workspace="w", version="2023-06-01")
CLEARED = "cleared"

TIERS = (
    Tier(above_prompt_tokens=50_000, prompt_multiplier=2.0, output_multiplier=1.5),
    Tier(above_prompt_tokens=90_000, prompt_multiplier=5.0, output_multiplier=4.0),
)
LISTED = Prices(input=2.0, write_5m=2.5, write_1h=4.0, read=0.1, output=10.0, tiers=TIERS)


def words(count, salt):
    """Text of about as many tokens as words."""
    return " ".join(f"w{salt}" if i % 7 == 0 else "and" for i in range(count))


@dataclass
class Talk:
    """A client that clears results from the oldest on and marks as we do."""

    model: str
    lifetime: str
    is_anchored: bool
    results: list[str] = field(default_factory=list)
    cleared: int = 0
    marked: list[int] = field(default_factory=list)
    """Results that end a marked beginning."""

    def body(self):
        """Write the request: a call and a result for each round, then the markers."""
        messages = [{"role": "user", "content": [{"type": "text", "text": words(1_500, "start")}]}]
        for i, result in enumerate(self.results):
            use = {"type": "tool_use", "id": f"toolu_{i}", "name": "Read", "input": {"n": i}}
            shown = CLEARED if i < self.cleared else result
            answer = {"type": "tool_result", "tool_use_id": f"toolu_{i}", "content": shown}
            messages.append({"role": "assistant", "content": [use]})
            messages.append({"role": "user", "content": [answer]})
        control = {"type": "ephemeral", "ttl": self.lifetime}
        for place in {0, *(2 * (i + 1) for i in self.marked), len(messages) - 1}:
            messages[place]["content"][0]["cache_control"] = control
        tools = [{"name": "Read", "description": "reads", "input_schema": {"type": "object"}}]
        return {"model": self.model, "max_tokens": 100, "tools": tools, "messages": messages}

    def clear(self, upto):
        """Clear results; where that is wanted, a marker follows the cleared part."""
        kept = [i for i in self.marked if i < self.cleared]
        self.cleared = upto
        self.marked = [*kept[-1:], upto - 1] if self.is_anchored else []

    def ends(self, totals):
        """Count the tokens up to each marked place; position 0 is the tool, 1 the first message."""
        return [totals[1], *(totals[1 + 2 * (i + 1)] for i in self.marked)]


def billed(cache, talk, now):
    """Send a request through the simulator's core; give its prompt, its plan and its cost."""
    prepared = prepare(parse_request(json.dumps(talk.body()).encode()), CALLER, BENCH)
    plan = cache.look_up(prepared.prompt, "w", prepared.able.cache_minimum_tokens, now)
    cache.commit(plan, now)
    paid = usage_cost(talk.model, plan.usage())
    assert paid is not None
    return prepared.prompt, plan, paid.total


rounds = st.lists(
    st.tuples(
        st.integers(1, 900),
        st.sampled_from([5, 60, 299, 301, 3_599, 3_601]),
        st.booleans(),
    ),
    min_size=1,
    max_size=14,
)


@settings(max_examples=min(60, settings.default.max_examples))
@given(rounds, st.sampled_from(["5m", "1h"]), st.booleans())
def test_the_model_bills_what_the_simulator_bills(steps, lifetime, is_anchored):
    talk = Talk("claude-sonnet-4-6", lifetime, is_anchored)
    cache, now = PromptCache(), 1_000.0
    listed = prices(talk.model)
    prompt, _, _ = billed(cache, talk, now)
    for size, idle_seconds, clears in steps:
        now += idle_seconds
        state = CacheState()
        if idle_seconds < seconds_of(lifetime):
            marked = tuple(talk.ends(prompt.totals))
            state = CacheState(tokens=prompt.total_tokens, marked=marked)
        talk.results.append(words(size, len(talk.results)))
        at = state.tokens
        if clears and talk.cleared < len(talk.results) - 1:
            at = prompt.totals[2 + 2 * talk.cleared]  # the first call whose result goes
            talk.clear(len(talk.results) - 1)
        read = state.count_readable(at)
        prompt, plan, paid = billed(cache, talk, now)
        assert plan.read_tokens == read
        assert paid == pytest.approx(
            CostModel(listed=listed, lifetime=lifetime).call_usd(prompt.total_tokens, read)
        )


def test_the_model_bills_a_tier_as_the_simulator_does():
    talk = Talk("claude-haiku-5-5", "5m", False)
    cache = PromptCache()
    listed = prices(talk.model)
    before = 0
    for size in (60_000, 9_000, 5_000):
        talk.results.append(words(size, size))
        prompt, plan, paid = billed(cache, talk, 1_000.0)
        assert plan.read_tokens == before
        costs = CostModel(listed=listed)
        assert paid == pytest.approx(costs.call_usd(prompt.total_tokens, before))
        before = prompt.total_tokens
    assert before > 100_000


def test_an_edit_behind_the_warm_part_keeps_all_of_it():
    assert CacheState(tokens=500, marked=(100,)).count_readable(500) == 500


def test_an_edit_keeps_what_is_marked_before_it():
    state = CacheState(tokens=500, marked=(100, 300, 400))
    assert state.count_readable(399) == 300
    assert state.count_readable(99) == 0


def test_the_step_is_found_by_length():
    tier = Tier(above_prompt_tokens=1_000, prompt_multiplier=2.0, output_multiplier=3.0)
    listed = Prices(input=1.0, write_5m=1.25, write_1h=2.0, read=0.1, output=5.0, tiers=(tier,))
    assert step_at(listed, 1_000).prices.input == 1.0
    assert step_at(listed, 1_001).write("1h") == 4.0


def added_up(listed, forecast, prompt_tokens, lifetime="5m"):
    """Add up every call by its chance."""
    costs = CostModel(listed=listed, lifetime=lifetime)
    total, chance = 0.0, 1.0
    for j in range(1, 3_000):
        chance *= forecast.stays_warm
        sent = prompt_tokens + j * forecast.growth_tokens
        total += chance * costs.call_usd(sent, sent - forecast.growth_tokens)
    return total


@given(
    st.integers(0, 120_000),
    st.sampled_from([0.0, 0.5, 700.0, 5_000.0]),
    st.floats(0.5, 60),
    st.floats(0, 0.3),
    st.sampled_from(["5m", "1h"]),
)
def test_the_sum_is_the_sum(prompt_tokens, growth, calls, cold_share, lifetime):
    forecast = Forecast(calls=calls, cold_share=cold_share, growth_tokens=growth)
    flat = replace(LISTED, tiers=())
    costs = CostModel(listed=flat, forecast=forecast, lifetime=lifetime)
    expected = added_up(flat, forecast, prompt_tokens, lifetime)
    assert costs.ahead_usd(prompt_tokens) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("prompt_tokens", [20_000, 48_000, 60_000, 85_000, 120_000])
def test_across_tiers_the_sum_is_that_of_the_mean_growth(prompt_tokens):
    forecast = Forecast(calls=30.0, cold_share=0.0, growth_tokens=2_000.0)
    places = range(prompt_tokens - 1_000, prompt_tokens + 1_000, 100)
    expected = mean(added_up(LISTED, forecast, place) for place in places)
    found = CostModel(listed=LISTED, forecast=forecast).ahead_usd(prompt_tokens)
    assert found == pytest.approx(expected, rel=0.01)


def test_the_next_call_reads_this_one():
    costs = CostModel(listed=LISTED, forecast=Forecast(growth_tokens=1_000.0))
    assert costs.next_usd(10_000) == pytest.approx((10_000 * 0.1 + 1_000 * 2.5) / 1e6)


def test_a_new_session_is_a_usual_one():
    assert expect(calls=0) == Forecast()


def test_a_session_that_goes_on_is_expected_to_go_on():
    assert expect(calls=50).calls == USUAL_CALLS + 5


def test_pauses_seen_are_pauses_expected():
    assert expect(calls=0).cold_share == pytest.approx(0.033)
    assert expect(calls=3_000, cold_calls=600).cold_share == pytest.approx(0.2, abs=0.005)
    assert expect(calls=0, lifetime="1h").cold_share == pytest.approx(0.005)


def test_growth_is_the_sessions_own_before_long():
    found = expect(calls=20, grown_tokens=100_000, removable_tokens=80_000)
    assert 4_000 < found.growth_tokens < 5_000
    assert found.removable_tokens == pytest.approx(0.8 * found.growth_tokens)


@given(st.floats(0.1, 1_000), st.floats(0, 1))
def test_warm_calls_are_fewer_than_calls(calls, cold_share):
    forecast = Forecast(calls=calls, cold_share=cold_share)
    assert forecast.warm_calls <= calls * (1 + 1e-9)


def test_without_pauses_all_calls_are_warm():
    assert Forecast(calls=40.0, cold_share=0.0).warm_calls == pytest.approx(40.0)
