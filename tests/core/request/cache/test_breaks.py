"""Calls that read less than they could: whether that is a break, its cause and its cost."""

import pytest

from longhold.core.messages import Usage
from longhold.core.models.protocol import Request
from longhold.core.request.cache.breaks import count_lost, find_break, find_expired, price_lost
from longhold.core.request.cache.fingerprint import fingerprint

MODEL = "claude-sonnet-5-5"
MARK = {"cache_control": {"type": "ephemeral"}}


def used(read=0, write=0, long=0, plain=0, **more):
    return Usage(
        cache_read_tokens=read,
        cache_write_tokens=write,
        cache_write_1h_tokens=long,
        input_tokens=plain,
        **more,
    )


def text(words="hello"):
    return {"type": "text", "text": words}


def user(*blocks):
    return {"role": "user", "content": [*blocks[:-1], blocks[-1] | MARK]}


def assistant(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def taken(*messages, model=MODEL, **kwargs):
    return fingerprint(Request(kwargs={"model": model, "messages": list(messages), **kwargs}))


def broken(before, after, *, seconds=10.0, expected=()):
    """Compare two requests of which the second read nothing."""
    return find_break(before, after, used(read=40_000), used(write=41_000), seconds, expected)


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        (used(read=100_000), used(read=94_000), 6_000),
        (used(read=100_000), used(read=95_000), 0),  # just five percent
        (used(read=10_000), used(read=8_001), 0),  # a fifth, but under 2,000 tokens
        (used(read=10_000), used(read=8_000), 2_000),
        (used(write=30_000), used(write=30_500), 30_000),  # what was just written was not read
        (used(read=1_000, write=29_000), used(read=30_000), 0),
        (used(), used(write=50_000), 0),  # nothing was cached, so nothing was lost
    ],
)
def test_a_drop_counts_from_five_percent_and_2000_tokens(before, after, lost):
    assert count_lost(before, after) == lost


def test_reads_that_a_providers_own_tools_added_up_are_no_baseline():
    served = used(read=90_000, extra={"server_tool_use": {"web_search_requests": 2}})
    assert count_lost(served, used(read=30_000)) == 0


def test_money_is_the_difference_between_writing_and_reading():
    short = price_lost(MODEL, used(write=1_000_000), 1_000_000)
    assert short == pytest.approx(2.5 - 0.1)
    assert price_lost(MODEL, used(write=1_000_000, long=1_000_000), 1_000_000) == pytest.approx(3.9)
    assert price_lost(MODEL, used(plain=1_000_000), 1_000_000) == pytest.approx(1.9)
    assert price_lost("nobody-knows", used(write=1_000), 1_000) == 0.0


def test_what_is_no_longer_in_the_prompt_costs_nothing():
    assert price_lost(MODEL, used(write=10_000), 150_000) == pytest.approx(10_000 * 2.4e-6)


@pytest.mark.parametrize(
    ("lifetimes", "seconds", "over"),
    [
        ({"5m"}, 290, ""),
        ({"5m"}, 301, "5m"),
        ({"5m"}, 9_000, "5m"),
        ({"1h"}, 360, ""),
        ({"1h"}, 3_660, "1h"),
        ({"1h", "5m"}, 360, "5m"),
        ({"1h", "5m"}, 3_660, "1h"),
        ((), 301, "5m"),
    ],
)
def test_which_lifetime_ran_out(lifetimes, seconds, over):
    assert find_expired(MODEL, lifetimes, seconds) == over


@pytest.mark.parametrize(
    ("model", "seconds", "over"),
    [
        ("gpt-5.6-sol", 1_200, ""),
        ("gpt-6-sol", 1_801, "30m"),
        ("gpt-5", 301, "5m"),
    ],
)
def test_a_provider_without_markers_keeps_to_a_lifetime_of_its_own(model, seconds, over):
    assert find_expired(model, {"1h"}, seconds) == over
    assert find_expired(model, (), seconds) == over


def test_the_lifetime_of_another_provider_is_named_by_its_length():
    before, after = taken(user(text()), model="gpt-6-sol"), taken(user(text()), model="gpt-6-sol")
    broke = broken(before, after, seconds=2_400)
    assert broke.cause == "lifetime_30m"
    assert broke.detail == "the cache lasts 30 minutes, and the call came after 40 minutes"
    assert broken(before, after, seconds=600).cause == "provider"


