"""What a call costs by what can be read, held against the simulator's billing."""

import json
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.models.prices import Prices, Tier, prices
from holdfast.request.cache.cache_state import LIFETIME_SECONDS, CacheState, call_usd, step_at
from holdfast.simulator.cache import PromptCache
from holdfast.simulator.preparation import Workbench, prepare
from holdfast.simulator.request import Caller, parse_request
from holdfast.simulator.settings import SimulatorSettings
from holdfast.simulator.signing import Signer
from holdfast.simulator.tokens import TokenCounter
from holdfast.simulator.usage import Iteration

SETTINGS = SimulatorSettings()
BENCH = Workbench(settings=SETTINGS, counter=TokenCounter(SETTINGS), signer=Signer(b"s"))
CALLER = Caller(workspace="w", version="2023-06-01")
CLEARED = "cleared"


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
    paid = Iteration(kind="message", plan=plan, output_tokens=0).cost(talk.model, None)
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


@settings(max_examples=60)
@given(rounds, st.sampled_from(["5m", "1h"]), st.booleans())
def test_the_model_bills_what_the_simulator_bills(steps, lifetime, is_anchored):
    """Warm, cold, growing and edited prompts cost the same by both, to the token."""
    talk = Talk("claude-sonnet-4-6", lifetime, is_anchored)
    cache, now = PromptCache(SETTINGS), 1_000.0
    listed = prices(talk.model)
    prompt, _, _ = billed(cache, talk, now)
    for size, idle_seconds, clears in steps:
        now += idle_seconds
        warmth = CacheState(
            tokens=prompt.total_tokens, marked=tuple(talk.ends(prompt.totals)), lifetime=lifetime
        ).after(idle_seconds)
        talk.results.append(words(size, len(talk.results)))
        at = warmth.tokens
        if clears and talk.cleared < len(talk.results) - 1:
            at = prompt.totals[2 + 2 * talk.cleared]  # the first call whose result goes
            talk.clear(len(talk.results) - 1)
        read = warmth.readable_before(at)
        prompt, plan, paid = billed(cache, talk, now)
        assert plan.read_tokens == read
        assert paid == pytest.approx(
            call_usd(listed, prompt_tokens=prompt.total_tokens, read_tokens=read, lifetime=lifetime)
        )


def test_the_model_bills_a_tier_as_the_simulator_does():
    """One token past the line makes the whole call dearer by both."""
    talk = Talk("claude-haiku-5-5", "5m", False)
    cache = PromptCache(SETTINGS)
    listed = prices(talk.model)
    before = 0
    for size in (60_000, 9_000, 5_000):
        talk.results.append(words(size, size))
        prompt, plan, paid = billed(cache, talk, 1_000.0)
        assert plan.read_tokens == before
        assert paid == pytest.approx(
            call_usd(listed, prompt_tokens=prompt.total_tokens, read_tokens=before)
        )
        before = prompt.total_tokens
    assert before > 100_000


def test_an_edit_behind_the_warm_part_keeps_all_of_it():
    """What was never sent can change freely."""
    assert CacheState(tokens=500, marked=(100,)).readable_before(500) == 500


def test_an_edit_keeps_what_is_marked_before_it():
    """The last marked beginning that ends before the edit stays readable."""
    warmth = CacheState(tokens=500, marked=(100, 300, 400))
    assert warmth.readable_before(399) == 300
    assert warmth.readable_before(99) == 0


@pytest.mark.parametrize("lifetime", ["5m", "1h"])
def test_the_cache_dies_with_its_lifetime(lifetime):
    """At the last second it is whole, at the next it is gone."""
    warmth = CacheState(tokens=500, marked=(100,), lifetime=lifetime)
    limit = LIFETIME_SECONDS[lifetime]
    assert warmth.after(limit - 1) == warmth
    assert warmth.after(limit).is_cold
    assert warmth.after(limit).readable_before(500) == 0


def test_the_step_is_found_by_length():
    """A prompt on the line is cheap, one past it is not."""
    tier = Tier(above_prompt_tokens=1_000, prompt_multiplier=2.0, output_multiplier=3.0)
    listed = Prices(input=1.0, write_5m=1.25, write_1h=2.0, read=0.1, output=5.0, tiers=(tier,))
    assert step_at(listed, 1_000).prices.input == 1.0
    assert step_at(listed, 1_001).write("1h") == 4.0
