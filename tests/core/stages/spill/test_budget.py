"""Limits: which apply, how they shrink, and which results of a message are spilled."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.core.log.entries import Ran
from longhold.core.settings import SpillSettings, load_settings
from longhold.core.stages.spill.budget import Arrived, Budgets, overrides, plan_message
from longhold.errors import ConfigError


def budgets(declared=None, window_tokens=200_000, **fields):
    return Budgets(
        settings=SpillSettings(**fields), window_tokens=window_tokens, declared=declared or {}
    )


@pytest.mark.parametrize(
    ("tool", "limit_chars"),
    [
        ("Bash", 30_000),
        ("exec_command", 30_000),
        ("Grep", 20_000),
        ("Glob", 50_000),
        ("WebFetch", 50_000),
        ("Edit", 50_000),
        ("nobody_knows", 50_000),
        ("mcp__db__query", 100_000),
        ("read_file", 400_000),
    ],
)
def test_a_tool_is_limited_by_what_its_name_says(tool, limit_chars):
    assert budgets().limit_chars(tool) == limit_chars


@pytest.mark.parametrize(
    ("declared", "limit_chars"), [(20_000, 20_000), (90_000, 50_000), (None, None)]
)
def test_a_tool_says_itself_how_long_its_results_may_be(declared, limit_chars):
    assert budgets({"Mine": declared}).limit_chars("Mine") == limit_chars


def test_the_users_word_goes_before_the_tools():
    told = budgets(
        {"Bash": 30_000, "Read": None, "mcp__db__query": 100_000},
        tools="Bash=10_000, mcp__db__*=90000, Glob=999999999, R*=5000",
    )
    limits = [told.limit_chars(name) for name in ("Bash", "mcp__db__query", "Glob", "Read")]
    assert limits == [10_000, 90_000, 400_000, None]


def test_a_tool_server_may_ask_for_more():
    told = budgets({"mcp__a__x": 250_000, "mcp__a__y": 500_000})
    assert [told.limit_chars(name) for name in ("mcp__a__x", "mcp__a__y")] == [250_000, 400_000]


@pytest.mark.parametrize(
    ("window_tokens", "limits"),
    [
        (1_000_000, (50_000, 200_000, 2_000)),
        (200_000, (50_000, 200_000, 2_000)),
        (32_000, (8_000, 32_000, 320)),
        (8_000, (2_000, 8_000, 300)),
        (1_000, (1_000, 1_000, 300)),
    ],
)
def test_budgets_shrink_with_the_window(window_tokens, limits):
    told = budgets(window_tokens=window_tokens)
    room = told.room(has_failed=False)
    assert (told.limit_chars("x"), told.message_chars, room.preview_bytes) == limits


def arrived(**fields):
    fields = {"is_command": True, "exit_status": None, **fields}
    ran = Ran(tool_use_id="a", is_error=fields.pop("is_error", False))
    return Arrived(ran=ran, tool="Bash", text="", **fields)


@pytest.mark.parametrize(
    ("fields", "limit_chars"),
    [
        ({"exit_status": 0}, 30_000),
        ({"exit_status": 1}, 10_000),
        ({"exit_status": -9}, 10_000),
        ({"is_error": True}, 10_000),
        ({"is_error": True, "is_command": False}, 30_000),
    ],
)
def test_a_failed_command_has_a_limit_of_its_own(fields, limit_chars):
    assert budgets().limit_of(arrived(**fields)) == limit_chars
    assert budgets().room(has_failed=True).preview_bytes == 6_000


weighed = st.dictionaries(
    st.uuids().map(str), st.tuples(st.integers(0, 99), st.booleans()), max_size=8
)


@given(weighed, st.integers(0, 200))
def test_the_longest_free_results_go_until_the_rest_fits(results, limit):
    lengths = {id: chars for id, (chars, _) in results.items()}
    free = {id for id, (_, is_free) in results.items() if is_free}
    chosen = plan_message(lengths, free, limit)
    assert all(id in free for id in chosen)
    left = sum(chars for id, chars in lengths.items() if id not in chosen)
    free_left = [lengths[id] for id in free if id not in chosen]
    assert left <= limit or not free_left
    if chosen:
        assert left + lengths[chosen[-1]] > limit
        assert min(lengths[id] for id in chosen) >= max(free_left, default=0)


@pytest.mark.parametrize("text", ["Bash=", "=5", "Bash=0", "Bash=5;Grep=6", "Bash", "Bash=-1"])
def test_limits_by_tool_are_checked_on_load(monkeypatch, text):
    monkeypatch.setenv("LONGHOLD_SPILL_TOOLS", text)
    with pytest.raises(ConfigError, match="limits in characters by tool"):
        load_settings()


def test_limits_by_tool_are_read(monkeypatch):
    monkeypatch.setenv("LONGHOLD_SPILL_TOOLS", " Bash = 10_000 , mcp__*=5000")
    assert overrides(load_settings().spill.tools) == (("Bash", 10_000), ("mcp__*", 5_000))