def test_a_request_that_only_grew_breaks_for_no_reason_of_ours():
    before = taken(user(text()))
    assert broken(before, taken(user(text()), assistant(text()), user(text()))).cause == "provider"


def test_more_than_twenty_blocks_between_markers_are_not_looked_back_over():
    before = taken(user(text()))
    reach = [{"role": "user", "content": [text()]}, assistant(*[text()] * 9)]
    far = taken(*reach, user(*[text()] * 11))
    assert broken(before, far).cause == "lookback"
    near = taken(*reach, user(*[text()] * 10))
    assert broken(before, near).cause == "provider"


def test_a_marker_where_the_entry_is_needs_no_looking_back():
    before = taken(user(text()))
    round_of_25 = [assistant(*[text()] * 25), user(*[text()] * 25)]
    both = taken(user(text()), *round_of_25)
    assert broken(before, both).cause == "provider"
    unmarked = {"role": "user", "content": [text()]}
    assert broken(before, taken(unmarked, *round_of_25)).cause == "lookback"


def test_the_first_image_parts_the_cache():
    image = {"type": "image", "source": {}}
    before = taken(user(text()))
    result = {"type": "tool_result", "tool_use_id": "t", "content": [image]}
    assert broken(before, taken(user(text()), assistant(text()), user(image))).cause == "image"
    assert broken(before, taken(user(text()), assistant(text()), user(result))).cause == "image"
    again = taken(user(text()), assistant(text()), user(image))
    third = taken(user(text()), assistant(text()), user(image), assistant(text()), user(image))
    assert broken(again, third).cause == "provider"


def test_thinking_that_a_model_no_longer_sees_is_expected_to_cost():
    thought = assistant({"type": "thinking", "thinking": "hm", "signature": "s"}, text())

    def pair(model):
        before = taken(user(text()), model=model)
        return before, taken(user(text()), thought, user(text()), model=model)

    broke = broken(*pair("claude-haiku-4-5"))
    assert (broke.cause, broke.expected) == ("thinking", "said")
    assert broken(*pair("claude-opus-5")).cause == "provider"


def test_thinking_of_an_earlier_turn_explains_nothing_now():
    thought = assistant({"type": "thinking", "thinking": "hm", "signature": "s"}, text())
    turns = [user(text()), thought, *[user(text()), assistant(text())] * 10, user(text())]
    before = taken(*turns, model="claude-haiku-4-5")
    after = taken(*turns, assistant(text()), user(text()), model="claude-haiku-4-5")
    broke = broken(before, after)
    assert (broke.cause, broke.expected) == ("provider", "")


@pytest.mark.parametrize("config", [{"effort": "high"}, {}])
def test_the_usual_effort_may_be_said_or_left_out(config):
    before = taken(user(text()))
    after = taken(user(text()), output_config=config)
    assert broken(before, after).cause == "provider"
    assert broken(before, taken(user(text()), output_config={"effort": "low"})).cause == "effort"


def test_what_moved_while_the_cache_was_dead_is_told_beside_it():
    before, after = taken(user(text()), system="a"), taken(user(text()), system="b")
    broke = broken(before, after, seconds=1_000)
    assert broke.cause == "lifetime_5m"
    assert broke.detail.endswith("; meanwhile also system section block 1")


def test_clearing_after_the_lifetime_ran_out_is_not_to_blame():
    before, after = taken(user(text("a")), user(text())), taken(user(text("b")), user(text()))
    broke = broken(before, after, seconds=1_000, expected=["cleared"])
    assert (broke.cause, broke.expected) == ("lifetime_5m", "")
    assert broken(before, after, expected=["cleared"]).cause == "clearing"


def test_an_announced_move_is_named_by_its_entry():
    before, after = taken(user(text("a")), user(text())), taken(user(text("b")), user(text()))
    broke = broken(before, after, seconds=1_000, expected=["compacted"])
    assert (broke.cause, broke.expected, broke.first_moved) == (
        "compaction",
        "compacted",
        "message 1",
    )
    assert broken(before, after, expected=["switched"]).expected == ""
