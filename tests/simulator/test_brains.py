"""Brains that need no conversation: scripted, echo, replay."""

import pytest

from longhold.core.request.billing.api_request import ApiError
from longhold.errors import ConfigError
from longhold.simulator.brains import (
    EXHAUSTED,
    BrainAnswer,
    BrainRequest,
    EchoBrain,
    ReplayBrain,
    ScriptedBrain,
    parse_script,
    text,
)


def request(*messages):
    """What a brain is asked."""
    return BrainRequest(
        model="claude-opus-5", system=(), tools=(), messages=messages, max_tokens=100
    )


HI = {"role": "user", "content": [text("hi")]}
SAID = {"role": "assistant", "content": [text("yes")]}


def test_the_line_language():
    script = (
        'think: Hm.\ntext: One\n  two\ntool: Read {"path": "a"}\n---\nstop: max_tokens\ntext: cut'
    )
    assert parse_script(script) == (
        BrainAnswer(
            blocks=(
                {"type": "thinking", "thinking": "Hm."},
                {"type": "text", "text": "One\ntwo"},
                {"type": "tool_use", "name": "Read", "input": {"path": "a"}},
            )
        ),
        BrainAnswer(blocks=(text("cut"),), stop_reason="max_tokens"),
    )


def test_scripted_errors_are_raised():
    with pytest.raises(ApiError) as raised:
        ScriptedBrain("error: 429 retry-after=5").answer(request(HI))
    assert (raised.value.status, raised.value.retry_after_seconds) == (429, 5.0)


@pytest.mark.parametrize(
    "script", ["hello", "tool: Read {", "error: sometimes", "error: broken", "error: 418"]
)
def test_senseless_scripts_are_refused(script):
    with pytest.raises(ConfigError):
        ScriptedBrain(script)


def test_a_script_that_is_over_says_so():
    brain = ScriptedBrain("text: once")
    brain.answer(request(HI))
    with pytest.raises(ApiError, match="no answer number 2"):
        brain.answer(request(HI))
    again = ScriptedBrain("text: once", repeats=True)
    assert again.answer(request(HI)) == again.answer(request(HI))


def test_echo_is_deterministic():
    assert EchoBrain().answer(request(HI)) == EchoBrain().answer(request(HI))
    assert EchoBrain().answer(request(HI)) != EchoBrain().answer(request(HI, SAID, HI))


def test_replay_answers_by_place():
    use = {"type": "tool_use", "id": "t1", "name": "Read", "input": {}, "caller": None}
    signed = {"type": "thinking", "thinking": "Hm.", "signature": "theirs"}
    brain = ReplayBrain([[signed, use], [text("done")]])
    first = brain.answer(request(HI))
    assert first == brain.answer(request(HI))
    assert first.blocks == (
        {"type": "thinking", "thinking": "Hm."},
        {"type": "tool_use", "id": "t1", "name": "Read", "input": {}},
    )
    assert brain.answer(request(HI, SAID, HI)).blocks == (text("done"),)
    assert brain.answer(request(HI, SAID, HI, SAID, HI)).blocks == (text(EXHAUSTED),)
