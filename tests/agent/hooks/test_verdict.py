"""Parsing the output of hooks, and combining several verdicts."""

import json
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.agent.hooks import EVENTS, HookVerdict, merge, read_verdict
from longhold.agent.permissions import Decision


def read(event, status=0, stdout="", stderr=""):
    """Read one answer."""
    return read_verdict(EVENTS[event], status, stdout, stderr)


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit"])
def test_plain_text_becomes_context_where_it_may(event):
    assert read(event, stdout="use tabs\n") == HookVerdict(context=("use tabs",))


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "Stop", "SessionEnd"])
def test_plain_text_is_dropped_elsewhere(event):
    assert read(event, stdout="done") == HookVerdict()


def test_status_two_denies_a_tool():
    assert read("PreToolUse", 2, "ignored", "not here\n") == HookVerdict(
        permission="deny", reason="not here"
    )


@pytest.mark.parametrize("event", ["UserPromptSubmit", "PostToolUse", "Stop"])
def test_status_two_blocks(event):
    assert read(event, 2, stderr="go on") == HookVerdict(is_blocked=True, reason="go on")


@pytest.mark.parametrize("event", ["SessionStart", "SessionEnd"])
def test_status_two_cannot_block_a_start_or_an_end(event):
    assert read(event, 2, stderr="no") == HookVerdict(errors=("no",))


def test_another_status_is_an_error_that_stops_nothing():
    outcome = read("PreToolUse", 1, stderr="broken")
    assert (outcome.permission, outcome.is_blocked) == (None, False)
    assert "status 1: broken" in outcome.errors[0]


def test_another_status_with_a_valid_answer_counts_as_the_answer():
    outcome = read("Stop", 1, json.dumps({"decision": "block", "reason": "tests fail"}))
    assert outcome == HookVerdict(is_blocked=True, reason="tests fail")


def test_a_full_answer_before_a_tool_is_read():
    answer = {
        "continue": False,
        "stopReason": "enough",
        "systemMessage": "note",
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "allow",
            "permissionDecisionReason": "safe",
            "updatedInput": {"command": "ls"},
            "additionalContext": "seen",
        },
    }
    assert read("PreToolUse", 0, json.dumps(answer)) == HookVerdict(
        permission="allow",
        reason="safe",
        updated_input={"command": "ls"},
        context=("seen",),
        messages=("note",),
        should_stop=True,
        stop_reason="enough",
    )


@pytest.mark.parametrize(
    ("said", "meant"), [("approve", "allow"), ("block", "deny"), ("ask", "ask"), ("x", None)]
)
def test_the_older_way_to_decide_is_understood(said, meant):
    assert read("PreToolUse", 0, json.dumps({"decision": said})).permission == meant


def test_a_tools_output_can_be_replaced():
    answer = {
        "decision": "block",
        "reason": "lint",
        "hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": "short"},
    }
    outcome = read("PostToolUse", 0, json.dumps(answer))
    assert (outcome.is_blocked, outcome.reason, outcome.updated_output) == (True, "lint", "short")


@pytest.mark.parametrize(
    "stdout",
    [
        '{"a": ',
        '{"hookSpecificOutput": {"hookEventName": "Stop"}}',
    ],
)
def test_an_answer_that_makes_no_sense_is_an_error(stdout):
    outcome = read("PreToolUse", 0, stdout)
    assert outcome.errors
    assert outcome.permission is None


def test_fields_of_the_wrong_type_count_as_missing():
    answer = {
        "decision": 1,
        "reason": [],
        "continue": "false",
        "hookSpecificOutput": {"updatedInput": "x", "additionalContext": 3},
    }
    assert read("PreToolUse", 0, json.dumps(answer)) == HookVerdict()


def test_deny_outweighs_ask_and_ask_outweighs_allow():
    said = [HookVerdict(permission=p, reason=p) for p in ("allow", "ask", "deny")]
    for order in permutations(said):
        verdict = merge(order)
        assert (verdict.permission, verdict.reason) == ("deny", "deny")
    assert merge(said[:2]).permission == "ask"
    assert merge([]) == HookVerdict()


def test_a_denied_call_is_not_rewritten():
    said = (HookVerdict(permission="deny"), HookVerdict(updated_input={"a": 1}))
    assert merge(said).updated_input is None
    assert merge(said[1:]).updated_input == {"a": 1}


def test_a_verdict_speaks_to_the_gate():
    assert merge([HookVerdict(permission="ask", reason="why")]).decision() == Decision(
        outcome="ask", reason="why"
    )
    assert HookVerdict().decision() is None


OUTCOMES = st.builds(
    HookVerdict,
    is_blocked=st.booleans(),
    reason=st.sampled_from(["", "a", "b"]),
    permission=st.sampled_from([None, "allow", "ask", "deny"]),
    context=st.sampled_from([(), ("c",), ("d",)]),
    should_stop=st.booleans(),
    errors=st.sampled_from([(), ("e",)]),
)


@given(st.lists(OUTCOMES, max_size=5), st.randoms())
def test_the_order_of_hooks_changes_no_decision(outcomes, random):
    shuffled = random.sample(outcomes, len(outcomes))
    one, other = merge(outcomes), merge(shuffled)
    assert (one.permission, one.is_blocked, one.should_stop) == (
        other.permission,
        other.is_blocked,
        other.should_stop,
    )
    assert sorted(one.context) == sorted(other.context)


@given(st.text(max_size=50), st.integers(0, 255), st.sampled_from(sorted(EVENTS)))
def test_any_output_is_read_without_raising(text, status, event):
    read(event, status, text, text)
