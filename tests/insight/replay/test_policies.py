"""What each policy does with one session that outgrows its window."""

import pytest

from longhold.errors import InvalidArgument
from longhold.insight.replay.policies import DEFAULT, POLICIES, select_policies

WINDOW_TOKENS = 60_000
MODEL = "claude-opus-4-5"


@pytest.fixture(scope="module")
def played(recording):
    """Each policy's result, played when it is first asked for."""
    known = {}

    def play(name):
        if name not in known:
            known[name] = POLICIES[name].play(
                recording, model=MODEL, lifetime="1h", window_tokens=WINDOW_TOKENS
            )
        return known[name]

    return play


def test_sending_everything_regrets_nothing_and_outgrows_the_window(played):
    found = played("send_everything")
    assert found.over_window_calls > 0 and found.prefix_moves == 0
    assert found.needed.total() == 0 and found.own == {}


@pytest.mark.parametrize("name", ["summarise_keep_20", "ours"])
def test_policies_that_watch_the_window_stay_within_it(played, name):
    assert played(name).over_window_calls == 0
    assert played(name).prefix_moves > 0


@pytest.mark.parametrize("name", ["sliding_window", "mask_results"])
def test_a_cut_that_moves_with_every_call_rewrites_the_cache(played, name):
    found, everything = played(name), played("send_everything")
    assert sum(found.prompts) < sum(everything.prompts)
    assert found.total.cache_write_tokens > everything.total.cache_write_tokens
    assert found.needed.total() > 0


def test_a_summary_is_billed_as_a_call_of_its_own(played):
    found = played("summarise_keep_20")
    assert found.compactions == found.own["compact"].calls > 0
    assert found.own["compact"].usd > 0


def test_the_providers_clearing_starts_at_its_own_line(recording):
    policy = POLICIES["provider_clearing"]
    early = policy.play(recording, model=MODEL, lifetime="1h", window_tokens=200_000)
    sent = POLICIES["send_everything"].play(
        recording, model=MODEL, lifetime="1h", window_tokens=200_000
    )
    past = [i for i, tokens in enumerate(sent.prompts) if tokens > 100_000]
    assert bool(early.cleared) == bool(past)
    if past:
        assert early.cleared[0][0] == past[0]


def test_an_unknown_policy_is_refused_by_name():
    with pytest.raises(InvalidArgument, match="policy: 'cheapest' is not one of send_everything"):
        select_policies(("cheapest",))
    assert [policy.name for policy in select_policies(())] == list(DEFAULT)
    assert len(select_policies(("all",))) == len(POLICIES)
